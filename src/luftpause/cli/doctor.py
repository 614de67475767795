"""`luftpause doctor`: look at everything that could be wrong, change nothing, and say what mends it.

Engines are never started and make no turn. A token goes nowhere but where the configuration sends it.
"""

import asyncio
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import click
from rich.console import Console

from luftpause.adapters.engine_http.engines import HttpEngines
from luftpause.assembly.embedded import stands_in
from luftpause.cli.examining import configuration
from luftpause.cli.examining.findings import Finding, Grade
from luftpause.cli.examining.report import as_json, as_text
from luftpause.cli.examining.rounds import rounds
from luftpause.cli.examining.subject import Subject
from luftpause.cli.examples import examples
from luftpause.cli.failures import FAILED
from luftpause.cli.options import FiniteRange, config_option, overrides_of, set_option
from luftpause.config.load import load
from luftpause.config.problems import ConfigError
from luftpause.telemetry import logs

LOOK_S = 3.0


@dataclass(frozen=True, slots=True, kw_only=True)
class _Visit:
    """How to look: `look_s` bounds each look, seconds."""

    file: Path | None
    env: Mapping[str, str]
    overrides: Mapping[str, str]
    look_s: float


@click.command(
    short_help="Look for what is wrong, and say what mends it.",
    epilog=examples(
        ("luftpause doctor", "of luftpause.toml here"),
        ("luftpause doctor --config my.toml --json", "for programs"),
    ),
)
@click.option("--json", "prints_json", is_flag=True, help="Print one JSON object.")
@click.option(
    "--patience",
    type=FiniteRange(0.1, 60),
    default=LOOK_S,
    show_default=True,
    metavar="SECONDS",
    help="The longest that one look may take.",
)
@config_option
@set_option
@click.pass_context
def command(ctx: click.Context, prints_json: bool, patience: float, config: Path | None) -> None:
    """Look at configuration, ports, services, engines, tools, journal and models; change nothing.

    Each finding is ok, a note, a warning or an error, and says what mends it. Exits with 1 if there is an error.
    """
    logs.configure("critical")  # what a look comes upon is a finding, not a log line
    visit = _Visit(file=config, env=os.environ, overrides=overrides_of(ctx), look_s=patience)
    findings = asyncio.run(_findings(visit))
    if prints_json:
        click.echo(as_json(findings))
    else:
        Console(highlight=False).print(as_text(findings), soft_wrap=True)
    if any(each.grade is Grade.ERROR for each in findings):
        ctx.exit(FAILED)


async def _findings(visit: _Visit) -> list[Finding]:
    try:
        loaded = load(visit.file, visit.env, visit.overrides)
    except ConfigError as error:
        return configuration.broken(error, visit.file)
    filled = stands_in(loaded, visit.env)
    config, story = (filled.config, filled.story) if filled is not None else (loaded.config, "")
    engines = HttpEngines(connect_timeout_s=visit.look_s)
    subject = Subject(
        config=config,
        file=loaded.source,
        named=visit.file is not None,
        env=visit.env,
        engines=engines,
        look_s=visit.look_s,
    )
    try:
        return [*configuration.examined(loaded, config, story), *await rounds(subject)]
    finally:
        await engines.close()
