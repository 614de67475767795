"""The scheduler's shell: tickets, timers, faults."""

import asyncio
import logging
from dataclasses import replace
from typing import get_args

import pytest

from core.scheduling.residency import words
from luftpause.core.model.ids import (
    ANONYMOUS_PRINCIPAL,
    Instant,
    LauncherId,
    Mark,
    ModelName,
    PeerId,
    PrincipalId,
    ReplicaId,
    RunId,
    ToolCallId,
    ToolName,
    TurnId,
)
from luftpause.core.model.marks import session_mark
from luftpause.core.model.refusals import RefusalReason
from luftpause.core.model.replicas import Placement, ReplicaKind, ReplicaSpec
from luftpause.core.model.turns import IdentityKeys, ServiceClass, Usage
from luftpause.core.scheduling.actions import Action
from luftpause.core.scheduling.decide import decide as real_decide
from luftpause.core.scheduling.events import (
    Event,
    KnownRun,
    OpenTurn,
    PeerResynced,
    RunPhase,
    TurnAbandoned,
    TurnArrived,
    TurnFinished,
)
from luftpause.core.scheduling.residency.events import LauncherJoined
from luftpause.core.scheduling.state import Decision, Limits, State, empty_state
from luftpause.core.scheduling.working_set.limits import WorkingSetLimits
from luftpause.ports.launcher import ModelOrder
from luftpause.ports.processes import LogSlice
from luftpause.ports.scheduler import SchedulerDesk, TurnRefusedError
from luftpause.services.scheduler import service as service_module
from luftpause.services.scheduler.metrics import SchedulerMetrics
from luftpause.services.scheduler.service import SchedulerService
from luftpause.services.scheduler.settings import SchedulerSettings
from luftpause.services.scheduler.tally import DecisionTally
from luftpause.telemetry.pauses import DECISIONS_A_LOOK, FEW_RUNS
from services.collected import collections
from services.scheduler.running import crowd, eventually, offer, probed, run, soon, spec, started

R = RunId("r")


def finished(turn: str, *calls: str) -> TurnFinished:
    return TurnFinished(turn=TurnId(turn), tool_calls=tuple(ToolCallId(call) for call in calls))


def open_turn(turn: str, replica: str, principal: str = ANONYMOUS_PRINCIPAL) -> OpenTurn:
    known = offer(turn, principal=principal)
    return OpenTurn(
        turn=known.turn,
        run=R,
        replica=ReplicaId(replica),
        model=known.model,
        kind=ReplicaKind.GENERATIVE,
        service_class=known.service_class,
        caller=known.caller,
        principal=known.principal,
    )


def test_an_offer_is_accepted_and_placed_at_once_while_there_is_room() -> None:
    async def story() -> None:
        desk: SchedulerDesk = started(spec("a"))
        ticket = desk.admit(offer("t", run="r"))
        assert ticket.run == "r"
        placement = ticket.placement.result()
        assert placement.replica == "a"
        assert placement.endpoint.api_key_env == "A_KEY"
        assert placement.why == "fewest turns in flight"

    run(story)


def test_a_held_turn_keeps_its_ticket_open_until_there_is_room() -> None:
    async def story() -> None:
        desk = started(spec("a"))
        desk.admit(offer("t1"))
        desk.probed(probed("a", running=1, waiting=1))
        ticket = desk.admit(offer("t2"))
        assert not ticket.placement.done()
        desk.report(finished("t1"))
        assert (await soon(ticket.placement)).replica == "a"

    run(story)


def test_a_turn_offered_again_gets_its_old_run_and_placement_whether_held_or_placed() -> None:
    async def story() -> None:
        desk = started(spec("a"))
        first = desk.admit(offer("t1"))
        again = desk.admit(offer("t1"))
        assert again.run == first.run
        assert again.placement.result() == first.placement.result()
        desk.probed(probed("a", running=1, waiting=1))
        held = desk.admit(offer("t2"))
        assert desk.admit(offer("t2")) is held
        assert len(desk.state.held) == 1

    run(story)


def test_a_held_turn_whose_ticket_was_cancelled_and_that_is_offered_again_gets_a_new_ticket() -> None:
    async def story() -> None:
        desk = started(spec("a"))
        crowd(desk)
        first = desk.admit(offer("t"))
        first.placement.cancel()
        again = desk.admit(offer("t"))
        assert again.run == first.run
        desk.probed(probed("a"))
        assert again.placement.result().replica == "a"

    run(story)


def test_an_unknown_model_is_refused_at_once_and_leaves_nothing_behind() -> None:
    async def story() -> None:
        desk = started(spec("a"))
        with pytest.raises(TurnRefusedError, match="no Generative replica serves model 'nope'") as refused:
            desk.admit(offer("t", run="r", model="nope"))
        assert refused.value.refusal.reason is RefusalReason.UNKNOWN_MODEL
        assert desk.end_run(ANONYMOUS_PRINCIPAL, R) is False

    run(story)


def test_an_abandoned_held_turn_leaves_no_ticket_and_is_never_placed() -> None:
    async def story() -> None:
        desk = started(spec("a"))
        crowd(desk)
        ticket = desk.admit(offer("t"))
        desk.report(TurnAbandoned(turn=TurnId("t")))
        assert ticket.placement.cancelled()
        desk.probed(probed("a"))
        assert set(desk.state.turns) == {"crowd"}

    run(story)


def test_a_run_is_recognised_by_the_tool_calls_of_its_last_turn_and_goes_home() -> None:
    async def story() -> None:
        desk = started(spec("a"), spec("b"))
        first = desk.admit(offer("t1"))
        desk.report(finished("t1", "call_x"))
        second = desk.admit(offer("t2", echoes=("call_x",)))
        assert second.run == first.run
        assert second.placement.result().why == "its run's last turn ran there"

    run(story)


def test_runs_belong_to_the_principal_that_used_them_first() -> None:
    async def story() -> None:
        desk = started(spec("a"))
        desk.admit(offer("t1", run="r", principal="alice"))
        with pytest.raises(TurnRefusedError) as refused:
            desk.admit(offer("t2", run="r", principal="bob"))
        assert refused.value.refusal.reason is RefusalReason.UNKNOWN_RUN
        assert desk.end_run(PrincipalId("bob"), R) is False
        assert R in desk.state.models_of
        assert desk.end_run(PrincipalId("alice"), R) is True
        assert R not in desk.state.models_of
        assert desk.end_run(PrincipalId("alice"), R) is False

    run(story)


def test_a_parent_of_somebody_else_is_not_taken_over() -> None:
    async def story() -> None:
        desk = started(spec("a"))
        desk.admit(offer("t1", run="boss", principal="alice"))
        told = desk.admit(offer("t2", run="child", principal="alice", parent="boss"))
        not_told = desk.admit(offer("t3", run="stranger", principal="bob", parent="boss"))
        assert (told.parent, not_told.parent) == ("boss", None)
        assert desk.state.runs[RunId("child"), ModelName("m")].parent == "boss"
        assert desk.state.runs[RunId("stranger"), ModelName("m")].parent is None

    run(story)


def test_single_pass_turns_have_a_run_id_but_no_run() -> None:
    async def story() -> None:
        desk = started(spec("c", "labels", kind=ReplicaKind.SINGLE_PASS))
        ticket = desk.admit(offer("t", model="labels", kind=ReplicaKind.SINGLE_PASS))
        assert ticket.run.startswith("run_")
        assert not desk.state.runs
        assert desk.end_run(ANONYMOUS_PRINCIPAL, ticket.run) is True

    run(story)


def test_an_offer_that_leaves_kind_or_model_open_is_placed_and_told_what_it_was_taken_for() -> None:
    async def story() -> None:
        desk = started(spec("a", "m"), spec("c", "labels", kind=ReplicaKind.SINGLE_PASS))
        for turn, kind, model, found in (
            ("t1", None, "labels", (ReplicaKind.SINGLE_PASS, "labels")),
            ("t2", None, "m", (ReplicaKind.GENERATIVE, "m")),
            ("t3", ReplicaKind.SINGLE_PASS, "", (ReplicaKind.SINGLE_PASS, "labels")),
        ):
            placement = desk.admit(offer(turn, model=model, kind=kind)).placement.result()
            assert (placement.kind, placement.model) == found
        with pytest.raises(TurnRefusedError, match="names no model, and replicas serve 2: 'labels', 'm'"):
            desk.admit(offer("t4", model="", kind=None))

    run(story)


def test_a_held_turn_without_a_model_is_the_same_turn_when_it_is_offered_again() -> None:
    async def story() -> None:
        desk = started(spec("a", "m"))
        crowd(desk)
        ticket = desk.admit(offer("t", run="r", model=""))
        desk.add_replica(spec("b", "n"))
        assert desk.admit(offer("t", run="r", model="")) is ticket
        desk.report(finished("crowd"))
        assert (await soon(ticket.placement)).model == "m"

    run(story)


def test_ending_a_run_refuses_its_held_turn() -> None:
    async def story() -> None:
        desk = started(spec("a"))
        crowd(desk)
        ticket = desk.admit(offer("t", run="r"))
        desk.end_run(ANONYMOUS_PRINCIPAL, R)
        with pytest.raises(TurnRefusedError) as refused:
            await soon(ticket.placement)
        assert refused.value.refusal.reason is RefusalReason.RUN_ENDED

    run(story)


def test_models_are_sorted_and_each_named_once() -> None:
    async def story() -> None:
        desk = started(spec("b", "z", "m"), spec("a", "m"), spec("c", "labels", kind=ReplicaKind.SINGLE_PASS))
        assert list(desk.models()) == ["labels", "m", "z"]
        desk.remove_replica(ReplicaId("b"))
        assert list(desk.models()) == ["labels", "m"]

    run(story)


def test_deadlines_wake_the_service_without_anybody_asking() -> None:
    async def story() -> None:
        limits = Limits(turn_timeout_s=0.2, run_idle_expiry_s=0.2)
        desk = started(spec("a"), settings=SchedulerSettings(limits=limits))
        desk.admit(offer("t1", run="r"))
        crowd(desk)
        ticket = desk.admit(offer("t2", run="s"))
        with pytest.raises(TurnRefusedError) as refused:
            await soon(ticket.placement)
        assert refused.value.refusal.reason is RefusalReason.EXPIRED
        await eventually(lambda: not desk.state.runs and not desk.state.turns)
        assert desk.end_run(ANONYMOUS_PRINCIPAL, R) is False

    run(story)


def test_the_end_of_a_kept_place_wakes_the_service_too() -> None:
    async def story() -> None:
        limits = Limits(working_set=WorkingSetLimits())
        desk = started(spec("a"), settings=SchedulerSettings(limits=limits))
        desk.admit(offer("t1", run="r"))
        desk.report(finished("t1"))
        desk.admit(offer("t2", run="r"))  # its end makes no other deadline
        usage = Usage(prompt_tokens=100, completion_tokens=10)
        desk.report(replace(finished("t2", "call"), usage=usage, tools=(ToolName("look"),)))
        (run_on_tool,) = desk.state.runs.values()
        until = run_on_tool.kept_until
        assert until is not None
        assert desk._timer is not None
        assert desk._timer.when() <= until + 1

    run(story)


def test_a_resync_brings_back_turns_runs_and_their_owners() -> None:
    async def story() -> None:
        desk = started(spec("a"), spec("b"))
        known = KnownRun(
            run=RunId("s"),
            model=ModelName("m"),
            phase=RunPhase.PAUSED,
            replica=ReplicaId("b"),
            service_class=ServiceClass.INTERACTIVE,
            caller=offer("x").caller,
            principal=PrincipalId("alice"),
            age_s=3,
            marks=(Mark("call:call_x"), session_mark("codex:t")),
        )
        desk.resync(PeerResynced(peer=PeerId("p"), turns=(open_turn("t", "a", "alice"),), runs=(known,)))
        assert desk.admit(offer("w", echoes=("call_x",), principal="alice")).run == "s"
        assert desk.admit(offer("y", echoes=("call_x",), principal="bob")).run != "s"
        named = replace(offer("z", principal="alice"), keys=IdentityKeys(session="codex:t"))
        assert desk.admit(named).run == "s"
        assert desk.admit(offer("u", run="s", principal="alice")).placement.result().replica == "b"
        with pytest.raises(TurnRefusedError):
            desk.admit(offer("v", run="r", principal="bob"))

    run(story)


def test_a_lost_peer_takes_its_tickets_with_it_and_frees_room_for_others() -> None:
    async def story() -> None:
        desk = started(spec("a"))
        desk.admit(offer("t1", peer="gone"))
        desk.probed(probed("a", running=1, waiting=1))
        lost = desk.admit(offer("t2", peer="gone"))
        other = desk.admit(offer("t3", peer="here"))
        desk.peer_lost(PeerId("gone"))
        assert lost.placement.cancelled()
        assert other.placement.result().replica == "a"

    run(story)


def test_a_placement_on_a_replica_that_nobody_declared_is_refused() -> None:
    async def story() -> None:
        desk = started(spec("a"))
        desk.resync(PeerResynced(peer=PeerId("p"), turns=(open_turn("t", "unheard-of"),), runs=()))
        with pytest.raises(TurnRefusedError, match="'unheard-of' is not declared yet"):
            desk.admit(offer("t"))

    run(story)


def test_closing_refuses_the_held_and_all_that_come_later() -> None:
    async def story() -> None:
        desk = started(spec("a"))
        crowd(desk)
        ticket = desk.admit(offer("t1"))
        desk.close()
        desk.close()
        with pytest.raises(TurnRefusedError) as held:
            await soon(ticket.placement)
        with pytest.raises(TurnRefusedError) as late:
            desk.admit(offer("t2"))
        assert held.value.refusal.reason is late.value.refusal.reason is RefusalReason.SHUTTING_DOWN
        assert held.value.refusal.retry_after_s == late.value.refusal.retry_after_s == 1.0

    run(story)


@pytest.mark.interpreted
def test_an_event_that_breaks_deciding_fails_its_own_turn_alone(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def brittle(state: State, event: Event, now: Instant) -> Decision:
        if isinstance(event, TurnArrived) and event.turn == "bad":
            raise ZeroDivisionError("a bug")
        return real_decide(state, event, now)

    monkeypatch.setattr(service_module, "decide", brittle)

    async def story() -> None:
        desk = started(spec("a"))
        crowd(desk)
        held = desk.admit(offer("good"))
        with pytest.raises(TurnRefusedError) as refused:
            desk.admit(offer("bad"))
        assert refused.value.refusal.reason is RefusalReason.SCHEDULER_FAULT
        desk.probed(probed("a"))
        assert held.placement.result().replica == "a"
        assert b"luftpause_scheduler_faults_total 1.0" in desk.metrics.render()

    with caplog.at_level(logging.ERROR, logger="luftpause.scheduler"):
        run(story)
    assert [record.message for record in caplog.records] == ["decision_failed"]


def test_an_event_told_while_another_is_taken_in_waits_its_turn() -> None:
    class Meddler:
        """Takes a replica away in the very moment that it is declared."""

        def __init__(self, desk: SchedulerService) -> None:
            self.desk = desk
            self.seen: list[str] = []

        def declared(self, spec: ReplicaSpec) -> None:
            self.seen.append("declared")
            self.desk.remove_replica(spec.replica)
            self.seen.append("still there" if spec.replica in self.desk.state.replicas else "gone")

        def removed(self, replica: ReplicaId) -> None:
            self.seen.append("removed")

    async def story() -> None:
        desk = started()
        meddler = Meddler(desk)
        desk.listen(meddler)
        desk.add_replica(spec("a"))
        assert meddler.seen == ["declared", "still there", "removed"]
        assert not desk.state.replicas

    run(story)


def test_decisions_and_gauges_can_be_read_by_prometheus() -> None:
    async def story() -> bytes:
        desk = started(spec("a"))
        desk.admit(offer("t1"))
        desk.probed(probed("a", running=1, waiting=1))
        desk.admit(offer("t2"))
        return desk.metrics.render()

    lines = run(story).decode().splitlines()
    assert 'luftpause_scheduler_decisions_total{kind="place"} 1.0' in lines
    assert 'luftpause_scheduler_decisions_total{kind="hold"} 1.0' in lines
    assert 'luftpause_held_turns{class="interactive"} 1.0' in lines
    assert 'luftpause_held_turns{class="batch"} 0.0' in lines
    assert 'luftpause_in_flight_turns{replica="a"} 1.0' in lines
    assert 'luftpause_replica_healthy{replica="a"} 1.0' in lines
    assert "luftpause_scheduler_decide_seconds_count 5.0" in lines


def test_every_kind_of_order_is_counted() -> None:
    async def story() -> bytes:
        desk = started(spec("a"))
        desk.admit(offer("t1", run="r"))
        desk.probed(probed("a", running=1, waiting=1))
        desk.admit(offer("t2", run="r"))
        desk.end_run(ANONYMOUS_PRINCIPAL, R)
        return desk.metrics.render()

    family = "luftpause_scheduler_decisions_total"
    counted = [line for line in run(story).decode().splitlines() if line.startswith(family)]
    assert counted[:4] == [f'{family}{{kind="{kind}"}} 1.0' for kind in ("place", "hold", "refuse", "forget")]
    assert counted[4:] == [f'{family}{{kind="{kind}"}} 0.0' for kind in ("load", "unload", "drop_kv", "recall")]
    assert len(counted) == len(get_args(Action))


def test_decisions_are_counted_by_how_long_they_took() -> None:
    tally = DecisionTally()
    metrics = SchedulerMetrics(tally, lambda: empty_state(Limits()), lambda: Instant(0.0))
    for seconds in (0.000009, 0.00001, 0.00002, 0.004, 7.0):
        tally.decided(seconds, ())
    lines = metrics.render().decode().splitlines()
    family = "luftpause_scheduler_decide_seconds"
    for bound, count in (("1e-05", 2), ("2.5e-05", 3), ("0.0025", 3), ("0.005", 4), ("0.1", 4), ("+Inf", 5)):
        assert f'{family}_bucket{{le="{bound}"}} {count}.0' in lines
    assert f"{family}_count 5.0" in lines
    assert any(line.startswith(f"{family}_sum 7.004") for line in lines)


def test_what_ails_a_replica_is_logged_once_for_each_cause(caplog: pytest.LogCaptureFixture) -> None:
    async def story() -> None:
        desk = started()
        desk.add_replica(spec("a"))
        for cause in ("refused", "refused", "HTTP 503", "", "refused"):
            desk.probed(probed("a", healthy=not cause, cause=cause))

    with caplog.at_level(logging.INFO, logger="luftpause.scheduler"):
        run(story)
    told = [(record.message, vars(record).get("cause")) for record in caplog.records]
    down = [
        ("replica_not_ready", "refused"),
        ("replica_not_ready", "HTTP 503"),
        ("replica_up", None),
        ("replica_down", "refused"),
    ]
    assert told == down


def test_whoever_debugs_is_told_of_each_hold_and_placement_and_why(caplog: pytest.LogCaptureFixture) -> None:
    async def story() -> None:
        desk = started(spec("a"))
        crowd(desk)
        desk.admit(offer("t", run="r"))
        desk.probed(probed("a"))

    with caplog.at_level(logging.DEBUG, logger="luftpause.scheduler"):
        run(story)
    told = {record.message: vars(record) for record in caplog.records}
    assert told["turn_held"]["why"] == "waiting for room: a runs 1 of 1"
    assert (told["turn_placed"]["turn"], told["turn_placed"]["replica"]) == ("t", "a")
    assert told["turn_placed"]["why"] == "fewest turns in flight"


def test_a_resync_tells_of_a_run_with_each_of_its_models() -> None:
    async def story() -> None:
        desk = started(spec("a"), spec("b", "n"), spec("c", "m", "n"))
        known = KnownRun(
            run=R,
            model=ModelName("m"),
            phase=RunPhase.PAUSED,
            replica=ReplicaId("c"),
            service_class=ServiceClass.INTERACTIVE,
            caller=offer("x").caller,
            principal=ANONYMOUS_PRINCIPAL,
            age_s=3,
        )
        side = replace(known, model=ModelName("n"), phase=RunPhase.IDLE, replica=ReplicaId("b"), age_s=1)
        desk.resync(PeerResynced(peer=PeerId("p"), turns=(), runs=(known, side)))
        desk.admit(offer("t", run="r", model="n"))
        assert desk.admit(offer("u", run="r")).placement.result().replica == "c"
        assert desk.end_run(ANONYMOUS_PRINCIPAL, R)
        assert not desk.state.runs

    run(story)


class Idle:
    """A launcher that never does what it is ordered."""

    def inventory(self) -> LauncherJoined:
        return words.joined(words.model("A"), parking=1 << 30)

    def ordered(self, order: ModelOrder) -> None:
        del order

    async def log(self, model: ModelName, after: int) -> LogSlice:
        del model
        return LogSlice(lines=(), next=after)


def test_a_turn_is_told_its_slot_and_what_to_read_into_it() -> None:
    async def story() -> tuple[Placement, Placement]:
        service, seat, box = started(), Idle(), LauncherId("box")
        service.launchers.joined(seat, seat.inventory())
        first = service.admit(offer("t1", model="A", run="r"))
        service.launchers.told(box, words.up("A", slots=2))
        placed = await first.placement
        usage = Usage(prompt_tokens=1000, completion_tokens=10)
        service.report(replace(finished("t1", "call-1"), usage=usage))
        service.launchers.asked(words.unload_asked("A", keep=True))
        (parked,) = service.state.residency.parked[ModelName("A")].values()
        service.launchers.told(box, words.down("A", kv=(words.saved(parked.file),)))
        second = service.admit(offer("t2", model="A", run="r"))
        service.launchers.told(box, words.up("A", slots=2))
        return placed, await second.placement

    first, second = run(story)
    assert (first.slot, first.restore) == (0, "")
    assert (second.slot, second.restore[-3:]) == (0, ".kv")


def test_what_decisions_leave_behind_is_looked_through_by_their_number() -> None:
    async def story() -> None:
        desk = started(spec("a"))
        with collections() as seen:
            for number in range(FEW_RUNS + DECISIONS_A_LOOK):
                desk.admit(offer(f"t{number}", run=f"r{number}"))
                desk.report(finished(f"t{number}"))
        assert seen == [1, 1]

    run(story)


@pytest.mark.interpreted
@pytest.mark.parametrize("is_open", [True, False])
def test_all_is_looked_at_where_nothing_is_open(is_open: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("luftpause.telemetry.pauses.REST_S", 0.0)
    monkeypatch.setattr("luftpause.telemetry.pauses.LOOKS_A_REST", 2)

    async def story() -> None:
        desk = started(spec("a"))
        with collections() as seen:
            if is_open:
                desk.admit(offer("open", run="open"))
            for number in range(FEW_RUNS + DECISIONS_A_LOOK):
                desk.admit(offer(f"t{number}", run=f"r{number}"))
                desk.report(finished(f"t{number}"))
            for _ in range(4):
                await asyncio.sleep(0)
            desk.close()
        assert seen == ([1, 1] if is_open else [1, 1, 2])

    run(story)
