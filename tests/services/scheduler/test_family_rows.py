"""Families as programs see them."""

import json
from typing import Any

import msgspec
import pytest

from luftpause.core.model.ids import TurnId
from luftpause.core.model.turns import Usage
from luftpause.core.scheduling.events import TurnFinished
from luftpause.services.scheduler import family_rows
from luftpause.services.scheduler.family_rows import KEPT_S_MAX, FamilyRows
from luftpause.services.scheduler.timeline import Timeline
from services.scheduler.running import offer, run, spec
from services.scheduler.watched import Clock, watched

pytestmark = pytest.mark.interpreted  # its clock inherits from the service


def a_family_of_three() -> tuple[Clock, Timeline]:
    service, timeline = watched(spec("a"))
    for turn, name, parent in (("t1", "root", None), ("t2", "child", "root"), ("t3", "below", "child")):
        service.admit(offer(turn, run=name, parent=parent))
        service.report(TurnFinished(turn=TurnId(turn), usage=Usage(prompt_tokens=100, completion_tokens=7)))
    return service, timeline


def rows_now(families: FamilyRows, service: Clock) -> dict[str, Any]:
    told = json.loads(msgspec.json.encode(families.rows(service.state, service.now())))
    return {row["run"]: row for row in told}


def test_families_are_told_with_what_they_have_cost() -> None:
    async def tell() -> None:
        service, timeline = a_family_of_three()
        families = rows_now(FamilyRows(timeline), service)
        assert families["root"]["own"] == {"turns": 1, "prompt_tokens": 100, "completion_tokens": 7}
        assert families["root"]["subtree"] == {"turns": 3, "prompt_tokens": 300, "completion_tokens": 21}
        assert families["child"]["children"] == [
            {"run": "below", "phase": "idle", "class": "interactive", "own": families["root"]["own"]}
        ]

    run(tell)


def test_a_look_that_costs_next_to_nothing_is_never_old(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(family_rows, "COSTLY_S", 1e9)

    async def tell() -> None:
        service, timeline = a_family_of_three()
        families = FamilyRows(timeline)
        assert rows_now(families, service)["root"]["at_work"] == 0
        service.admit(offer("t4", run="child", parent="root"))
        assert rows_now(families, service)["root"]["at_work"] == 1

    run(tell)


def test_a_costly_look_is_good_for_a_while_and_no_longer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(family_rows, "COSTLY_S", 0.0)
    monkeypatch.setattr(family_rows, "RESTS", 1e9)

    async def tell() -> None:
        service, timeline = a_family_of_three()
        families = FamilyRows(timeline)
        assert rows_now(families, service)["root"]["at_work"] == 0
        service.admit(offer("t4", run="child", parent="root"))
        assert rows_now(families, service)["root"]["at_work"] == 0
        service.after(KEPT_S_MAX)
        assert rows_now(families, service)["root"]["at_work"] == 1

    run(tell)
