"""What one seed of one arm came to in one scenario, whoever measured it. Decides nothing."""

from dataclasses import fields

import msgspec

from luftpause.testkit.sim.figures import Figures

FIGURES = tuple(field.name for field in fields(Figures))
"""All figures by name, in the order in which they are stored."""

QUANTILES = 50
"""The distribution of run times is kept as so many points."""

TIME_SLICES = 48
"""The course of the cache over the counted time is kept in so many slices."""


class Curves(msgspec.Struct, frozen=True, kw_only=True):
    """What a plot shows.

    Attributes:
        run_s: run times by class, QUANTILES + 1 of them from the shortest to the longest, evenly by rank.
        cached: for each slice of the counted time, what was found in a cache and what could have been, tokens.
    """

    run_s: dict[str, tuple[float, ...]] = {}
    cached: tuple[tuple[int, int], ...] = ()


class Sample(msgspec.Struct, frozen=True, kw_only=True):
    """One seed of one arm.

    Attributes:
        figures: by name; None where nothing was measured.
        curves: for plots.
        broken: which rule was broken; empty when none was.
        took_s: real time.
        cores: how many were kept busy by each part of what was measured; empty where nobody looked.
    """

    figures: dict[str, float | None]
    curves: Curves = Curves()
    broken: str = ""
    took_s: float = 0.0
    cores: dict[str, float] = {}

    def figure(self, name: str) -> float | None:
        """Return a figure; None when it was not measured."""
        return self.figures.get(name)
