"""Deadlines in buckets."""

from hypothesis import given
from hypothesis import strategies as st

from luftpause.core.model.ids import Instant, RunId
from luftpause.core.scheduling.wheel import LOOK_AHEAD, Wheel


def empty(step_s: float = 1.0) -> Wheel[RunId]:
    return Wheel(step_s=step_s)


def test_keys_come_out_when_their_bucket_is_due_in_order() -> None:
    wheel = empty().put(RunId("b"), 2).put(RunId("a"), 2).put(RunId("c"), 3)
    assert wheel.next_at() == 2.0
    assert wheel.take_due(Instant(1.9)) == ((), wheel)
    taken, rest = wheel.take_due(Instant(2.0))
    assert taken == ("a", "b")
    assert rest.next_at() == 3.0


def test_a_key_put_again_moves() -> None:
    wheel = empty().put(RunId("a"), 1).put(RunId("a"), 5)
    assert wheel.take_due(Instant(4.0))[0] == ()
    assert wheel.take_due(Instant(5.0))[0] == ("a",)


def test_dropping_the_last_key_leaves_nothing_to_wake_up_for() -> None:
    wheel = empty()
    assert wheel.put(RunId("a"), 1).drop(RunId("a")) == wheel
    assert wheel.drop(RunId("a")) == wheel


@given(
    st.lists(st.tuples(st.sampled_from("abcdef"), st.none() | st.floats(0, 50)), max_size=40),
    st.floats(0, 60),
    st.sampled_from([0.05, 1.0, 7.0]),
)
def test_due_keys_are_exactly_those_whose_rounded_deadline_has_passed(
    changes: list[tuple[str, float | None]], now: float, step_s: float
) -> None:
    wheel = empty(step_s)
    model: dict[RunId, int] = {}
    for name, deadline in changes:
        key = RunId(name)
        if deadline is None:
            wheel = wheel.drop(key)
            model.pop(key, None)
        else:
            model[key] = wheel.bucket(deadline)
            wheel = wheel.put(key, model[key])
    taken, rest = wheel.take_due(Instant(now))
    assert sorted(taken) == sorted(k for k, b in model.items() if b * step_s <= now)
    assert dict(rest.bucket_of) == {k: b for k, b in model.items() if b * step_s > now}
    next_at = rest.next_at()
    assert next_at is None or next_at > now


@given(st.sets(st.integers(1, 400), min_size=LOOK_AHEAD + 1), st.lists(st.integers(1, 450), max_size=8))
def test_of_many_buckets_each_comes_out_in_time_and_few_are_looked_at(buckets: set[int], looks: list[int]) -> None:
    wheel = empty()
    for bucket in sorted(buckets):
        wheel = wheel.put(RunId(f"{bucket}"), bucket)
    for now in sorted(looks):
        taken, wheel = wheel.take_due(Instant(float(now)))
        assert [int(key) for key in taken] == sorted(bucket for bucket in buckets if bucket <= now)
        buckets = {bucket for bucket in buckets if bucket > now}
        next_at = wheel.next_at()
        assert (next_at is None) is (not buckets)
        assert next_at is None or now < next_at <= min(buckets)
        assert next_at is None or len(buckets) > LOOK_AHEAD or next_at == float(min(buckets))
