"""Which run a turn belongs to."""

import pytest

from luftpause.core.model.ids import ANONYMOUS_CALLER, Instant, Mark, ModelName, PrincipalId, RunId, ToolCallId, TurnId
from luftpause.core.model.marks import call_marks, named_marks
from luftpause.core.model.refusals import Refusal, RefusalReason
from luftpause.core.model.turns import IdentityKeys, ServiceClass
from luftpause.core.scheduling.state import Run
from luftpause.services.scheduler import identity
from luftpause.services.scheduler.identity import RunIdentity

ALICE = PrincipalId("alice")
BOB = PrincipalId("bob")


class Memory:
    """A RunIdentity whose clock and live runs a test sets."""

    def __init__(self) -> None:
        self.now = Instant(0.0)
        self.live: dict[RunId, tuple[Run, ...]] = {}
        self.identity = RunIdentity(memory_s=1800, find=lambda run: self.live.get(run, ()))

    def resolve(
        self, principal: PrincipalId, run: str | None = None, *, echoes: tuple[str, ...] = ()
    ) -> RunId | Refusal:
        keys = IdentityKeys(run=None if run is None else RunId(run), tool_calls=tuple(map(ToolCallId, echoes)))
        return self.take(principal, keys)

    def take(self, principal: PrincipalId, keys: IdentityKeys) -> RunId | Refusal:
        """Do what the shell does with an offer."""
        resolved = self.identity.resolve(principal, keys, self.now)
        if not isinstance(resolved, Refusal):
            self.identity.claim(resolved, principal, self.now)
            self.identity.learn(resolved, named_marks(keys), self.now)
        return resolved

    def learn(self, run: str, *calls: str) -> None:
        self.identity.learn(RunId(run), call_marks(map(ToolCallId, calls)), self.now)

    def rests(self, run: object, *, model: str = "m", paused: bool = False, turns: tuple[TurnId, ...] = ()) -> None:
        """Let the scheduler know a run."""
        assert isinstance(run, str)
        part = Run(
            run=RunId(run),
            model=ModelName(model),
            principal=ALICE,
            caller=ANONYMOUS_CALLER,
            service_class=ServiceClass.BATCH,
            ended_at=self.now,
            paused=paused,
            turns=turns,
        )
        others = tuple(known for known in self.live.get(part.run, ()) if known.model != model)
        self.live[part.run] = (*others, part)


def test_the_run_header_is_believed_before_anything_else() -> None:
    memory = Memory()
    memory.resolve(ALICE, "r1")
    memory.learn("r1", "c1")
    assert memory.resolve(ALICE, "r2", echoes=("c1",)) == "r2"


def test_without_a_header_a_run_is_recognised_by_the_tool_calls_it_echoes() -> None:
    memory = Memory()
    memory.resolve(ALICE, "r1")
    memory.learn("r1", "c1", "c2")
    assert memory.resolve(ALICE, echoes=("unknown", "c2")) == "r1"


def test_a_session_whose_run_was_named_in_between_goes_on_in_the_named_one() -> None:
    memory = Memory()
    alone = IdentityKeys(session="s")
    first = memory.take(ALICE, alone)
    assert memory.take(ALICE, IdentityKeys(session="s", run=RunId("mine"))) == "mine" != first
    assert [memory.take(ALICE, alone) for _ in range(3)] == ["mine"] * 3


def test_tool_calls_are_private_to_their_principal() -> None:
    memory = Memory()
    memory.resolve(ALICE, "r1")
    memory.learn("r1", "c1")
    assert memory.resolve(BOB, echoes=("c1",)) != "r1"


def test_a_tool_call_id_of_two_runs_identifies_neither() -> None:
    memory = Memory()
    for name in ("r1", "r2"):
        memory.resolve(ALICE, name)
        memory.learn(name, "call_0", f"own-{name}")
    assert memory.resolve(ALICE, echoes=("call_0",)) not in {"r1", "r2"}
    assert memory.resolve(ALICE, echoes=("call_0", "own-r2")) == "r2"


def test_echoes_of_two_runs_mean_a_new_run() -> None:
    memory = Memory()
    for name in ("r1", "r2"):
        memory.resolve(ALICE, name)
        memory.learn(name, f"own-{name}")
    assert memory.resolve(ALICE, echoes=("own-r1", "own-r2")) not in {"r1", "r2"}


def test_minted_ids_are_long_and_never_the_same() -> None:
    memory = Memory()
    minted = {memory.resolve(ALICE) for _ in range(100)}
    assert len(minted) == 100
    assert all(isinstance(run, str) and run.startswith("run_") and len(run) >= 4 + 22 for run in minted)


def test_a_run_of_somebody_else_does_not_exist_and_looks_like_one_that_never_did() -> None:
    memory = Memory()
    memory.resolve(ALICE, "r1")
    refusal = memory.resolve(BOB, "r1")
    assert refusal == Refusal(reason=RefusalReason.UNKNOWN_RUN, message="no run 'r1'")
    assert memory.identity.owner(RunId("r1")) == ALICE


def test_a_forgotten_run_is_anybodys_and_its_tool_calls_point_nowhere() -> None:
    memory = Memory()
    memory.resolve(ALICE, "r1")
    memory.learn("r1", "c1")
    memory.identity.forget(RunId("r1"))
    assert memory.resolve(ALICE, echoes=("c1",)) != "r1"
    assert memory.resolve(BOB, "r1") == "r1"


def test_tool_calls_are_remembered_for_thirty_minutes() -> None:
    memory = Memory()
    memory.resolve(ALICE, "r1")
    memory.rests("r1")
    memory.learn("r1", "c1")
    memory.now = Instant(1800.0)
    assert memory.resolve(ALICE, echoes=("c1",)) == "r1"
    memory.now = Instant(1800.1)
    assert memory.resolve(ALICE, echoes=("c1",)) != "r1"


def test_the_owner_of_a_live_run_is_never_forgotten_but_that_of_a_gone_one_is() -> None:
    memory = Memory()
    memory.resolve(ALICE, "live")
    memory.resolve(ALICE, "gone")
    memory.rests("live")
    memory.now = Instant(5000.0)
    assert isinstance(memory.resolve(BOB, "live"), Refusal)
    assert memory.resolve(BOB, "gone") == "gone"


@pytest.mark.interpreted
def test_the_memory_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(identity, "ENTRIES_MAX", 10)
    memory = Memory()
    memory.resolve(ALICE, "r0")
    memory.learn("r0", *(f"c{number}" for number in range(50)))
    assert memory.resolve(ALICE, echoes=("c49",)) == "r0"
    assert memory.resolve(ALICE, echoes=("c1",)) != "r0"
    for number in range(50):
        memory.resolve(ALICE, f"r{number}")
    assert memory.identity.owner(RunId("r1")) is None
    assert memory.identity.owner(RunId("r49")) == ALICE


def test_a_session_is_its_run_whatever_else_a_request_says() -> None:
    memory = Memory()
    first = memory.take(ALICE, IdentityKeys(session="codex:parent", cache_key="shared"))
    memory.rests(first)
    assert memory.take(ALICE, IdentityKeys(session="codex:parent")) == first
    child = memory.take(ALICE, IdentityKeys(session="codex:child", cache_key="shared", parent_session="codex:parent"))
    assert child != first
    assert memory.identity.parent(ALICE, IdentityKeys(parent_session="codex:parent"), RunId("kid")) == first
    assert memory.identity.parent(BOB, IdentityKeys(parent_session="codex:parent"), RunId("kid")) is None
    assert memory.take(BOB, IdentityKeys(session="codex:parent")) != first


def test_a_run_that_is_named_teaches_its_session() -> None:
    memory = Memory()
    memory.take(ALICE, IdentityKeys(run=RunId("r"), session="session:s"))
    assert memory.take(ALICE, IdentityKeys(session="session:s")) == "r"


def test_echoed_calls_are_believed_before_a_cache_key() -> None:
    memory = Memory()
    keyed = memory.take(ALICE, IdentityKeys(cache_key="k"))
    memory.rests(keyed)
    memory.resolve(ALICE, "r")
    memory.learn("r", "c")
    assert memory.take(ALICE, IdentityKeys(tool_calls=(ToolCallId("c"),), cache_key="other")) == "r"
    assert memory.take(ALICE, IdentityKeys(tool_calls=(ToolCallId("new"),), cache_key="k")) == keyed


@pytest.mark.parametrize(("paused", "turns"), [(True, ()), (False, (TurnId("t.1"),))])
def test_a_cache_key_that_many_share_at_once_identifies_nothing(paused: bool, turns: tuple[TurnId, ...]) -> None:
    memory = Memory()
    first = memory.take(ALICE, IdentityKeys(cache_key="my-app"))
    memory.rests(first, paused=paused, turns=turns)
    second = memory.take(ALICE, IdentityKeys(cache_key="my-app"))
    memory.rests(first)
    memory.rests(second)
    third = memory.take(ALICE, IdentityKeys(cache_key="my-app"))
    assert len({first, second, third}) == 3


def test_what_was_said_identifies_a_run_that_is_not_in_use() -> None:
    memory = Memory()
    said = (Mark("a:1"), Mark("t:2"))
    memory.resolve(ALICE, "r")
    memory.identity.learn(RunId("r"), said, memory.now)
    memory.rests("r", paused=True)
    assert memory.take(ALICE, IdentityKeys(said=(Mark("c:0"), *said))) == "r"
    assert memory.take(BOB, IdentityKeys(said=said)) != "r"
    memory.rests("r", turns=(TurnId("t.1"),))
    assert memory.take(ALICE, IdentityKeys(said=said)) != "r"


def test_what_two_runs_were_told_identifies_neither() -> None:
    memory = Memory()
    for name in ("r", "s"):
        memory.resolve(ALICE, name)
        memory.identity.learn(RunId(name), (Mark("a:1"),), memory.now)
        memory.rests(name)
    assert memory.take(ALICE, IdentityKeys(said=(Mark("a:1"),))) not in {"r", "s"}


def test_a_run_that_is_in_use_with_any_model_is_not_recognised_by_what_others_may_share() -> None:
    memory = Memory()
    keys = IdentityKeys(said=(Mark("said:1"),))
    memory.resolve(ALICE, "r")
    memory.identity.learn(RunId("r"), keys.said, memory.now)
    memory.rests("r", model="m")
    memory.rests("r", model="n", turns=(TurnId("t.1"),))
    assert memory.take(ALICE, keys) != "r"
    memory.rests("r", model="n", paused=True)
    assert memory.take(ALICE, keys) == "r"


def test_a_parent_is_found_by_the_tool_call_that_began_its_child() -> None:
    memory = Memory()
    memory.resolve(ALICE, "boss")
    memory.learn("boss", "toolu_1")
    by_call = IdentityKeys(run=RunId("kid"), parent_call=ToolCallId("toolu_1"))
    memory.take(ALICE, by_call)
    assert memory.identity.parent(ALICE, by_call, RunId("kid")) == "boss"
    assert memory.identity.parent(BOB, by_call, RunId("kid")) is None
    assert memory.identity.parent(ALICE, IdentityKeys(parent_call=ToolCallId("nobodys")), RunId("kid")) is None
    assert memory.identity.parent(ALICE, by_call, RunId("boss")) is None, "nobody is its own parent"
    named = IdentityKeys(parent=RunId("chief"), parent_call=ToolCallId("toolu_1"))
    assert memory.identity.parent(ALICE, named, RunId("kid")) == "chief"


def test_a_call_of_two_runs_names_no_parent_but_its_session_may() -> None:
    memory = Memory()
    for name in ("r1", "r2"):
        memory.take(ALICE, IdentityKeys(run=RunId(name), session=f"codex:{name}"))
        memory.learn(name, "call_0")
    keys = IdentityKeys(parent_call=ToolCallId("call_0"))
    assert memory.identity.parent(ALICE, keys, RunId("kid")) is None
    keys = IdentityKeys(parent_call=ToolCallId("call_0"), parent_session="codex:r2")
    assert memory.identity.parent(ALICE, keys, RunId("kid")) == "r2"


SAID = IdentityKeys(said=(Mark("a:1"),))
KEYED = IdentityKeys(cache_key="k")
CALLED = IdentityKeys(tool_calls=(ToolCallId("call_1"),))


def test_who_shows_no_signs_of_a_run_or_names_it_lacks_no_word() -> None:
    """A new conversation, a first turn with a session or a cache key of its own: they are what they seem to be."""
    memory = Memory()
    named = IdentityKeys(run=RunId("r"), tool_calls=CALLED.tool_calls)
    for keys in (IdentityKeys(), IdentityKeys(session="s"), IdentityKeys(session="s", said=SAID.said), KEYED, named):
        assert not memory.identity.lacks_word(ALICE, keys)


def test_calls_and_words_that_nobody_told_of_lack_a_word_until_somebody_does() -> None:
    memory = Memory()
    memory.resolve(ALICE, "r")
    memory.rests("r")
    for keys, marks in ((CALLED, call_marks(CALLED.tool_calls)), (SAID, SAID.said)):
        assert memory.identity.lacks_word(ALICE, keys)
        memory.identity.learn(RunId("r"), marks, memory.now)
        assert not memory.identity.lacks_word(ALICE, keys)
        assert memory.identity.lacks_word(BOB, keys), "to him it is nobody's"


def test_a_run_that_still_seems_in_use_lacks_the_word_that_its_turn_is_over() -> None:
    memory = Memory()
    memory.take(ALICE, IdentityKeys(run=RunId("r"), cache_key="k"))
    memory.identity.learn(RunId("r"), SAID.said, memory.now)
    memory.rests("r", turns=(TurnId("t"),))
    assert memory.identity.lacks_word(ALICE, KEYED)
    assert memory.identity.lacks_word(ALICE, SAID)
    memory.rests("r")
    assert not memory.identity.lacks_word(ALICE, KEYED)
    assert not memory.identity.lacks_word(ALICE, SAID)


def test_of_what_identifies_nobody_no_word_is_lacking() -> None:
    memory = Memory()
    keys = IdentityKeys(tool_calls=CALLED.tool_calls, cache_key="k")
    for name in ("r", "s"):
        memory.take(ALICE, IdentityKeys(run=RunId(name), cache_key="k"))
        memory.learn(name, "call_1")
        memory.rests(name)
    assert not memory.identity.lacks_word(ALICE, CALLED)
    assert not memory.identity.lacks_word(ALICE, keys)
