"""Chaos over the residency of models: nothing that happens may break an invariant, an order, or a turn's wait."""

import pytest

from sim.launcher_chaos import LauncherChaos


@pytest.mark.parametrize("seed", range(20))
def test_bad_days_break_nothing(seed: int) -> None:
    LauncherChaos(seed).run(600)


@pytest.mark.parametrize("seed", range(4))
def test_good_days_break_nothing(seed: int) -> None:
    LauncherChaos(seed, wild=False).run(600)


@pytest.mark.nightly
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("seed", range(1000, 1200))
def test_many_bad_days_break_nothing(seed: int) -> None:
    LauncherChaos(seed).run(2_000)
