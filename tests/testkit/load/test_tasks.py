"""Made-up tasks and contexts."""

from luftpause.testkit.fake_engine.markers import read_orders
from luftpause.testkit.load.tasks import context_text, task_text, tool_text


def test_a_task_tells_the_fake_engine_how_many_rounds_to_play() -> None:
    assert read_orders(task_text(1, 3)).tool_rounds == 3
    assert task_text(1, 3) != task_text(2, 3)


def test_a_context_has_the_length_asked_for_and_differs_from_run_to_run() -> None:
    first, second = context_text("a", 5000), context_text("b", 5000)
    assert len(first) == len(second) == 5000
    assert first[:40] != second[:40]
    assert context_text("a", 5000) == first
    assert context_text("a", 0) == ""


def test_tool_results_differ_from_call_to_call() -> None:
    assert tool_text("a", 1, 100) != tool_text("a", 2, 100)
    assert len(tool_text("a", 1, 100)) == 100
