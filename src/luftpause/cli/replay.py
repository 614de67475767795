"""`luftpause replay`: decide again what an event log says was decided, or ask what another policy would have done."""

import sys
from pathlib import Path

import click
import msgspec
from rich.console import Console
from rich.table import Table

from luftpause.adapters.event_log.reading import UnreadableError
from luftpause.adapters.event_log.replaying import DifferenceError, Replayed, replay
from luftpause.cli.examples import examples
from luftpause.cli.failures import CommandFailedError
from luftpause.cli.files import PRINTED, OutputFile, write
from luftpause.cli.say import say
from luftpause.core.scheduling.invariants import check as prove
from luftpause.telemetry.printable import printable
from luftpause.testkit.sim.arms import ARMS
from luftpause.testkit.sim.scenario import load_scenario
from luftpause.testkit.sim.simulate import BrokenRuleError
from luftpause.testkit.what_if.asking import Answer, Progress, Question, ask
from luftpause.testkit.what_if.extract import extract
from luftpause.testkit.what_if.load import NoLoadError
from luftpause.testkit.what_if.report import headings, report_json, rows, sentences

BASE = "w1"
"""The shipped scenario whose engine stands in for what a log does not show."""


class _Options(msgspec.Struct, frozen=True, kw_only=True):
    """What the command line said. Without a `policy` the log is replayed."""

    file: Path
    check: bool
    policy: str | None
    engine: str | None
    seed: int | None
    json_to: str | None


@click.command(
    short_help="Decide again what an event log says, or ask what if.",
    epilog=examples(
        ("luftpause replay ev.log", "are the decisions the same?"),
        ("luftpause replay ev.log --policy sglang-router", "what would that have done?"),
    ),
)
@click.argument("file", type=click.Path(path_type=Path, exists=True, dir_okay=False))
@click.option(
    "--policy",
    type=click.Choice(ARMS),
    metavar="POLICY",
    help=f"Ask what this policy would have done with the same load: {', '.join(ARMS)}.",
)
@click.option(
    "--engine", metavar="FILE", help="A scenario, by file or name, whose [engine] is the model.  [default: the log's]"
)
@click.option("--seed", type=click.IntRange(0), help="What replies of unknown length are drawn from.  [default: 1]")
@click.option("--json", "json_to", type=OutputFile(), help="Write all figures there as JSON; - prints it.")
@click.option("--check", is_flag=True, help="Prove every state sound; with --policy audit every decision too. Slow.")
def command(**given: object) -> None:
    """Take in every event of FILE again and compare each decision with the one that was made.

    FILE was written by `--event-log`. Exit code 1 at the first difference.

    With --policy nothing is compared. Only what runs asked for is taken from FILE: when they began, how long their
    prompts and replies were, how long their agents were away after each turn. That is simulated under the policy, on
    modelled engines, so the answer is an ESTIMATE. How fast the engines are is fitted to the turns of the log where it
    can be; --engine FILE gives figures instead (begin with `luftpause sim w1 --show > mine.toml`). The policy that was
    recorded is simulated too: compare that column with the recorded one before you believe a difference between
    policies that is no larger. Runs that began before the log or did not end in it are simulated and not counted.
    """
    options = msgspec.convert(given, _Options)
    if options.policy is not None:
        _what_if(options, options.policy)
        return
    if options.engine is not None or options.seed is not None or options.json_to is not None:
        raise click.UsageError("--engine, --seed and --json belong to --policy")
    with options.file.open("rb") as lines:
        try:
            seen = replay(lines, prove if options.check else None)
        except DifferenceError as difference:
            raise CommandFailedError(f"{options.file}: {difference}") from difference
    for line in _summary(seen):
        say(line)


def _what_if(options: _Options, policy: str) -> None:
    base = load_scenario(BASE).engine
    engine = None if options.engine is None else load_scenario(options.engine).engine
    seed = 1 if options.seed is None else options.seed
    question = Question(policy=policy, engine=engine, base=base, seed=seed, checked=options.check)
    try:
        with options.file.open("rb") as lines:
            trace = extract(lines)
        answer = ask(trace, question, _progress() if sys.stderr.isatty() else None)
    except UnreadableError as error:
        raise CommandFailedError(f"{options.file}: {error}; write one with --event-log") from error
    except NoLoadError as error:
        raise CommandFailedError(f"{options.file}: {error}") from error
    except BrokenRuleError as broken:
        raise CommandFailedError(f"a rule was broken: {broken}") from broken
    if options.json_to != PRINTED:
        _print(answer, f"scenario {options.engine or BASE}", check=options.check)
    if options.json_to is not None:
        write(report_json(answer, seed).encode(), options.json_to)


def _progress() -> Progress:
    def show(arm: str, done_s: float, whole_s: float) -> None:
        click.echo(f"\r{arm}: {done_s / 60:.1f} of {whole_s / 60:.1f} min\x1b[K", nl=False, err=True)

    return show


def _print(answer: Answer, engine_from: str, *, check: bool) -> None:
    if sys.stderr.isatty():
        click.echo("\r\x1b[K", nl=False, err=True)
    for line in sentences(answer, engine_from):
        say(printable(line))
    table = Table()
    for number, heading in enumerate(headings(answer)):
        table.add_column(heading, justify="right" if number else "left")
    for row in rows(answer):
        table.add_row(*row)
    Console(width=None if sys.stdout.isatty() else 140).print(table)
    if check:
        say("every simulated state sound, every decision lawful, nothing left open")


def _summary(seen: Replayed) -> list[str]:
    missing = f", {seen.dropped} missing" if seen.dropped else ""
    torn = f", {seen.torn} torn lines" if seen.torn else ""
    cut = f", {seen.open} without an end (killed or cut)" if seen.open else ""
    holds = ", ".join(f"{reason} {count}" for reason, count in sorted(seen.holds.items())) or "none"
    return [
        f"Every decision is the same: {seen.events} events in {seen.segments} segments{cut}{missing}{torn}.",
        f"  states compared  {seen.digests}",
        f"  turns            {seen.placed} placed, {seen.refused} refused",
        f"  held             p50 {seen.held_s_at(0.5):.3f} s, p99 {seen.held_s_at(0.99):.3f} s",
        f"  holds            {holds}",
    ]
