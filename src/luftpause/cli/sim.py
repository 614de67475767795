"""`luftpause sim`: the real scheduling core against simulated engines and agents, many times faster than real time."""

import json
import sys
from collections.abc import Sequence
from pathlib import Path

import click
import msgspec

from luftpause.cli.examples import examples
from luftpause.cli.failures import CommandFailedError
from luftpause.cli.files import PRINTED, OutputFile, write
from luftpause.cli.options import FiniteRange
from luftpause.cli.tables import print_table
from luftpause.telemetry.printable import printable
from luftpause.testkit.bench.results import ArmResult, arm_results, flat
from luftpause.testkit.bench.samples import Sample
from luftpause.testkit.bench.simulated import sample_of
from luftpause.testkit.bench.tables import arms_table
from luftpause.testkit.sim.arms import ARMS, LAUNCHING_ARMS, WITHOUT, arms_for
from luftpause.testkit.sim.scenario import Scenario, load_scenario, shipped
from luftpause.testkit.sim.setting import setting_of
from luftpause.testkit.sim.simulate import BrokenRuleError, Progress, simulate

_SEEDS_MAX = 1000
_COLUMNS = (
    "interactive_runs_per_min",
    "interactive_p50_s",
    "interactive_p99_s",
    "batch_runs_per_min",
    "reprefilled_tokens_per_run",
)


class _Options(msgspec.Struct, frozen=True, kw_only=True):
    """What the command line said. `minutes` is None for the scenario's own, `json_to` for no JSON."""

    scenario: str
    seed: int
    seeds: int
    arms: tuple[str, ...]
    minutes: float | None
    json_to: str | None
    check: bool
    show: bool


def _arms(given: tuple[str, ...], scenario: Scenario) -> tuple[str, ...]:
    """Return the arms that are asked for, or all that can serve the scenario."""
    able = arms_for(setting_of(scenario))
    pieces = () if able == LAUNCHING_ARMS else WITHOUT
    unknown = [name for name in given if name not in (*able, *pieces)]
    if unknown:
        raise click.BadParameter(f"no arm {', '.join(unknown)!r}; there are {', '.join((*able, *pieces))}")
    return given or able


def _names(ctx: click.Context, parameter: click.Parameter, value: str) -> tuple[str, ...]:
    names = tuple(dict.fromkeys(name.strip() for name in value.split(",") if name.strip()))
    if value and not names:
        raise click.BadParameter(f"no arm {value!r}; there are {', '.join((*ARMS, *LAUNCHING_ARMS))}")
    return names


@click.command(
    short_help="Simulate scheduling on made-up engines.",
    epilog=examples(
        ("luftpause sim w1 --seeds 1", "one that is shipped"),
        ("luftpause sim w1 --arms turn-admission,working-set", "two policies"),
    ),
)
@click.argument("scenario", default="w1")
@click.option("--seed", type=click.IntRange(0), default=1, show_default=True, help="The first seed.")
@click.option("--seeds", type=click.IntRange(1, _SEEDS_MAX), default=3, show_default=True, help="So many in a row.")
@click.option("--arms", callback=_names, default="", metavar="A,B", help="Who schedules.  [default: all that can]")
@click.option("--minutes", type=FiniteRange(0.1, 10_000), help="Counted time.  [default: the scenario's]")
@click.option("--json", "json_to", type=OutputFile(), help="Write all figures there as JSON; - prints it.")
@click.option("--check", is_flag=True, help="Prove every state and audit every decision: slower, but it shows faults.")
@click.option("--show", is_flag=True, help="Only print the scenario, to make one of your own from.")
def command(**given: object) -> None:
    """Simulate scheduling: the real core, made-up engines and agents, virtual time.

    SCENARIO is the name of a shipped scenario, such as w1 or w7-faults, or a TOML file of your own; begin with
    `luftpause sim w1 --show > mine.toml`. The same seed gives the same figures on every machine, and a run meets the
    same tools and lengths whatever arm serves it. Compare arms with each other: absolute figures are the model's.
    `luftpause bench` asks what several scenarios must show.
    """
    options = msgspec.convert(given, _Options)
    if options.show:
        click.echo(_text(options.scenario), nl=False)
        return
    scenario = load_scenario(options.scenario)
    if options.minutes is not None:
        scenario = msgspec.structs.replace(scenario, minutes=options.minutes)
    seeds = range(options.seed, options.seed + options.seeds)
    arms = _arms(options.arms, scenario)
    found = {arm: [_simulate(scenario, arm, seed, check=options.check) for seed in seeds] for arm in arms}
    results = arm_results({scenario.name: found})
    if options.json_to != PRINTED:
        _print_table(scenario, seeds, results, check=options.check)
    if options.json_to is not None:
        write(_json(scenario, seeds, results).encode(), options.json_to)


def _text(which: str) -> str:
    load_scenario(which)
    text = shipped().get(which)
    return Path(which).read_text(encoding="utf-8") if text is None else text


def _simulate(scenario: Scenario, arm: str, seed: int, *, check: bool) -> Sample:
    on_terminal = sys.stderr.isatty()
    try:
        progress = _progress(arm, seed) if on_terminal else None
        return sample_of(scenario, simulate(scenario, arm, seed, checked=check, progress=progress), checked=check)
    except BrokenRuleError as broken:
        raise CommandFailedError(f"a rule was broken: {broken}") from broken
    finally:
        if on_terminal:
            click.echo("\r\x1b[K", nl=False, err=True)


def _progress(arm: str, seed: int) -> Progress:
    def show(done_s: float, whole_s: float) -> None:
        click.echo(f"\r{arm}, seed {seed}: {done_s / 60:.1f} of {whole_s / 60:.1f} min\x1b[K", nl=False, err=True)

    return show


def _json(scenario: Scenario, seeds: range, results: Sequence[ArmResult]) -> str:
    """Return everything as JSON, with nothing that a clock said: the same scenario and seeds give the same bytes."""
    report = {
        "scenario": scenario.name,
        "warmup_s": scenario.warmup_s,
        "minutes": scenario.minutes,
        "seeds": list(seeds),
        "arms": [flat(arm) for arm in results],
    }
    return json.dumps(report, indent=2) + "\n"


def _print_table(scenario: Scenario, seeds: range, results: Sequence[ArmResult], *, check: bool) -> None:
    title = f"{scenario.name}: {scenario.minutes:g} min after {scenario.warmup_s:g} s, {_seeds(seeds)}"
    print_table(printable(title), arms_table(results, _COLUMNS, results[0].arm))
    if check:
        click.echo("every state sound, every decision lawful, nothing left open")


def _seeds(seeds: range) -> str:
    return f"seed {seeds[0]}" if len(seeds) == 1 else f"seeds {seeds[0]} to {seeds[-1]}, median (least–greatest)"
