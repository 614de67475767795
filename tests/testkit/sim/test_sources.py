"""Where a world's runs come from."""

import msgspec
import pytest

from luftpause.testkit.sim.sources import Drawn
from testkit.sim.worlds import crowd, group


def test_a_closed_loop_begins_once_for_each_agent_and_goes_on_when_a_run_has_ended() -> None:
    source = Drawn(crowd(group(count=3)), 1)
    starts = source.starts()
    assert [stream for _, stream in starts] == [0, 0, 0]
    assert all(0 < at < 2.0 for at, _ in starts)
    assert source.next_at(0, 5.0) is None
    follower = (source.begin(0), source.follow(0))[1]
    assert follower is not None
    assert follower.run == "batch-1"


def test_an_open_loop_goes_on_by_the_clock_alone() -> None:
    source = Drawn(crowd(group("people", count=2), group("flood", runs_per_min=60.0)), 1)
    assert [stream for _, stream in source.starts()] == [0, 0, 1]
    following = source.next_at(1, 100.0)
    assert following is not None
    assert following > 100.0
    assert source.follow(1) is None
    assert [source.begin(1).run, source.begin(1).run, source.begin(0).run] == ["flood-0", "flood-1", "people-0"]


def test_a_burst_begins_at_one_instant_and_the_mean_rate_stays() -> None:
    burst = msgspec.structs.replace(group("burst", runs_per_min=60.0), burst=4)
    source = Drawn(crowd(burst), 1)
    at: float | None = source.starts()[0][0]
    begun: list[float] = []
    for _ in range(4000):
        assert at is not None
        begun.append(at)
        at = source.next_at(0, at)
    assert all(len(set(begun[first : first + 4])) == 1 for first in range(0, 4000, 4))
    assert 4000 / begun[-1] == pytest.approx(1.0, rel=0.1)
