"""The account of policy `working-set` judges by what can be told from outside."""

from dataclasses import replace

import pytest

from core.scheduling.builders import arrived, failed, finished, probed, spec
from luftpause.core.model.ids import ReplicaId, RunId, TurnId
from luftpause.core.model.replicas import Load
from luftpause.core.scheduling.actions import HoldTurn, PlaceTurn
from luftpause.core.scheduling.events import ReplicaAdded
from luftpause.core.scheduling.reasons import PlacedBecause, WaitingForTokens
from luftpause.core.scheduling.state import Limits
from luftpause.core.scheduling.working_set.limits import WorkingSetLimits
from luftpause.testkit.sim.working_account import WorkingSetAccount


def account() -> WorkingSetAccount:
    made = WorkingSetAccount(Limits(working_set=WorkingSetLimits()))
    for name in ("a", "b"):
        made.take(ReplicaAdded(spec=spec(name)), 0.0, ())
        made.take(probed(name), 0.0, ())
    return made


def place(turn: str, replica: str, run: str = "") -> PlaceTurn:
    return PlaceTurn(
        turn=TurnId(turn),
        run=RunId(run or f"run-{turn}"),
        replica=ReplicaId(replica),
        why=PlacedBecause.READ_SOONEST,
        held_s=0.0,
    )


def test_a_turn_goes_where_it_is_served() -> None:
    account().take(arrived("t1"), 0.0, (place("t1", "b"),))
    with pytest.raises(AssertionError, match="it may go to"):
        account().take(arrived("t1"), 0.0, (place("t1", "c"),))


def test_a_run_under_way_stays_where_it_is() -> None:
    told = account()
    told.take(arrived("t1", "r"), 0.0, (place("t1", "b", "r"),))
    with pytest.raises(AssertionError, match="it may go to"):
        told.take(arrived("t2", "r"), 0.0, (place("t2", "a", "r"),))


def test_nobody_waits_beside_an_engine_that_has_nothing_to_do() -> None:
    why = WaitingForTokens(replica=ReplicaId("a"), need=9, free=1)
    with pytest.raises(AssertionError, match="has nothing to do"):
        account().take(arrived("t1"), 0.0, (HoldTurn(turn=TurnId("t1"), why=why),))


def test_what_may_be_larger_than_an_engine_waits_for_one_that_has_more_memory() -> None:
    why = WaitingForTokens(replica=ReplicaId("b"), need=9, free=1)
    told = account()
    for name, tokens in (("a", 1000), ("b", 2000)):
        told.take(replace(probed(name, 0, 0), load=Load(running=0, waiting=0, kv_tokens=tokens)), 0.0, ())
    told.take(arrived("t1"), 0.0, (place("t1", "b"),))
    told.take(arrived("t2"), 0.0, (HoldTurn(turn=TurnId("t2"), why=why),))
    with pytest.raises(AssertionError, match="t2 waits although b has nothing to do"):
        told.take(finished("t1"), 1.0, ())


def test_nobody_is_served_twice() -> None:
    told = account()
    told.take(arrived("t1"), 0.0, (place("t1", "b"),))
    with pytest.raises(AssertionError, match="served twice"):
        told.take(probed("a"), 0.0, (place("t1", "b"),))


def test_a_run_that_asks_on_after_an_answer_may_wait_at_home() -> None:
    why = WaitingForTokens(replica=ReplicaId("a"), need=9, free=1)
    told = account()
    told.take(arrived("t1", "r"), 0.0, (place("t1", "b", "r"),))
    told.take(finished("t1"), 1.0, ())
    told.take(arrived("t2", "r"), 2.0, (HoldTurn(turn=TurnId("t2"), why=why),))


def test_a_run_that_failed_does_not_wait_beside_an_engine_that_has_nothing_to_do() -> None:
    why = WaitingForTokens(replica=ReplicaId("a"), need=9, free=1)
    told = account()
    told.take(arrived("t1", "r"), 0.0, (place("t1", "b", "r"),))
    told.take(failed("t1"), 1.0, ())
    with pytest.raises(AssertionError, match="has nothing to do"):
        told.take(arrived("t2", "r"), 2.0, (HoldTurn(turn=TurnId("t2"), why=why),))
