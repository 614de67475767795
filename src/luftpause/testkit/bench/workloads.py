"""The workloads and what each of them must show. The figures stand in the scenarios; none was fitted to a result.

Whoever adds an arm adds it to `testkit/sim/arms.py`; if it is ours, to OURS as well.
"""

from dataclasses import dataclass, replace
from typing import Final

from luftpause.testkit.bench.claims import Claim, Relation
from luftpause.testkit.bench.results import EngineShell
from luftpause.testkit.bench.simulated import Door
from luftpause.testkit.bench.windows import Window
from luftpause.testkit.sim.arms import ARMS, LAUNCHING_ARMS, WITHOUT

TUNED: Final = "sglang-router-tuned"
"""What claims compare with: the router that most people run, set up for the number of replicas."""

ROUTER: Final = "sglang-router"
"""What turn admission was first compared with: the router at its defaults."""

OURS: Final = ("turn-admission", "working-set")
"""Whose showing it is. An arm that the simulator does not have yet is passed over."""

OWN: Final = (*OURS, "turn-admission-free")
"""Arms that are no rivals of ours."""

HTTP_ARMS: Final = ("direct", TUNED, "vllm-router", "smg", *OURS)
"""Who is asked where real time passes: round robin, the best that each kind of router can do, and we."""

SOME_ARMS: Final = (TUNED, *OURS)
"""Who is asked where time is dear."""

LLAMA_ARMS: Final = (TUNED, "working-set")
"""Who is asked where time is dearest."""

LIGHT: Final = Window(warmup_s=20.0, minutes=1.0, speed=8.0)
"""Over HTTP, where nothing queues: what passes between processes must not show beside turns of a second or two."""

FLOOD: Final = Window(warmup_s=30.0, minutes=1.5, speed=15.0)
"""Where engines are always full, so that nothing else is waited for."""

TREES: Final = Window(warmup_s=120.0, minutes=8.0, speed=30.0)
"""Where an open loop must fill up first, which takes its time."""

SUB_AGENTS: Final = Window(warmup_s=20.0, minutes=1.5, speed=4.0)
"""Where a runtime with its journal stands before the engines, too."""

LLAMA: Final = Window(warmup_s=15.0, minutes=1.2, real=True)
"""A few runs of each agent, with real tokens: a run takes some twenty seconds."""

_FAULTY_ARMS: Final = ("direct", "sglang-router-manual", "vllm-router", "smg", *OURS)


@dataclass(frozen=True, slots=True, kw_only=True)
class Workload:
    """A question to the arms.

    Attributes:
        title: what it is.
        must_show: in words, as the design has it.
        why_missed: what is known of why `working-set` does not show all of it; empty while it does.
        second_opinion: the workload that asks the same of other runs; what it says stands beside what is missed here.
        scenarios: parts of it, by name.
        claims: the same as figures.
        columns: which figures its table shows.
        arms: who is asked.
        checked: every state is proved, every decision audited, and at the end nothing may be left open.
        engines: what it can be measured on.
        door: where its runs come in.
        http_arms: of its arms, those that are asked over HTTP unless others are named.
        llama_arms: those that are asked on llama.cpp's server.
        on_http: how long and how fast that is: see `docs/design/0036-the-bench.md`.
        on_llama: how long, on llama.cpp's server.
        seeds: so many in a row where real time passes; virtual time has more for the same money.
    """

    name: str
    title: str
    must_show: str
    scenarios: tuple[str, ...]
    claims: tuple[Claim, ...]
    columns: tuple[str, ...]
    arms: tuple[str, ...] = ARMS
    checked: bool = False
    engines: tuple[EngineShell, ...] = ("sim", "http", "llama")
    door: Door = "llm"
    http_arms: tuple[str, ...] = HTTP_ARMS
    llama_arms: tuple[str, ...] = LLAMA_ARMS
    on_http: Window = LIGHT
    on_llama: Window = LLAMA
    seeds: int = 2
    why_missed: str = ""
    second_opinion: str = ""

    def window(self, engine: EngineShell) -> Window:
        """Return how long and how fast it is watched on an engine over HTTP."""
        return self.on_llama if engine == "llama" else self.on_http

    def arms_on(self, engine: EngineShell) -> tuple[str, ...]:
        """Return the arms that an engine can be measured with by itself; others may be named, where they exist."""
        if engine == "sim":
            return self.arms
        asked = {*(self.llama_arms if engine == "llama" else self.http_arms), *(claim.against for claim in self.claims)}
        return tuple(arm for arm in self.arms if arm in asked)


_CLASSES: Final = (
    "interactive_runs_per_min",
    "interactive_p50_s",
    "interactive_p99_s",
    "batch_runs_per_min",
    "reprefilled_tokens_per_run",
)
_RUNS: Final = ("runs_per_min", "run_p50_s", "run_p99_s", "reprefilled_tokens_per_run", "cached_share")


def _ratio(scenario: str, figure: str, relation: Relation, bound: float, against: str = TUNED) -> Claim:
    return Claim(scenario=scenario, figure=figure, relation=relation, bound=bound, against=against)


def _level(scenario: str, figure: str, relation: Relation, bound: float) -> Claim:
    return Claim(scenario=scenario, figure=figure, relation=relation, bound=bound)


_AT_LEAST, _AT_MOST = Relation.AT_LEAST, Relation.AT_MOST


def _of_a_flood(scenario: str) -> tuple[Claim, Claim]:
    return (
        _ratio(scenario, "interactive_runs_per_min", _AT_LEAST, 2.5),
        _ratio(scenario, "batch_runs_per_min", _AT_LEAST, 1.0),
    )


def _of_sessions(*scenarios: str) -> tuple[Claim, ...]:
    return tuple(
        claim
        for part in scenarios
        for claim in (
            _ratio(part, "run_p50_s", _AT_MOST, 0.7),
            _ratio(part, "run_p99_s", _AT_MOST, 0.8),
            _ratio(part, "reprefilled_tokens_per_run", _AT_MOST, 0.5),
        )
    )


TRACED: Final = ("w2-tracelab", "w2-agentx")
"""Named after who published the shape of their sessions: docs/design/0043-w2-from-traces.md."""

W7_PARTS: Final = ("w7-faults", "w7-slow", "w7-stale", "w7-restart", "w7-worst")

_ALL: Final = (
    Workload(
        name="w1",
        title="Flood: 48 batch and 4 interactive agents",
        must_show="interactive ≥ 2.5× tuned router and batch ≥ 1.0×",
        scenarios=("w1",),
        claims=_of_a_flood("w1"),
        columns=_CLASSES,
        on_http=FLOOD,
    ),
    Workload(
        name="w1b",
        title="The same flood with no class set",
        must_show="run p50 ≤ 0.7× router, throughput ≥ 1.0×",
        scenarios=("w1b",),
        claims=(_ratio("w1b", "run_p50_s", _AT_MOST, 0.7), _ratio("w1b", "runs_per_min", _AT_LEAST, 1.0)),
        columns=_RUNS,
    ),
    Workload(
        name="w1-text",
        title="The same flood with tools called in the text of replies",
        must_show="interactive ≥ 2.5× tuned router and batch ≥ 1.0×, although nobody sees a tool call",
        scenarios=("w1-text",),
        claims=_of_a_flood("w1-text"),
        columns=_CLASSES,
        engines=("sim",),
    ),
    Workload(
        name="w1-strangers",
        title="The flood beside requests that others send past the router",
        must_show="interactive ≥ 2.5× tuned router and batch ≥ 1.0×",
        scenarios=("w1-strangers",),
        claims=_of_a_flood("w1-strangers"),
        columns=_CLASSES,
        engines=("sim",),
    ),
    Workload(
        name="w1-long",
        title="The flood with agents that write long texts at last",
        must_show="interactive ≥ 2.5× tuned router and batch ≥ 1.0×, although nobody says which answers become long",
        scenarios=("w1-long",),
        claims=_of_a_flood("w1-long"),
        columns=_CLASSES,
        engines=("sim",),
    ),
    Workload(
        name="w1-small",
        title="A flood for llama.cpp on two cores",
        must_show="on real engines: interactive faster than tuned router, batch no slower",
        scenarios=("w1-small",),
        claims=(
            _ratio("w1-small", "interactive_p50_s", _AT_MOST, 1.0),
            _ratio("w1-small", "batch_runs_per_min", _AT_LEAST, 1.0),
        ),
        columns=_CLASSES,
        why_missed=(
            "few slots and no thrash, so there is no waste to win: all arms make the same tokens, and what interactive "
            "runs gain, batch loses."
        ),
    ),
    Workload(
        name="w2",
        title="Coding-like sessions in an open loop at 90 % load",
        must_show="run p50 −30 %, p99 −20 %, re-prefilled tokens −50 %",
        scenarios=("w2-coding", "w2-bursts"),
        claims=_of_sessions("w2-coding", "w2-bursts"),
        columns=_RUNS,
        why_missed=(
            "nobody can meet p50 and p99: alone with an engine that forgets nothing, runs take 0.97 and 0.99 of the "
            "router's time (`python -m benchmarks.bounds`). Half of what is re-prefilled is of runs that were out for "
            "longer than an engine keeps what it used last: docs/design/0035-working-set.md."
        ),
        second_opinion="w2-traced",
    ),
    Workload(
        name="w2-traced",
        title="Coding sessions in the shape of published traces, in an open loop at 90 % load",
        must_show="as w2: run p50 −30 %, p99 −20 %, re-prefilled tokens −50 %",
        scenarios=TRACED,
        claims=_of_sessions(*TRACED),
        columns=_RUNS,
        engines=("sim",),
        why_missed=(
            "nobody can meet p50 and p99: alone, runs take 0.91 to 0.95 of the router's time. Half of the re-prefill "
            "could be won by keeping other prefixes than engines do: docs/design/0043-w2-from-traces.md."
        ),
    ),
    Workload(
        name="w3",
        title="Trees: fan-outs with stragglers, await all and any, depth two",
        must_show="mean makespan −40 % against arrival order",
        scenarios=("w3-trees", "w3-deep"),
        claims=tuple(_ratio(part, "tree_mean_s", _AT_MOST, 0.6) for part in ("w3-trees", "w3-deep")),
        columns=("runs_per_min", "tree_mean_s", "tree_p99_s", "reprefilled_tokens_per_run", "cached_share"),
        http_arms=SOME_ARMS,
        on_http=TREES,
    ),
    Workload(
        name="w4",
        title="Callers: one heavy beside three light, 500 runs beside one, rotating ids",
        must_show="Jain ≥ 0.95 on weighted service",
        scenarios=("w4-heavy", "w4-crowd", "w4-rotating"),
        claims=tuple(_level(part, "fairness", _AT_LEAST, 0.95) for part in ("w4-heavy", "w4-crowd", "w4-rotating")),
        columns=("fairness", "runs_per_min", "run_p50_s", "run_p99_s", "reprefilled_tokens_per_run"),
    ),
    Workload(
        name="w5",
        title="Slow tools and approvals",
        must_show="batch ≥ 0.97× router (no harm)",
        scenarios=("w5-slow-tools",),
        claims=(_ratio("w5-slow-tools", "batch_runs_per_min", _AT_LEAST, 0.97),),
        columns=_CLASSES,
    ),
    Workload(
        name="w6",
        title="Light load: engines never queue",
        must_show="every arm within 2 %",
        scenarios=("w6-light",),
        claims=tuple(
            replace(_ratio("w6-light", figure, Relation.WITHIN, 0.02), every_arm=True)
            for figure in ("runs_per_min", "run_p50_s")
        ),
        columns=_RUNS,
        seeds=3,
    ),
    Workload(
        name="w7",
        title="Faults: a dead and a slow replica, stale probes, 429s, our own restart, and all at once",
        must_show="zero lost turns, zero leaked leases",
        scenarios=W7_PARTS,
        claims=tuple(
            _level(part, figure, _AT_MOST, 0) for part in W7_PARTS for figure in ("broken_rules", "failed_runs")
        ),
        columns=("broken_rules", "failed_runs", "failed_turns", "runs_per_min", "run_p99_s"),
        arms=tuple(arm for arm in ARMS if arm in _FAULTY_ARMS),
        checked=True,
        engines=("sim",),
    ),
    Workload(
        name="w8",
        title="Swap: three models on one box",
        must_show="loads ≤ half of llama-swap's order; no turn starves",
        scenarios=("w8-swap",),
        claims=(
            _ratio("w8-swap", "loads", _AT_MOST, 0.5, "llama-swap"),
            _level("w8-swap", "longest_turn_s", _AT_MOST, 90.0),
        ),
        columns=("loads", "longest_turn_s", "interactive_runs_per_min", "batch_runs_per_min", "run_p50_s"),
        arms=LAUNCHING_ARMS,
        engines=("sim",),
    ),
    Workload(
        name="pieces",
        title="Policy working-set, and the same without one of its pieces each",
        must_show="what each piece is worth; nothing is claimed",
        scenarios=("w1", "w1-strangers", "w1-priorities", "w1b", "w3-deep", "w4-heavy", "w4-crowd", "w5-slow-tools"),
        claims=(),
        columns=("interactive_runs_per_min", "batch_runs_per_min", "run_p50_s", "fairness", "longest_turn_s"),
        arms=("working-set", *WITHOUT),
        engines=("sim",),
    ),
    Workload(
        name="seed-flood",
        title="The flood that turn admission was first measured on, with its light load",
        must_show="what was measured on engines then: interactive 2.0× the router, batch 0.91×, a tie at light load",
        scenarios=("w1", "w6-light"),
        claims=(
            _ratio("w1", "interactive_runs_per_min", _AT_LEAST, 2.0, ROUTER),
            _ratio("w1", "interactive_p50_s", _AT_MOST, 0.53, ROUTER),
            _ratio("w1", "batch_runs_per_min", _AT_LEAST, 0.91, ROUTER),
            _ratio("w6-light", "runs_per_min", Relation.WITHIN, 0.02, ROUTER),
        ),
        columns=_CLASSES,
        arms=tuple(arm for arm in ARMS if arm in (ROUTER, *OWN)),
    ),
    Workload(
        name="seed-fanout",
        title="Sixteen sub-agents at once, and one at a time",
        must_show="what was measured on engines then: no slower than through the router but for 7 %",
        scenarios=("seed-fanout", "seed-sequential"),
        claims=(_ratio("seed-fanout", "tree_mean_s", _AT_MOST, 1.07, ROUTER),),
        columns=("tree_mean_s", "run_p50_s", "prompt_cached_share"),
        arms=tuple(arm for arm in ARMS if arm in (ROUTER, *OWN)),
    ),
    Workload(
        name="seed-routing",
        title="Eight in flight",
        must_show="what was measured on engines then: as many runs as the router, 7 % more than round robin",
        scenarios=("seed-routing",),
        claims=(
            _ratio("seed-routing", "runs_per_min", Relation.WITHIN, 0.02, ROUTER),
            _ratio("seed-routing", "runs_per_min", _AT_LEAST, 1.07, "direct"),
            _ratio("seed-routing", "prompt_cached_share", Relation.WITHIN, 0.02, ROUTER),
        ),
        columns=("runs_per_min", "run_p50_s", "prompt_cached_share", "cached_share"),
        arms=tuple(arm for arm in ARMS if arm in ("direct", ROUTER, *OWN)),
    ),
    Workload(
        name="seed-mcp",
        title="The same flood as sub-agents over MCP, with its light load",
        must_show="what was measured on engines then: interactive 2.7× the router, batch 1.0×, a tie at light load",
        scenarios=("w1", "w6-light"),
        claims=(
            _ratio("w1", "interactive_runs_per_min", _AT_LEAST, 2.7, ROUTER),
            _ratio("w1", "interactive_p50_s", _AT_MOST, 0.47, ROUTER),
            _ratio("w1", "batch_runs_per_min", _AT_LEAST, 1.0, ROUTER),
            _ratio("w6-light", "runs_per_min", Relation.WITHIN, 0.02, ROUTER),
        ),
        columns=("interactive_runs_per_min", "interactive_p50_s", "batch_runs_per_min", "runs_per_min"),
        arms=(ROUTER, *OURS),
        engines=("http",),
        door="mcp",
        on_http=SUB_AGENTS,
    ),
    Workload(
        name="seed-mcp-fanout",
        title="Sixteen sub-agents spawned at once over MCP and awaited together, and one at a time",
        must_show="what was measured on engines then: no slower than a runtime straight to the router but for 7 %",
        scenarios=("seed-fanout", "seed-sequential"),
        claims=(_ratio("seed-fanout", "tree_mean_s", _AT_MOST, 1.07, ROUTER),),
        columns=("tree_mean_s", "runs_per_min", "run_p50_s"),
        arms=(ROUTER, *OURS),
        engines=("http",),
        door="mcp",
        on_http=replace(SUB_AGENTS, minutes=2.0, speed=6.0),
    ),
    Workload(
        name="seed-single-pass",
        title="Single-pass calls through the door, one at a time and twenty at once",
        must_show="hardly more than asked directly; on engines then: 21 ms one at a time, 85 ms for twenty at once",
        scenarios=("one-at-a-time", "twenty-at-once"),
        claims=(
            _ratio("one-at-a-time", "call_p50_ms", _AT_MOST, 1.2, "direct"),
            _ratio("twenty-at-once", "call_p50_ms", _AT_MOST, 1.1, "direct"),
        ),
        columns=("call_p50_ms", "call_p99_ms", "calls_per_s"),
        arms=("direct", "turn-admission"),
        llama_arms=("direct", "turn-admission"),
        engines=("http", "llama"),
        door="decide",
        on_http=Window(warmup_s=1.0, minutes=0.1, speed=1.0),
        on_llama=Window(warmup_s=1.0, minutes=0.1, real=True),
        seeds=3,
    ),
)

WORKLOADS: Final = {workload.name: workload for workload in _ALL}
