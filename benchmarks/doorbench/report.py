"""The tables: one text for the terminal and for the door's section of docs/MEASUREMENTS.md, from a stored run.

Every absolute figure stands beside its ratio to a peer of the same run.
"""

from collections.abc import Sequence

from benchmarks.doorbench.behaviour import Behaviour
from benchmarks.doorbench.measure import SHAPES
from benchmarks.doorbench.results import Field, Results
from benchmarks.doorbench.statistics import Spread
from benchmarks.doorbench.targets import LITELLM, NGINX, OURS, SGLANG, targets, times

from luftpause.testkit.bench.machine import machine_line
from luftpause.testkit.bench.tables import markdown

_NONE = "–"


def table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a Markdown table whose columns line up in a terminal as well."""
    return markdown((tuple(header), [tuple(row) for row in rows]))


def _number(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.1f}" if abs(value) >= 10 else f"{value:.2f}"


def _with_spread(value: Spread | None) -> str:
    if value is None:
        return _NONE
    return f"{_number(value.median)} ({_number(value.low)}–{_number(value.high)})"


def _ratio(results: Results, shape: str, field: Field, arm: str, to: str) -> str:
    ratio = results.ratio(shape, field, arm, to) if arm != to else None
    return times(ratio.median) if ratio else _NONE


def _peers(results: Results, shape: str) -> list[str]:
    measured = results.measured(shape)
    return [arm for arm in (SGLANG, NGINX, LITELLM) if arm in measured]


def saturated_table(results: Results, shape: str) -> str:
    """Return requests/s and CPU of every arm for a closed-loop shape."""
    peers = _peers(results, shape)
    header = ["arm", "requests/s", "× direct", *(f"× {peer}" for peer in peers)]
    header += ["CPU µs/request", *(f"CPU × {peer}" for peer in peers), "cores busy", "failed"]
    rows = []
    for arm in results.measured(shape):
        row = [arm, _with_spread(results.middle(shape, arm, "requests_per_s"))]
        row += [_ratio(results, shape, "requests_per_s", arm, to) for to in ("direct", *peers)]
        row += [_with_spread(results.middle(shape, arm, "cpu_us"))]
        row += [_ratio(results, shape, "cpu_us", arm, to) for to in peers]
        busy = results.middle(shape, arm, "cores_busy")
        rows.append([*row, f"{busy.median:.2f}" if busy else _NONE, str(results.failed(shape, arm))])
    return table(header, rows)


def latency_table(results: Results, shape: str) -> str:
    """Return what every arm adds to direct in an open loop, in µs, with the ratio to each peer's own addition.

    Medians are compared round by round. Of the 99th percentiles the best rounds are compared, because a tail of a few
    samples belongs to whatever else the machine did.
    """
    peers = _peers(results, shape)
    fields: list[tuple[str, Field]] = [("first byte", "first_p50_us"), ("whole answer", "p50_us")]
    tails: list[tuple[str, Field]] = [("first byte", "first_p99_us"), ("whole answer", "p99_us")]
    arms = results.measured(shape)
    header = ["added µs", *arms, *(f"{OURS} ÷ {peer}" for peer in peers)]
    rows = []
    for title, field in fields:
        ratios = (results.added_ratio(shape, field, OURS, peer) for peer in peers)
        added = [_with_spread(results.added(shape, field, arm)) for arm in arms if arm != "direct"]
        direct = "0 of " + _with_spread(results.middle(shape, "direct", field))
        rows.append([f"{title} p50", direct, *added, *(f"{ratio:.2f}×" if ratio else _NONE for ratio in ratios)])
    for title, field in tails:
        best = {arm: results.added_at_best(shape, field, arm) for arm in arms}
        direct_best = results.middle(shape, "direct", field)
        cells = ["0 of " + _number(direct_best.low) if direct_best else _NONE]
        cells += [_NONE if best[arm] is None else _number(best[arm] or 0) for arm in arms if arm != "direct"]
        rows.append([f"{title} p99, best round", *cells, *(_best_ratio(best.get(OURS), best[peer]) for peer in peers)])
    return table(header, rows)


def _best_ratio(ours: float | None, theirs: float | None) -> str:
    return f"{ours / theirs:.2f}×" if ours is not None and theirs is not None and theirs > 0 else _NONE


def chunk_table(results: Results, shape: str) -> str:
    """Return the CPU per chunk of paced streams."""
    peers = _peers(results, shape)
    header = ["arm", "CPU µs/chunk", *(f"× {peer}" for peer in peers), "streams/s × direct", "failed"]
    rows = [
        [
            arm,
            _with_spread(results.middle(shape, arm, "cpu_us_per_event")),
            *(_ratio(results, shape, "cpu_us_per_event", arm, to) for to in peers),
            _ratio(results, shape, "requests_per_s", arm, "direct"),
            str(results.failed(shape, arm)),
        ]
        for arm in results.measured(shape)
    ]
    return table(header, rows)


def _delays(delays: tuple[float, float] | None) -> str:
    return f"{delays[0]:.1f} / {delays[1]:.1f}" if delays else _NONE


def _kilobytes(value: float | None, other: float | None) -> str:
    if value is None:
        return _NONE
    times = f" ({value / other:.2f}×)" if other else ""
    return f"{value / 1000:,.1f} kB{times}"


def behaviour_table(results: Results) -> str:
    """Return leaving, idling and slow reading of every arm; × is the ratio to sglang-router."""
    base = results.behaviour.get(SGLANG)
    header = ["arm", "256 KiB body unchanged", "idle streams held", "memory per idle stream"]
    header += ["closed mid-stream, ms p50 / worst", "before the first byte", "not closed in 0.4 s"]
    header += ["slow reader: held", "with kernel buffers"]
    rows = []
    for arm, own in results.behaviour.items():
        rows.append([arm, *_behaviour_cells(own, base if arm != SGLANG else None)])
    return table(header, rows)


def _behaviour_cells(own: Behaviour, base: Behaviour | None) -> list[str]:
    return [
        "yes" if own.same_body else "no",
        f"{own.idle_streams} of {own.idle_asked}",
        _kilobytes(own.idle_stream_bytes, base.idle_stream_bytes if base else None),
        _delays(own.closed_after_ms),
        _delays(own.closed_before_ms),
        str(own.never_closed),
        _kilobytes(own.slow_reader_bytes, base.slow_reader_bytes if base else None),
        _kilobytes(own.slow_reader_total_bytes, base.slow_reader_total_bytes if base else None),
    ]


def target_table(results: Results, *, bold: str = "**") -> str:
    """Return where luftpause stands against the *must* and *goal* of every row; `bold` marks met and missed."""
    rows = [
        [
            target.name,
            "; ".join(limit.verdict() for limit in target.must).replace("**", bold),
            "; ".join(limit.verdict() for limit in target.goal).replace("**", bold),
        ]
        for target in targets(results)
    ]
    return table(["target", "must", "goal"], rows)


def shape_tables(results: Results) -> list[tuple[str, str]]:
    """Return title and table of every shape."""
    tables = []
    for shape in (shape for shape in SHAPES if shape.key in results.shapes):
        if shape.rate_per_s:
            tables.append((shape.title, latency_table(results, shape.key)))
        elif shape.event_bytes:
            tables.append((shape.title, chunk_table(results, shape.key)))
        else:
            tables.append((shape.title, saturated_table(results, shape.key)))
    return tables


def _arms_line(results: Results) -> str:
    return ", ".join(f"{arm} {version}".strip() for arm, version in results.arms.items())


def terminal_report(results: Results) -> str:
    """Return everything as plain text."""
    parts = [f"{machine_line(results.machine)}\narms: {_arms_line(results)}; rounds: {results.rounds}"]
    parts += [f"absent: {arm}: {' '.join(why.split())}" for arm, why in results.absent.items()]
    parts += [f"{title}\n{text}" for title, text in shape_tables(results)]
    parts += [f"behaviour\n{behaviour_table(results)}", f"where luftpause stands\n{target_table(results, bold='')}"]
    return "\n\n".join(parts)


def price(results: Results) -> str:
    """Return what a proxy costs, ours beside others, as a list: time until the first byte, and processor time."""
    added = {arm: results.added("paced", "first_p50_us", arm) for arm in results.measured("paced")}
    spent = {arm: results.middle("one", arm, "cpu_us") for arm in results.measured("one")}
    rows = (("added to the first byte, p50", added), ("processor time of a one-chunk streamed request", spent))
    return "\n".join(
        f"- {title}: {', '.join(f'{arm} {_number(figure.median)} µs' for arm, figure in figures if figure)}."
        for title, found in rows
        if (figures := [(arm, found.get(arm)) for arm in (OURS, SGLANG, NGINX, LITELLM)]) and found.get(OURS)
    )


def not_reached(results: Results) -> str:
    """Return the limits that are not met, as a list; empty where all are."""
    lines = []
    for target in targets(results):
        for kind, limits in (("must", target.must), ("goal", target.goal)):
            missed = "; ".join(limit.verdict() for limit in limits if not limit.met)
            lines += [f"- {target.name}, {kind}: {missed}"] if missed else []
    return "\n".join(lines)


def section(results: Results) -> str:
    """Return what was measured at the door, its heading included."""
    late = results.middle("paced", "direct", "late_p50_us")
    absent = "".join(
        f"\nAbsent from this run: {arm} ({' '.join(why.split())}).\n" for arm, why in results.absent.items()
    )
    shapes = "\n".join(f"#### {title[0].upper()}{title[1:]}\n\n{text}\n" for title, text in shape_tables(results))
    return f"""## The LLM door

What the LLM door costs under light load, against the engine asked directly and against other proxies, all in one run.
Repeat it with `scripts/bench`.

- Run: {results.when}, commit {results.commit}, {results.mode}, {results.rounds} rounds in {results.seconds:.0f} s.
- Machine: {machine_line(results.machine)}.
- Arms: {_arms_line(results)}. `luftpause` is a whole `luftpause up`: scheduler, both doors, two replicas.
  `one-worker` and `two-workers` are `luftpause scheduler` and `luftpause dataplane --workers N` over the link.
{absent}
### Where luftpause stands

{target_table(results)}

"Requests/s at saturation" takes the stricter of two readings: measured
requests/s, and requests per second of the peer's own CPU (engine and client share the machine with the peer).
litellm carries some tens of requests a second, so it is measured on 4 connections, and only where it can be.

### Figures

Each figure is the median over the rounds with the lowest and the highest in brackets. Ratios are taken round by round
before their median; 99th percentiles are those of the best round. CPU is user + system time of the peer's whole process
tree over the measured window.

{shapes}
Latencies of the open loop count from the scheduled instant; the load client itself sent \
{_number(late.median) if late else _NONE} µs late in the median, for every arm alike.

### Behaviour

{behaviour_table(results)}

"Held" is what the arm keeps in its own memory for one client that stopped reading a fast stream: what the engine could
write, less what the client read and what lies in the kernel's socket buffers. A client that leaves mid-stream leaves
while the engine says nothing, so a proxy that notices only at its next write shows as not closed. Ratios are to
sglang-router.

### How it is measured

A raw engine (precomputed bytes) and a raw load client run in processes of their own, on uvloop and httptools; every arm
stands in front of the same two engine ports. Inside a round the arms follow each other shape by shape, and their order
turns from round to round. Requests carry an SDK's headers, a run id (eight turns a run), class and caller; bodies are
2 KiB unless the heading says otherwise. sglang-router answers lone requests some 40 ms late on Linux (it leaves
Nagle's algorithm on), so compare its CPU and its paced latency rather than its closed-loop requests/s.
"""
