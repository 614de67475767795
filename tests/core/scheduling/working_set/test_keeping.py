"""How long a paused run's place is kept."""

import pytest

from core.scheduling.builders import BATCH, INTERACTIVE
from core.scheduling.working_set.worlds import replica, world
from luftpause.core.model.ids import Instant, ToolName
from luftpause.core.scheduling.tool_history import Tools
from luftpause.core.scheduling.working_set.keeping import SPEED, WORTH_S, found_out, is_stale, speed_of, worth_s
from luftpause.core.scheduling.working_set.limits import WorkingSetLimits
from luftpause.core.scheduling.working_set.state import Patience

LOOK = ToolName("look")
NOW = Instant(1000.0)


def taught(seconds: float, times: int) -> Tools:
    tools = Tools()
    for _ in range(times):
        tools = tools.taught(LOOK, seconds, NOW)
    return tools


def test_a_place_is_worth_its_memory_in_seconds_of_prefill_and_more_to_interactive_runs() -> None:
    limits = WorkingSetLimits(interactive_weight=3.0)
    known = replica(world(kv=20_000))
    assert speed_of(known) == SPEED
    assert worth_s(known, BATCH, limits) == 20_000 / SPEED
    assert worth_s(known, INTERACTIVE, limits) == 3 * 20_000 / SPEED
    assert worth_s(replica(world(kv=None)), BATCH, limits) == WORTH_S


def test_a_quick_tool_is_waited_for_and_a_slow_one_is_not() -> None:
    assert 1.0 <= found_out(taught(1.0, 30), LOOK, 5.0, NOW).seconds <= 4.0
    assert found_out(taught(120.0, 30), LOOK, 5.0, NOW).seconds == 0.0
    assert found_out(taught(120.0, 30), LOOK, 1000.0, NOW).seconds >= 120.0


def test_who_is_out_for_long_tells_that_the_tool_is_slow() -> None:
    tools = taught(1.0, 2)
    for _ in range(40):
        tools = tools.left(LOOK, Instant(0.0))
    assert found_out(tools, LOOK, 5.0, NOW).seconds < found_out(taught(1.0, 2), LOOK, 5.0, NOW).seconds


@pytest.mark.parametrize(
    ("returned", "worth", "stale"),
    [(20, 5.0, False), (24, 5.0, False), (25, 5.0, True), (20, 6.0, False), (20, 7.0, True)],
)
def test_what_was_found_out_holds_for_a_while(returned: int, worth: float, stale: bool) -> None:
    assert is_stale(Patience(20, 5.0, 2.0), returned, worth) is stale


def test_nothing_found_out_is_stale() -> None:
    assert is_stale(None, 0, 5.0)
