"""A trace."""

from dataclasses import replace

from luftpause.testkit.what_if.extract import extract
from testkit.what_if.recorded import declared, log_of, turn


def test_a_run_is_whole_when_the_log_has_both_its_ends() -> None:
    trace = extract(log_of(*declared(), *turn("1", "r", 0.0, 1.0), *turn("2", "s", 2.0, 1.0)))
    run = trace.runs[0]
    assert run.whole
    assert not replace(run, begun_before=True).whole
    assert not replace(run, unfinished=True).whole
    assert [each.arrived_at for each in trace.turns()] == [0.0, 2.0]
