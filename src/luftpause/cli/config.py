"""`luftpause config`: look for mistakes, tell where values come from, print the schema, import another program's."""

import importlib
import os
import sys
from pathlib import Path

import click
import msgspec

from luftpause.assembly.embedded import stands_in
from luftpause.assembly.parts import launcher_plan
from luftpause.cli.examples import examples
from luftpause.cli.failures import CommandFailedError
from luftpause.cli.options import config_option, overrides_of, set_option
from luftpause.config.explain import explain
from luftpause.config.llama_swap import NotLlamaSwapError, imported
from luftpause.config.load import Loaded, load
from luftpause.config.problems import ConfigError
from luftpause.config.reference import schema_json
from luftpause.telemetry.printable import printable


@click.group(short_help="Check and explain the configuration.")
def command() -> None:
    """Check and explain the configuration."""


@command.command(
    short_help="Look for mistakes.",
    epilog=examples(
        ("luftpause config check", "luftpause.toml, environment, --set"),
        ("luftpause config check --config my.toml", ""),
    ),
)
@config_option
@set_option
@click.pass_context
def check(ctx: click.Context, config: Path | None) -> None:
    """Look for mistakes in the file, the environment and the command line. Exits with 2 if there are any.

    Models to launch are looked at as at a start: their files, arguments and programs. Nothing is started.
    """
    loaded = _load(ctx, config)
    try:
        launcher_plan(loaded.config, None)
    except ConfigError as error:
        raise ConfigError(*map(loaded.placed, error.problems)) from None
    for warning in loaded.warnings:
        click.echo(f"warning: {warning}", err=True)
    found = (stands_in(loaded, os.environ) or loaded).config
    click.echo(
        f"ok: {loaded.source or 'the embedded default'}"
        f" (replicas: {len(found.replicas)}, models to launch: {len(found.launcher.models)}, tools: {len(found.tools)})"
    )


@command.command(
    name="explain",
    short_help="Show each value and what set it.",
    epilog=examples(
        ("luftpause config explain", "all of it"),
        ("luftpause config explain scheduler", "a section"),
    ),
)
@click.argument("key", default="")
@config_option
@set_option
@click.pass_context
def explain_values(ctx: click.Context, key: str, config: Path | None) -> None:
    """Show each value that is in force and which place set it; with KEY only that key or section."""
    for row in explain(_load(ctx, config), key):
        click.echo(f"{row.key} = {row.value}  # {row.origin.where}")


@command.command(
    short_help="Print the JSON schema of luftpause.toml.",
    epilog=examples(
        ("luftpause config schema > luftpause.schema.json", ""),
    ),
)
def schema() -> None:
    """Print the JSON schema of luftpause.toml, for editors and other tools."""
    click.echo(schema_json(), nl=False)


@command.command(
    name="import",
    short_help="Print a luftpause.toml made of another program's file.",
    epilog=examples(
        ("luftpause config import llama-swap config.yaml > luftpause.toml", ""),
    ),
)
@click.argument("source", type=click.Choice(["llama-swap"]))
@click.argument("file", type=click.Path(path_type=Path, exists=True, dir_okay=False))
def import_file(source: str, file: Path) -> None:
    """Print a luftpause.toml that does what FILE of another program does; notes about the rest go to stderr."""
    try:
        found = imported(_yaml(file))
    except NotLlamaSwapError as error:
        raise CommandFailedError(f"{file}: no {source} configuration: {error}") from None
    for note in found.notes:
        click.echo(f"note: {printable(note)}", err=True)
    click.echo(found.text, nl=False)


def _yaml(file: Path) -> object:
    """Return what a YAML file holds. One that is JSON, which is YAML too, needs no package for that."""
    text = file.read_bytes()
    try:
        return msgspec.json.decode(text)
    except msgspec.DecodeError:
        pass
    try:
        yaml = importlib.import_module("yaml")
    except ImportError:
        way = f"{sys.executable} -m pip install pyyaml"
        raise CommandFailedError(f"reading YAML needs a package: {way}; or write the file as JSON") from None
    try:
        return yaml.safe_load(text)
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise CommandFailedError(f"{file} is not valid YAML: {error}") from None


def _load(ctx: click.Context, config: Path | None) -> Loaded:
    return load(config, os.environ, overrides_of(ctx))
