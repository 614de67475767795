"""One time line for several clocks."""

from luftpause.adapters.event_log.lines import Segment, line_in
from luftpause.testkit.what_if.timeline import Timeline
from testkit.what_if.recorded import declared, log_of


def segment(now: float, second: int) -> Segment:
    line = line_in(log_of(*declared(at=now), utc=f"2026-01-01T00:00:{second:02}Z")[0])
    assert isinstance(line, Segment)
    return line


def test_a_segment_of_the_same_clock_changes_nothing() -> None:
    line = Timeline()
    line.begin(segment(1000.0, 0))
    assert line.at(1004.5) == 4.5
    line.begin(segment(1005.0, 5))
    assert line.at(1006.0) == 6.0


def test_another_clock_goes_on_where_the_wall_clock_says() -> None:
    line = Timeline()
    line.begin(segment(1000.0, 0))
    line.at(1010.0)
    line.begin(segment(3.0, 30))
    assert line.at(4.0) == 31.0


def test_time_never_goes_back_whatever_clocks_say() -> None:
    line = Timeline()
    line.begin(segment(1000.0, 40))
    line.at(1020.0)
    line.begin(segment(3.0, 10))
    assert line.at(3.0) == 20.0
    assert line.at(2.0) == 20.0
