"""`luftpause config`: look for mistakes, tell where values come from, print the JSON schema."""

import os
from pathlib import Path

import click

from luftpause.cli.options import config_option, overrides_of, set_option
from luftpause.config.explain import explain
from luftpause.config.load import Loaded, load
from luftpause.config.reference import schema_json


@click.group(short_help="Check and explain the configuration.")
def command() -> None:
    """Check and explain the configuration."""


@command.command()
@config_option
@set_option
@click.pass_context
def check(ctx: click.Context, config: Path | None) -> None:
    """Look for mistakes in the file, the environment and the command line. Exits with 2 if there are any."""
    loaded = _load(ctx, config)
    for warning in loaded.warnings:
        click.echo(f"warning: {warning}", err=True)
    found = loaded.config
    click.echo(
        f"ok: {loaded.source or 'the embedded default'}"
        f" (replicas: {len(found.replicas)}, models to launch: {len(found.launcher.models)}, tools: {len(found.tools)})"
    )


@command.command(name="explain")
@click.argument("key", default="")
@config_option
@set_option
@click.pass_context
def explain_values(ctx: click.Context, key: str, config: Path | None) -> None:
    """Show each value that is in force and which place set it; with KEY only that key or section."""
    for row in explain(_load(ctx, config), key):
        click.echo(f"{row.key} = {row.value}  # {row.origin.where}")


@command.command()
def schema() -> None:
    """Print the JSON schema of luftpause.toml, for editors and other tools."""
    click.echo(schema_json(), nl=False)


def _load(ctx: click.Context, config: Path | None) -> Loaded:
    return load(config, os.environ, overrides_of(ctx))
