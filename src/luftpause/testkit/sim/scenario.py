"""What is simulated, as a readable TOML file says it: engines, agents, faults. The package ships a few.

Every key has its default here or must be given; unknown keys are errors. Decides nothing.
"""

import tomllib
from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path
from typing import Annotated

import msgspec
from msgspec import Meta

from luftpause.config.problems import ConfigError, Problem
from luftpause.testkit.engine_model.figures import EngineFigures
from luftpause.testkit.sim.agent_groups import (
    SIMULATED,
    AgentGroup,
    Count,
    Range,
    Seconds,
    Share,
    Table,
    contradictions_of,
)

FILE_BYTES_MAX = 1 << 20


class LaunchedModel(Table, frozen=True, kw_only=True):
    """A model that a launcher loads and unloads, on an engine of its own.

    Attributes:
        memory_gib: what that takes.
        load_s: from the order to ready.
        stop_s: from the order until its memory is free again.
    """

    name: Annotated[str, Meta(pattern="^[a-z0-9-]{1,40}$")]
    memory_gib: Annotated[float, Meta(gt=0, le=100_000)]
    load_s: Annotated[float, Meta(gt=0, le=3600)]
    stop_s: Annotated[float, Meta(ge=0, le=3600)] = 0.5


class RouterFigures(Table, frozen=True, kw_only=True):
    """How tuned router arms are set up for a scenario's replicas; arms at their defaults do not look at it.

    Attributes:
        balance_abs: sglang-router looks for the least loaded replica when loads differ by more turns than this.
        slots: requests that smg may have at work on one replica: about what its memory holds.
        reserved: share of all slots that smg keeps for interactive requests.
    """

    balance_abs: Annotated[int, Meta(ge=0)] = 4
    slots: Annotated[int, Meta(ge=1)] = 16
    reserved: Share = 0.125


class Faults(Table, frozen=True, kw_only=True):
    """What goes wrong at random.

    Attributes:
        refused: share of turns that the engine answers with 429 at once.
        cut: share of turns that die in the middle of their answer.
        stale_probes: share of looks at an engine that see once more what the look before saw.
        retry_s: how long an agent waits before it offers a failed turn again.
        attempts: offers of one turn after which an agent gives its run up.
    """

    refused: Share = 0.0
    cut: Share = 0.0
    stale_probes: Share = 0.0
    retry_s: Seconds = 1.0
    attempts: Annotated[int, Meta(ge=1, le=1000)] = 20


class Outage(Table, frozen=True, kw_only=True):
    """A replica dies with all that it does and knows, and comes back empty. `at_s` counts from the very start."""

    replica: Count
    at_s: Seconds
    for_s: Annotated[float, Meta(gt=0, le=86_400)]


class Strangers(Table, frozen=True, kw_only=True):
    """Others who send their requests to one engine past the router, each the next as soon as one is over.

    Attributes:
        count: so many requests of theirs are open at a time.
        at_s: when they begin, counted from the very start; `for_s` later they begin no more.
        context_tokens: of their prompts, of which none is in a cache.
        reply_tokens: of their answers.
    """

    replica: Count
    count: Annotated[int, Meta(ge=1, le=1000)]
    at_s: Seconds = 0.0
    for_s: Seconds = 86_400.0
    context_tokens: Range
    reply_tokens: Range


class Pace(Table, frozen=True, kw_only=True):
    """A replica that is not like the others: its engine is so many times as fast."""

    replica: Count
    factor: Annotated[float, Meta(gt=0, le=1000)]


class Scenario(Table, frozen=True, kw_only=True):
    """One thing to simulate.

    Attributes:
        name: as reports call it.
        about: what it is there to show.
        replicas: engines, all alike but for their `paces`.
        warmup_s: what happens in the beginning is not counted.
        minutes: how long is counted.
        ramp_s: agents of closed loops begin within so many seconds.
        probe_period_s: how often the scheduler looks at each engine; it sees the gauges of that moment.
        restarts_s: when the scheduler is killed and starts again with nothing, counted from the very start.
        models: what a launcher loads and unloads, instead of `replicas` that are always up.
        memory_gib: what the engines of the models may take together.
    """

    name: str
    about: str = ""
    replicas: Annotated[int, Meta(ge=1, le=1000)] = 2
    warmup_s: Seconds = 60.0
    minutes: Annotated[float, Meta(gt=0, le=100_000)] = 8.0
    ramp_s: Seconds = 2.0
    probe_period_s: Annotated[float, Meta(gt=0, le=3600)] = 2.0
    engine: EngineFigures = EngineFigures()
    agents: Annotated[tuple[AgentGroup, ...], Meta(min_length=1)]
    router: RouterFigures = RouterFigures()
    faults: Faults = Faults()
    outages: tuple[Outage, ...] = ()
    paces: tuple[Pace, ...] = ()
    strangers: tuple[Strangers, ...] = ()
    restarts_s: tuple[Seconds, ...] = ()
    models: tuple[LaunchedModel, ...] = ()
    memory_gib: Annotated[float, Meta(ge=0, le=100_000)] = 0.0


def shipped() -> dict[str, str]:
    """Return the scenarios of this package: name to text."""
    folder = files("luftpause.testkit.sim") / "scenarios"
    return {
        file.name.removesuffix(".toml"): file.read_text(encoding="utf-8")
        for file in sorted(folder.iterdir(), key=lambda file: file.name.removesuffix(".toml"))
        if file.name.endswith(".toml")
    }


def load_scenario(which: str) -> Scenario:
    """Read a scenario by the name of a shipped one or by the path of a file.

    Raises:
        ConfigError: there is none, or it cannot be used.
        OSError: the file cannot be read.
    """
    text = shipped().get(which)
    if text is None:
        path = Path(which)
        if path.suffix != ".toml":
            names = ", ".join(shipped())
            raise ConfigError(Problem(where=which, what=f"no such scenario; there are {names}, or name a .toml file"))
        with path.open("rb") as file:
            read = file.read(FILE_BYTES_MAX + 1)
        if len(read) > FILE_BYTES_MAX:
            raise ConfigError(Problem(where=which, what=f"longer than {FILE_BYTES_MAX} bytes"))
        text = read.decode("utf-8", "replace")
    return parse_scenario(text, which)


def parse_scenario(text: str, where: str) -> Scenario:
    """Return a scenario from its text; `where` it was written is for messages.

    Raises:
        ConfigError: it cannot be used.
    """
    try:
        scenario = msgspec.convert(tomllib.loads(text), Scenario)
    except (tomllib.TOMLDecodeError, msgspec.ValidationError) as error:
        raise ConfigError(Problem(where=where, what=str(error))) from None
    problems = [Problem(where=where, what=what) for what in _contradictions(scenario)]
    if problems:
        raise ConfigError(*problems)
    return scenario


def _contradictions(scenario: Scenario) -> list[str]:
    found: list[str] = []
    names = [group.name for group in scenario.agents]
    if len(set(names)) < len(names):
        found.append("two groups of agents have the same name")
    named = [*(outage.replica for outage in scenario.outages), *(pace.replica for pace in scenario.paces)]
    named += [strangers.replica for strangers in scenario.strangers]
    found += [
        f"a table names replica {replica}, but the last one is {scenario.replicas - 1}"
        for replica in named
        if replica >= scenario.replicas
    ]
    found += [
        "what strangers ask must rise from at least 1 and fit into engine.kv_tokens"
        for each in scenario.strangers
        if not (_rises(each.context_tokens) and _rises(each.reply_tokens))
        or each.context_tokens[1] + each.reply_tokens[1] > scenario.engine.kv_tokens
    ]
    found += _contradictions_of_families(scenario)
    found += _contradictions_of_models(scenario)
    for group in scenario.agents:
        found += [f"agents '{group.name}': {what}" for what in contradictions_of(group, scenario.engine)]
    return found


def _rises(drawn_from: Range) -> bool:
    return 1 <= drawn_from[0] <= drawn_from[1]


def _contradictions_of_models(scenario: Scenario) -> list[str]:
    names = [model.name for model in scenario.models]
    found = ["two models have the same name"] if len(set(names)) < len(names) else []
    found += [
        f"model '{model.name}' needs more than memory_gib"
        for model in scenario.models
        if model.memory_gib > scenario.memory_gib
    ]
    if scenario.models and (scenario.outages or scenario.paces or scenario.restarts_s or scenario.strangers):
        found.append("engines that a launcher loads have no outages, paces, restarts or strangers")
    known = names or [SIMULATED]
    found += [
        f"agents '{group.name}' ask for '{group.model}', which nobody serves"
        for group in scenario.agents
        if group.model not in known
    ]
    return found


def _contradictions_of_families(scenario: Scenario) -> list[str]:
    groups = {group.name: group for group in scenario.agents}
    children = {group.fan_out.group for group in scenario.agents if group.fan_out is not None}
    found = [f"no agents '{name}' to have as children" for name in sorted(children - groups.keys())]
    for name, group in groups.items():
        begins = bool(group.count) + bool(group.runs_per_min)
        if name in children and begins:
            found.append(f"agents '{name}': children begin with their parents, without count and runs_per_min")
        elif name not in children and begins != 1:
            found.append(f"agents '{name}': give one of count and runs_per_min")
        if name in _below(name, groups):
            found.append(f"agents '{name}' are children of their own children")
    return found


def _below(name: str, groups: Mapping[str, AgentGroup]) -> set[str]:
    """Return the groups that runs of a group have below them."""
    found: set[str] = set()
    group = groups.get(name)
    while group is not None and group.fan_out is not None and group.fan_out.group not in found:
        found.add(group.fan_out.group)
        group = groups.get(group.fan_out.group)
    return found
