"""How long paused runs keep their model, and whose do not."""

import pytest
from immutables import Map

from core.scheduling.builders import World, arrived, finished, spec
from luftpause.core.model.ids import Instant, ModelName, RunId, ToolName
from luftpause.core.scheduling.residency.leases import RETURNS_MIN, Returns, ancestors_of, out_but, root_of
from luftpause.core.scheduling.residency.state import NO_TOOL, PAUSE_STEP_S, Absence, Residency, ResidencyLimits
from luftpause.core.scheduling.tool_history import Tools

LIMITS = ResidencyLimits()
LOOK = ToolName("look")


def taught(seconds: float, times: int = 30) -> Tools:
    tools = Tools()
    for _ in range(times):
        tools = tools.taught(LOOK, seconds, Instant(0.0))
    return tools


def out_since(instant: float, tool: ToolName = LOOK) -> Map[Absence, int]:
    return Map({(tool, int(instant / PAUSE_STEP_S)): 1})


def test_a_tool_that_is_not_known_has_the_operators_figures() -> None:
    returns = Returns(taught(1.0, RETURNS_MIN - 1), LIMITS, Instant(100.0))
    for tool in (LOOK, NO_TOOL, ToolName("other")):
        assert returns.first_back_s(out_since(99.0, tool)) == LIMITS.unknown_tool_s
        assert returns.leased_until(out_since(99.0, tool)) == 99.0 + LIMITS.soft_lease_s_max
        assert returns.next_ahead(out_since(99.0, tool), 2.0) is None


def test_a_run_is_expected_when_half_of_those_still_out_are_back() -> None:
    returns = Returns(taught(30.0), LIMITS, Instant(100.0))
    just_gone, nearly_back = returns.first_back_s(out_since(100.0)), returns.first_back_s(out_since(72.0))
    assert just_gone == pytest.approx(28.0, abs=4.0)
    assert nearly_back is not None
    assert nearly_back < 5.0
    both = out_since(100.0).update(out_since(72.0))
    assert returns.first_back_s(both) == nearly_back


def test_a_lease_ends_when_nearly_all_would_be_back() -> None:
    returns = Returns(taught(1.0), LIMITS, Instant(100.0))
    until = returns.leased_until(out_since(100.0))
    assert until is not None
    assert 100.5 < until < 104.0
    assert returns.leased_until(out_since(90.0)) is None
    assert returns.first_back_s(out_since(90.0)) is None
    assert returns.leased_until(Map()) is None


def test_a_load_ahead_is_over_as_the_run_comes_back_and_is_not_begun_when_it_is_late() -> None:
    returns = Returns(taught(30.0), LIMITS, Instant(100.0))
    at = returns.next_ahead(out_since(100.0), 8.0)
    assert at is not None
    assert 117.0 < at < 123.0
    assert returns.next_ahead(out_since(40.0), 8.0) is None


def test_whose_child_waits_is_left_out_and_so_are_its_parents() -> None:
    world = World(spec("r", "m"))
    for name in ("top", "middle", "other"):
        world.place(arrived(name, name))
    runs = world.state.runs
    middle = runs[RunId("middle"), ModelName("m")]._replace(parent=RunId("top"))
    runs = runs.set(middle.part, middle)
    found = ancestors_of([RunId("middle"), None, RunId("nobody")], runs, world.state.models_of)
    assert found == {(RunId("middle"), ModelName("m")), (RunId("top"), ModelName("m"))}
    assert root_of(middle, runs, world.state.models_of) == "top"
    assert root_of(runs[RunId("other"), ModelName("m")], runs, world.state.models_of) == "other"


def test_a_circle_of_parents_ends() -> None:
    world = World(spec("r", "m"))
    world.place(arrived("t", "r"))
    run = world.state.runs[RunId("r"), ModelName("m")]._replace(parent=RunId("r"))
    runs = world.state.runs.set(run.part, run)
    assert ancestors_of([RunId("r")], runs, world.state.models_of) == {run.part}
    assert root_of(run, runs, world.state.models_of) == "r"


def test_those_that_are_left_out_are_taken_off_the_count() -> None:
    world = World(spec("r", "m"))
    for name in ("one", "two"):
        world.place(arrived(name, name))
        world.tell(finished(name, tools=["look"]))
    model = ModelName("m")
    out: Map[Absence, int] = Map({(LOOK, 0): 2})
    residency = Residency(paused=Map({model: out}))
    assert dict(out_but(residency, model, [(RunId("one"), model)], world.state.runs)) == {(LOOK, 0): 1}
    both = [(RunId("one"), model), (RunId("two"), model), (RunId("one"), ModelName("else"))][:2]
    assert dict(out_but(residency, model, both, world.state.runs)) == {}
    assert dict(out_but(residency, ModelName("else"), both, world.state.runs)) == {}
