"""`luftpause sim`: the real scheduling core against simulated engines and agents, many times faster than real time."""

import sys
from pathlib import Path

import click
import msgspec
from rich.console import Console
from rich.table import Table

from luftpause.cli.failures import CommandFailedError
from luftpause.telemetry.printable import printable
from luftpause.testkit.sim.arms import ARMS, LAUNCHING_ARMS, arms_for
from luftpause.testkit.sim.report import Results, headings, report_json, rows
from luftpause.testkit.sim.scenario import Scenario, load_scenario, shipped
from luftpause.testkit.sim.setting import setting_of
from luftpause.testkit.sim.simulate import BrokenRuleError, Progress, Simulated, simulate

_SEEDS_MAX = 1000


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
    unknown = [name for name in given if name not in able]
    if unknown:
        raise click.BadParameter(f"no arm {', '.join(unknown)!r}; there are {', '.join(able)}")
    return given or able


def _names(ctx: click.Context, parameter: click.Parameter, value: str) -> tuple[str, ...]:
    names = tuple(dict.fromkeys(name.strip() for name in value.split(",") if name.strip()))
    if value and not names:
        raise click.BadParameter(f"no arm {value!r}; there are {', '.join((*ARMS, *LAUNCHING_ARMS))}")
    return names


@click.command(short_help="Simulate scheduling on made-up engines.")
@click.argument("scenario", default="w1")
@click.option("--seed", type=click.IntRange(0), default=1, show_default=True, help="The first seed.")
@click.option("--seeds", type=click.IntRange(1, _SEEDS_MAX), default=3, show_default=True, help="So many in a row.")
@click.option("--arms", callback=_names, default="", metavar="A,B", help="Who schedules.  [default: all that can]")
@click.option("--minutes", type=click.FloatRange(0.1, 10_000), help="Counted time.  [default: the scenario's]")
@click.option("--json", "json_to", metavar="FILE", help="Write all figures there as JSON; - prints it.")
@click.option("--check", is_flag=True, help="Prove every state and audit every decision: slower, but it shows faults.")
@click.option("--show", is_flag=True, help="Only print the scenario, to make one of your own from.")
def command(**given: object) -> None:
    """Simulate scheduling: the real core, made-up engines and agents, virtual time.

    SCENARIO is the name of a shipped scenario (w1, w6-light, w7-faults, w8-swap) or a TOML file of your own; begin with
    `luftpause sim w1 --show > mine.toml`. The same seed gives the same figures on every machine, and a run meets the
    same tools and lengths whatever arm serves it. Compare arms with each other: absolute figures are the model's.
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
    results = {arm: [_simulate(scenario, arm, seed, check=options.check) for seed in seeds] for arm in arms}
    if options.json_to is not None:
        text = report_json(scenario, seeds, results)
        if options.json_to == "-":
            click.echo(text, nl=False)
            return
        Path(options.json_to).write_text(text, encoding="utf-8")
    _print_table(scenario, seeds, results, check=options.check)


def _text(which: str) -> str:
    load_scenario(which)
    text = shipped().get(which)
    return Path(which).read_text(encoding="utf-8") if text is None else text


def _simulate(scenario: Scenario, arm: str, seed: int, *, check: bool) -> Simulated:
    on_terminal = sys.stderr.isatty()
    try:
        return simulate(scenario, arm, seed, checked=check, progress=_progress(arm, seed) if on_terminal else None)
    except BrokenRuleError as broken:
        raise CommandFailedError(f"a rule was broken: {broken}") from broken
    finally:
        if on_terminal:
            click.echo("\r\x1b[K", nl=False, err=True)


def _progress(arm: str, seed: int) -> Progress:
    def show(done_s: float, whole_s: float) -> None:
        click.echo(f"\r{arm}, seed {seed}: {done_s / 60:.1f} of {whole_s / 60:.1f} min\x1b[K", nl=False, err=True)

    return show


def _print_table(scenario: Scenario, seeds: range, results: Results, *, check: bool) -> None:
    title = f"{scenario.name}: {scenario.minutes:g} min after {scenario.warmup_s:g} s, {_seeds(seeds)}"
    table = Table(title=printable(title), title_justify="left")
    for number, heading in enumerate(headings()):
        table.add_column(heading, justify="right" if number else "left")
    for row in rows(results):
        table.add_row(*row)
    Console(width=None if sys.stdout.isatty() else 140).print(table)
    if check:
        click.echo("every state sound, every decision lawful, nothing left open")


def _seeds(seeds: range) -> str:
    return f"seed {seeds[0]}" if len(seeds) == 1 else f"seeds {seeds[0]} to {seeds[-1]}, median (least–greatest)"
