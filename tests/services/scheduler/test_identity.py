"""Which run a turn belongs to."""

import pytest

from luftpause.core.model.ids import Instant, PrincipalId, RunId, ToolCallId
from luftpause.core.model.refusals import Refusal, RefusalReason
from luftpause.core.model.turns import IdentityKeys
from luftpause.services.scheduler import identity
from luftpause.services.scheduler.identity import RunIdentity

ALICE = PrincipalId("alice")
BOB = PrincipalId("bob")


class Memory:
    """A RunIdentity whose clock and live runs a test sets."""

    def __init__(self) -> None:
        self.now = Instant(0.0)
        self.live: set[RunId] = set()
        self.identity = RunIdentity(memory_s=1800, is_live=self.live.__contains__)

    def resolve(
        self, principal: PrincipalId, run: str | None = None, *, echoes: tuple[str, ...] = ()
    ) -> RunId | Refusal:
        keys = IdentityKeys(run=None if run is None else RunId(run), tool_calls=tuple(map(ToolCallId, echoes)))
        resolved = self.identity.resolve(principal, keys, self.now)
        if not isinstance(resolved, Refusal):
            self.identity.claim(resolved, principal, self.now)
        return resolved

    def learn(self, run: str, *calls: str) -> None:
        self.identity.learn(RunId(run), tuple(map(ToolCallId, calls)), self.now)


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
    memory.live.add(RunId("r1"))
    memory.learn("r1", "c1")
    memory.now = Instant(1800.0)
    assert memory.resolve(ALICE, echoes=("c1",)) == "r1"
    memory.now = Instant(1800.1)
    assert memory.resolve(ALICE, echoes=("c1",)) != "r1"


def test_the_owner_of_a_live_run_is_never_forgotten_but_that_of_a_gone_one_is() -> None:
    memory = Memory()
    memory.resolve(ALICE, "live")
    memory.resolve(ALICE, "gone")
    memory.live.add(RunId("live"))
    memory.now = Instant(5000.0)
    assert isinstance(memory.resolve(BOB, "live"), Refusal)
    assert memory.resolve(BOB, "gone") == "gone"


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
