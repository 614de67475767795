"""Where luftpause stands against the targets of its LLM door: met, or missed by how much.

A limit is a ratio to a peer of the same run wherever one exists. What a run cannot tell is said to be not measured,
with the reason, and never counts as met.
"""

from dataclasses import dataclass

from benchmarks.doorbench.behaviour import Behaviour
from benchmarks.doorbench.results import Results

OURS, SGLANG, NGINX, LITELLM = "luftpause", "sglang-router", "nginx", "litellm"
ONE_WORKER, TWO_WORKERS = "one-worker", "two-workers"
_BUSY = 0.85
_SMALL = 0.05


@dataclass(frozen=True, slots=True, kw_only=True)
class Limit:
    """One bound and what was measured.

    Attributes:
        label: the bound in words, with its unit.
        value: the measured figure in the unit of `bound`; None when it was not measured.
        missing: why it was not.
    """

    label: str
    value: float | None
    bound: float
    at_most: bool = True
    shown: str = ""
    missing: str = "not measured"

    @property
    def met(self) -> bool | None:
        """Whether the bound holds; None when nobody knows."""
        if self.value is None:
            return None
        return self.value <= self.bound if self.at_most else self.value >= self.bound

    def verdict(self) -> str:
        """Return the bound, what was measured, and `met` or `missed by`."""
        if self.value is None:
            return f"{self.label}: {self.missing}"
        if self.met:
            return f"{self.label}: **met** ({self.shown})"
        if min(self.value, self.bound) <= 0:
            return f"{self.label}: **missed** ({self.shown})"
        factor = self.value / self.bound if self.at_most else self.bound / self.value
        return f"{self.label}: **missed by {factor:.2f}×** ({self.shown})"


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """One row of the targets: what must hold and what is aimed at."""

    name: str
    must: tuple[Limit, ...]
    goal: tuple[Limit, ...]


def times(ratio: float) -> str:
    """Return a ratio for people: `0.84×`, and `1/57` where digits behind the point would tell nothing."""
    return f"{ratio:.2f}×" if ratio >= _SMALL or ratio <= 0 else f"1/{1 / ratio:.0f}"


def _times(label: str, value: float | None, bound: float, *, missing: str, at_most: bool = True) -> Limit:
    shown = "" if value is None else times(value)
    return Limit(label=label, value=value, bound=bound, at_most=at_most, shown=shown, missing=missing)


def _why_missing(results: Results, arm: str, ours: str = OURS) -> str:
    for name in (ours, arm):
        if name in results.absent:
            return f"not measured, {name} absent"
    return "not measured"


def _cpu_ratio(results: Results, shape: str, to: str) -> float | None:
    ratio = results.ratio(shape, "cpu_us", OURS, to)
    return ratio.median if ratio else None


def _cpu_of_one(results: Results) -> Target:
    own = results.middle("one", OURS, "cpu_us")
    to_nginx = _cpu_ratio(results, "one", NGINX)
    to_litellm, no_litellm = _cpu_ratio(results, "one", LITELLM), _why_missing(results, LITELLM)
    return Target(
        name="CPU per one-chunk streamed request",
        must=(
            _times(
                "≤ 0.6× sglang-router", _cpu_ratio(results, "one", SGLANG), 0.6, missing=_why_missing(results, SGLANG)
            ),
            _times("≤ 1/80 litellm", to_litellm, 1 / 80, missing=no_litellm),
        ),
        goal=(
            Limit(
                label="≤ 100 µs",
                value=own.median if own else None,
                bound=100,
                shown=f"{own.median:.0f} µs" if own else "",
                missing=_why_missing(results, OURS),
            ),
            _times("≤ 2× nginx", to_nginx, 2, missing=_why_missing(results, NGINX)),
            _times("≤ 1/150 litellm", to_litellm, 1 / 150, missing=no_litellm),
        ),
    )


def _two_workers(results: Results) -> Target:
    ratio = results.ratio("one", "cpu_us", TWO_WORKERS, ONE_WORKER)
    value, missing = (ratio.median if ratio else None), _why_missing(results, ONE_WORKER, TWO_WORKERS)
    return Target(
        name="CPU per request, two workers on one port",
        must=(_times("≤ 1.15× one worker", value, 1.15, missing=missing),),
        goal=(_times("≤ 1.05× one worker", value, 1.05, missing=missing),),
    )


def saturation_ratio(results: Results) -> float | None:
    """Return requests/s ÷ nginx's, by the stricter of two readings.

    Engine and client share the machine, so a cheap peer may never fill its core: then its requests per second *of its
    own CPU* say what one core could carry. The smaller of the two ratios counts.
    """
    measured = results.ratio("one", "requests_per_s", OURS, NGINX)
    cost = results.ratio("one", "cpu_us", NGINX, OURS)
    found = [ratio.median for ratio in (measured, cost) if ratio]
    return min(found) if found else None


def _saturation(results: Results) -> Target:
    ratio, missing = saturation_ratio(results), _why_missing(results, NGINX)
    own = results.middle("one", OURS, "requests_per_s")
    busy = results.middle("one", OURS, "cores_busy")
    filled = "" if busy is None or busy.median >= _BUSY else f", {busy.median:.2f} of a core busy"
    return Target(
        name="requests/s at saturation, one core",
        must=(_times("≥ 0.35× nginx", ratio, 0.35, missing=missing, at_most=False),),
        goal=(
            Limit(
                label="≥ 10,000",
                value=own.median if own else None,
                bound=10_000,
                at_most=False,
                shown=f"{own.median:,.0f}{filled}" if own else "",
                missing=_why_missing(results, OURS),
            ),
            _times("≥ 0.55× nginx", ratio, 0.55, missing=missing, at_most=False),
        ),
    )


def _chunks(results: Results) -> Target:
    ratio = results.ratio("chunks", "cpu_us_per_event", OURS, SGLANG)
    value, missing = (ratio.median if ratio else None), _why_missing(results, SGLANG)
    return Target(
        name="CPU per chunk on paced streams",
        must=(_times("≤ 1× sglang-router", value, 1, missing=missing),),
        goal=(_times("≤ 0.85× sglang-router", value, 0.85, missing=missing),),
    )


def _first_byte(results: Results) -> Target:
    return Target(
        name="added first-byte p50, paced, 16 connections",
        must=(
            _times(
                "≤ 1× sglang-router's",
                results.added_ratio("paced", "first_p50_us", OURS, SGLANG),
                1,
                missing=_why_missing(results, SGLANG),
            ),
        ),
        goal=(
            _times(
                "≤ 1.6× nginx's",
                results.added_ratio("paced", "first_p50_us", OURS, NGINX),
                1.6,
                missing=_why_missing(results, NGINX),
            ),
        ),
    )


def _closed(own: Behaviour | None) -> Target:
    def limit(label: str, delays: tuple[float, float] | None, bound: float) -> Limit:
        worst = delays[1] if delays and own and own.never_closed == 0 else None
        open_still = own.never_closed if own else 0
        return Limit(
            label=label,
            value=worst,
            bound=bound,
            shown=f"worst {worst:.1f} ms" if worst is not None else "",
            missing=f"**missed**, {open_still} never closed" if open_still else "not measured",
        )

    after, before = (own.closed_after_ms, own.closed_before_ms) if own else (None, None)
    return Target(
        name="upstream closed after the client left",
        must=(limit("≤ 10 ms mid-stream", after, 10), limit("≤ 10 ms before the first byte", before, 10)),
        goal=(limit("≤ 2 ms mid-stream", after, 2), limit("≤ 2 ms before the first byte", before, 2)),
    )


def _memory(own: Behaviour | None) -> Target:
    value = own.idle_stream_bytes if own else None
    held = f"{value / 1000:.1f} kB, {own.idle_streams} of {own.idle_asked} held" if own and value is not None else ""

    def limit(kilobytes: int) -> Limit:
        return Limit(label=f"≤ {kilobytes} kB", value=value, bound=kilobytes * 1000, shown=held)

    return Target(name="memory per idle stream", must=(limit(25),), goal=(limit(8),))


def _slow(own: Behaviour | None) -> Target:
    value = own.slow_reader_bytes if own else None
    shown = f"{value / 1000:,.0f} kB" if value is not None else ""

    def limit(label: str, bound: int) -> Limit:
        return Limit(label=label, value=value, bound=bound, shown=shown)

    return Target(
        name="slow reader, held by us", must=(limit("≤ 1 MB", 1_000_000),), goal=(limit("≤ 256 kB", 256_000),)
    )


def _large_body(results: Results) -> Target:
    return Target(
        name="256 KiB body, CPU",
        must=(
            _times(
                "≤ 0.5× sglang-router", _cpu_ratio(results, "body", SGLANG), 0.5, missing=_why_missing(results, SGLANG)
            ),
        ),
        goal=(_times("≤ 2× nginx", _cpu_ratio(results, "body", NGINX), 2, missing=_why_missing(results, NGINX)),),
    )


def targets(results: Results) -> list[Target]:
    """Return every row of the targets that this benchmark can measure, in their order."""
    own = results.behaviour.get(OURS)
    return [
        _cpu_of_one(results),
        _saturation(results),
        _chunks(results),
        _first_byte(results),
        _closed(own),
        _memory(own),
        _slow(own),
        _large_body(results),
        _two_workers(results),
    ]
