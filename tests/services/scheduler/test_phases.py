"""Which phase each run is in, followed through real decisions."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from luftpause.core.model.ids import (
    ANONYMOUS_CALLER,
    ANONYMOUS_PRINCIPAL,
    CallerId,
    LauncherId,
    ModelName,
    PeerId,
    PrincipalId,
    ReplicaId,
    RunId,
    ToolCallId,
    ToolName,
    TurnId,
)
from luftpause.core.model.replicas import Endpoint, ReplicaKind, ReplicaSpec
from luftpause.core.model.tool_names import A_PERSON
from luftpause.core.model.turns import ServiceClass, TurnShape, Usage
from luftpause.core.scheduling.events import (
    FirstTokenSeen,
    OpenTurn,
    PeerResynced,
    TurnAbandoned,
    TurnFailed,
    TurnFinished,
    TurnReport,
    TurnReturned,
)
from luftpause.core.scheduling.residency.events import ModelUp
from luftpause.core.scheduling.state import Limits
from luftpause.core.scheduling.working_set.limits import WorkingSetLimits
from luftpause.services.scheduler.phases import DETAIL_MAX, Change, Phase, Phases, Spent
from luftpause.services.scheduler.settings import SchedulerSettings
from luftpause.services.scheduler.timeline import Timeline
from services.scheduler.idle_launcher import Seat
from services.scheduler.running import crowd, offer, probed, run, spec
from services.scheduler.watched import Clock, told, watched

pytestmark = pytest.mark.interpreted  # its clock inherits from the service

T1, T2 = TurnId("t1"), TurnId("t2")
LOOK = (ToolCallId("c1"),)


def story(happens: Callable[[Clock, Timeline], None], *replicas: ReplicaSpec) -> list[tuple[str, str, float, str]]:
    async def tell() -> list[tuple[str, str, float, str]]:
        service, timeline = watched(*(replicas or (spec("a"),)))
        happens(service, timeline)
        return told(timeline)

    return run(tell)


def test_a_turn_is_prefill_until_its_first_token_then_decode_then_its_run_is_out_on_a_tool() -> None:
    def happens(service: Clock, _: Timeline) -> None:
        service.admit(offer("t1", run="r"))
        service.after(2)
        service.report(FirstTokenSeen(turn=T1))
        service.after(3)
        service.report(TurnFinished(turn=T1, tool_calls=LOOK, tools=(ToolName("look"), ToolName("read"))))
        service.after(4)
        service.admit(offer("t2", run="r"))
        service.after(1)
        service.report(TurnFinished(turn=T2))

    assert story(happens) == [
        ("r", "prefill", 0, "a"),
        ("r", "decode", 2, "a"),
        ("r", "tool", 5, "look, read"),
        ("r", "prefill", 9, "a"),
        ("r", "idle", 10, ""),
    ]


@pytest.mark.parametrize("end", [TurnFinished(turn=T2), TurnFailed(turn=T2, cause="x"), TurnAbandoned(turn=T2)])
@pytest.mark.parametrize("comes_first", [True, False])
def test_a_turn_aside_leaves_a_run_out_on_its_tool(comes_first: bool, end: TurnReport) -> None:
    def happens(service: Clock, _: Timeline) -> None:
        title = replace(offer("t2", run="r"), shape=TurnShape.ASIDE)
        if comes_first:
            service.admit(title)
        service.admit(offer("t1", run="r"))
        service.report(TurnFinished(turn=T1, tool_calls=LOOK, tools=(ToolName("look"),)))
        if not comes_first:
            service.admit(title)
        service.after(1)
        service.report(end)

    assert story(happens)[-1] == ("r", "tool", 1 if comes_first else 0, "look")


def test_who_cut_an_answer_off_is_told() -> None:
    def happens(service: Clock, _: Timeline) -> None:
        for turn, made in (("t1", 4096), ("t2", 4095)):
            service.admit(offer(turn, run=turn))
            usage = Usage(prompt_tokens=9, completion_tokens=made)
            service.report(TurnFinished(turn=TurnId(turn), finish="length", usage=usage, reply_cap=4096))
        assert 'luftpause_answers_cut_total{class="interactive"} 1.0' in service.metrics.render().decode()

    rests = [change for change in story(happens) if change[1] == "idle"]
    assert rests == [
        ("t1", "idle", 0, "its answer was cut off at our cap of 4096 tokens"),
        ("t2", "idle", 0, ""),
    ]


def test_a_held_turn_is_told_with_its_reason_until_it_is_placed_or_its_client_leaves() -> None:
    def happens(service: Clock, _: Timeline) -> None:
        crowd(service)
        service.admit(offer("t1", run="r"))
        service.admit(offer("t2", run="left"))
        service.after(5)
        service.report(TurnAbandoned(turn=T2))
        service.probed(probed("a", running=1, waiting=0))

    assert story(happens)[1:] == [
        ("r", "held", 0, "waiting for room: a runs 1 of 1"),
        ("left", "held", 0, "waiting for room: a runs 1 of 1"),
        ("left", "idle", 5, "its client left"),
        ("r", "prefill", 5, "a"),
    ]


def test_a_failure_is_told_without_what_the_engine_said() -> None:
    def happens(service: Clock, _: Timeline) -> None:
        service.admit(offer("t1", run="r"))
        service.report(TurnFailed(turn=T1, cause="HTTP 500: secret"))

    assert story(happens) == [("r", "prefill", 0, "a"), ("r", "failed", 0, "")]


def test_of_several_open_turns_the_one_that_is_furthest_counts() -> None:
    def happens(service: Clock, _: Timeline) -> None:
        service.admit(offer("t1", run="r"))
        service.report(FirstTokenSeen(turn=T1))
        service.after(1)
        service.admit(offer("t2", run="r"))
        service.after(1)
        service.report(TurnFinished(turn=T1, tool_calls=LOOK))
        service.after(1)
        service.report(TurnFinished(turn=T2))

    assert [change[1:3] for change in story(happens)] == [("prefill", 0), ("decode", 0), ("prefill", 2), ("idle", 3)]


def test_what_ends_without_a_word_is_ended_here_too() -> None:
    def happens(service: Clock, _: Timeline) -> None:
        service.admit(offer("t1", run="r"))
        service.peer_lost(PeerId("p"))

    assert story(happens)[-1] == ("r", "failed", 0, "its door was lost")


def test_turns_that_a_dataplane_tells_after_a_restart_are_taken_up() -> None:
    turn = OpenTurn(
        turn=T1,
        run=RunId("r"),
        replica=ReplicaId("a"),
        model=ModelName("m"),
        kind=ReplicaKind.GENERATIVE,
        service_class=ServiceClass.INTERACTIVE,
        caller=CallerId(ANONYMOUS_CALLER),
        principal=PrincipalId(ANONYMOUS_PRINCIPAL),
    )

    def happens(service: Clock, _: Timeline) -> None:
        service.resync(PeerResynced(peer=PeerId("p"), turns=(turn,), runs=()))
        service.after(1)
        service.report(TurnFinished(turn=T1))
        service.resync(PeerResynced(peer=PeerId("p"), turns=(), runs=()))

    assert [change[1:3] for change in story(happens)] == [("decode", 0), ("idle", 1)]


def test_a_run_that_is_over_is_gone_and_single_pass_turns_have_no_lane() -> None:
    def happens(service: Clock, _: Timeline) -> None:
        service.admit(offer("t1", run="r"))
        service.report(TurnFinished(turn=T1))
        service.end_run(PrincipalId(ANONYMOUS_PRINCIPAL), RunId("r"))
        service.admit(offer("t2", model="labels", kind=ReplicaKind.SINGLE_PASS))

    labels = spec("b", "labels", kind=ReplicaKind.SINGLE_PASS)
    assert [change[:2] for change in story(happens, spec("a"), labels)] == [
        ("r", "prefill"),
        ("r", "idle"),
        ("r", "gone"),
    ]


def test_what_a_run_cost_is_added_up_with_all_below_it() -> None:
    def happens(service: Clock, timeline: Timeline) -> None:
        for turn, name, parent in (("t1", "r", None), ("t2", "child", "r"), ("t3", "grandchild", "child")):
            service.admit(offer(turn, run=name, parent=parent))
            service.report(TurnFinished(turn=TurnId(turn), usage=Usage(prompt_tokens=10, completion_tokens=2)))
        service.admit(offer("t4", run="child"))
        service.report(TurnFinished(turn=TurnId("t4")))
        assert timeline.spent(RunId("child")) == Spent(2, 10, 2)
        assert timeline.spent_below(service.state, RunId("r")) == Spent(4, 30, 6)
        assert timeline.spent(RunId("unknown")) == Spent()

    story(happens)


def test_a_turn_that_waits_for_its_model_is_loading_and_the_model_has_a_lane_of_its_own() -> None:
    def happens(service: Clock, _: Timeline) -> None:
        seat = Seat()
        service.launchers.joined(seat, seat.inventory())
        service.admit(offer("t1", run="r", model="big"))
        service.after(6)
        replica = ReplicaSpec(replica=ReplicaId("big-1"), endpoint=Endpoint(url="http://e"), models=(ModelName("big"),))
        service.launchers.told(LauncherId("box"), ModelUp(model=ModelName("big"), replica=replica, memory=120))

    seen = [change[:3] for change in story(happens)]
    assert seen[:3] == [("big", "gone", 0), ("r", "loading", 0), ("big", "loading", 0)]
    assert seen[3:] == [("r", "prefill", 6), ("big", "up", 6)]


def test_no_more_runs_are_followed_than_allowed_and_the_one_at_rest_for_longest_goes() -> None:
    changes: list[Change] = []
    phases = Phases(changes.append, lanes_max=2)

    async def tell() -> None:
        service, _ = watched(spec("a"))
        service.watch(phases)
        for number in range(3):
            service.admit(offer(f"t{number}", run=f"r{number}"))
            if number != 0:
                service.report(TurnFinished(turn=TurnId(f"t{number}")))
        service.admit(offer("again", run="r0"))
        service.admit(offer("more", run="r4"))

    run(tell)
    assert set(phases.runs) == {"r0", "r4"}
    assert [change.lane.name for change in changes if change.phase is Phase.GONE] == ["r1", "r2"]


def test_a_detail_is_cut() -> None:
    def happens(service: Clock, _: Timeline) -> None:
        service.admit(offer("t1", run="r"))
        service.report(TurnFinished(turn=T1, tool_calls=LOOK, tools=(ToolName("x" * 500),)))

    assert story(happens)[-1][3] == "x" * DETAIL_MAX


def test_a_turn_that_was_taken_back_leaves_its_run_out_on_its_tool() -> None:
    def happens(service: Clock, timeline: Timeline) -> None:
        service.admit(offer("t1", run="r"))
        service.report(TurnFinished(turn=T1, tool_calls=LOOK, tools=(ToolName("look"),)))
        service.admit(offer("t2", run="r"))
        service.report(TurnReturned(turn=T2))
        service.report(TurnReturned(turn=T2))

    assert [phase for _, phase, *_ in story(happens)] == ["prefill", "tool", "prefill", "tool"]


@pytest.mark.parametrize(("policy", "more"), [(None, ""), (WorkingSetLimits(), "; its place is not kept meanwhile")])
def test_a_run_that_waits_for_a_person_says_so_and_what_becomes_of_its_place(
    policy: WorkingSetLimits | None, more: str
) -> None:
    async def tell() -> list[tuple[str, str, float, str]]:
        service, timeline = watched(spec("a"), settings=SchedulerSettings(limits=Limits(working_set=policy)))
        service.admit(offer("t1", run="r"))
        service.report(TurnFinished(turn=T1, tool_calls=LOOK, tools=(A_PERSON,)))
        return told(timeline)

    assert run(tell)[-1] == ("r", "tool", 0, "a person is asked to allow a call" + more)
