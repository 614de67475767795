"""What keeping KV is worth, by figures alone."""

import pytest

from luftpause.core.scheduling.residency import kv_costs
from luftpause.core.scheduling.residency.kv_state import KvCosts


def test_a_slow_prefill_is_worth_a_save_and_a_fast_one_is_not() -> None:
    slow = KvCosts(prefill_s=0.01, save_s=0.001, restore_s=0.001)
    fast = KvCosts(prefill_s=0.001, save_s=0.001, restore_s=0.001)
    assert kv_costs.gain_s(slow, 1000) == pytest.approx(8.0)
    assert kv_costs.gain_s(fast, 1000) < 0
    assert kv_costs.kept_gain_s(fast, 1000) == 0  # what is written already costs only the way back


def test_before_anything_was_measured_a_save_is_tried() -> None:
    assert kv_costs.gain_s(KvCosts(), 1000) > 0
    assert kv_costs.size_of(KvCosts(), 10) == 10 * kv_costs.SIZE


def test_the_way_back_is_thought_as_long_as_the_way_out_until_it_was_seen() -> None:
    costs = kv_costs.after_save(KvCosts(prefill_s=0.01), 100, 1000, 0.2)
    assert costs == KvCosts(prefill_s=0.01, save_s=0.002, size=10.0)
    assert kv_costs.gain_s(costs, 100) == pytest.approx(0.6)
    costs = kv_costs.after_restore(costs, 100, 0.1, 100)
    assert costs.restore_s == pytest.approx(0.001)
    assert kv_costs.gain_s(costs, 100) == pytest.approx(0.7)


def test_figures_follow_what_is_seen() -> None:
    costs = kv_costs.after_save(kv_costs.after_save(KvCosts(), 10, 100, 1.0), 10, 300, 3.0)
    assert costs.save_s == pytest.approx(0.2)
    assert costs.size == pytest.approx(20.0)
    assert kv_costs.after_save(costs, 0, 100, 1.0) == costs
    assert kv_costs.after_prefill(costs, 0.0) == costs
    assert kv_costs.after_prefill(costs, 0.5).prefill_s == 0.5


@pytest.mark.parametrize(
    ("took_s", "cached", "misses"), [(None, 100, 3), (0.1, 49, 3), (0.1, 50, 0), (0.1, None, 0), (None, None, 3)]
)
def test_a_restore_that_brought_nothing_is_counted_until_one_does(
    took_s: float | None, cached: int | None, misses: int
) -> None:
    assert kv_costs.after_restore(KvCosts(misses=2), 100, took_s, cached).misses == misses
