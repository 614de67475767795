"""`luftpause connect`: what a client has to be told so that it uses our doors; with `--write` it is told."""

import os
from collections.abc import Iterable
from pathlib import Path
from urllib.parse import quote

import click

from luftpause.assembly.embedded import stands_in
from luftpause.cli.access import TOKEN_VARIABLE
from luftpause.cli.asking import url_of
from luftpause.cli.connecting.clients import CLIENTS, Client
from luftpause.cli.connecting.merging import shown
from luftpause.cli.connecting.steps import (
    Addresses,
    Advice,
    Command,
    Door,
    Fragment,
    Recipe,
    Step,
    Variables,
)
from luftpause.cli.connecting.words import command_line, exports
from luftpause.cli.connecting.writing import Files
from luftpause.cli.examples import examples
from luftpause.cli.failures import CommandFailedError
from luftpause.cli.options import config_option
from luftpause.config.load import load
from luftpause.config.schema import Config

NO_MODEL = "MODEL"
"""Stands for a model where the configuration names none."""
DOORS = {Door.LLM: "model calls", Door.MCP: "spawn and await as tools"}


@click.command(
    short_help="Point a client at the doors.",
    epilog=examples(
        ("luftpause connect", "which clients there are"),
        ("luftpause connect claude-code", "what it has to be told"),
        ("luftpause connect codex --write", "tell it"),
        ("luftpause connect opencode --door mcp --write", "only spawn and await"),
    ),
)
@click.argument("client", type=click.Choice(list(CLIENTS)), metavar="[CLIENT]", required=False)
@click.option(
    "--door",
    type=click.Choice([door.value for door in Door]),
    help="llm: the client's own model calls; mcp: spawn and await as tools. Both if absent.",
)
@click.option("--model", metavar="NAME", help="What it asks for; the first model of the configuration if absent.")
@click.option("--caller", metavar="NAME", help="What its work is accounted to; the client's name if absent.")
@click.option("--write", is_flag=True, help="Merge what belongs into files into them; a .bak keeps the old text.")
@config_option
def command(
    client: str | None, door: str | None, model: str | None, caller: str | None, write: bool, config: Path | None
) -> None:
    """Show how a client is pointed at the doors, or do it with --write. Without CLIENT, list those that there are.

    Files of the client are merged into, never replaced. Variables and commands are only shown: nothing is run, and no
    shell profile is touched.
    """
    if client is None:
        _list()
        return
    chosen = CLIENTS[client]
    loaded = load(config, os.environ, {})
    filled = stands_in(loaded, os.environ)
    run = loaded.config if filled is None else filled.config
    at = Addresses(
        llm=url_of(run.dataplane.host, run.dataplane.port),
        mcp=url_of(run.runtime.host, run.runtime.port) + "/mcp",
        model=model or _first_model(run) or NO_MODEL,
        caller=quote(caller or client, safe="-_. "),
        token_env=TOKEN_VARIABLE if os.environ.get(TOKEN_VARIABLE, "").strip() else "",
    )
    recipes = [recipe for recipe in chosen.recipes(at) if door in (None, recipe.door.value)]
    if not recipes:
        raise CommandFailedError(f"{chosen.title} cannot use this door: {chosen.without}")
    files = Files() if write else None
    if files is not None:
        files.prove(step for recipe in recipes for step in recipe.steps if isinstance(step, Fragment))
    for recipe in recipes:
        _tell(chosen, recipe, files)
    if at.model == NO_MODEL:
        click.echo(f"# put a model's name in place of {NO_MODEL}: curl {at.llm}/v1/models lists them")


def _list() -> None:
    at = Addresses(llm="", mcp="", model="", caller="")
    wide = max(map(len, CLIENTS))
    for name, client in CLIENTS.items():
        doors = ", ".join(DOORS[recipe.door] for recipe in client.recipes(at))
        click.echo(f"{name:{wide}}  {client.title}: {doors}")
    click.echo("\nluftpause connect claude-code          shows what it has to be told")
    click.echo("luftpause connect claude-code --write  tells it what belongs into files")


def _first_model(config: Config) -> str:
    declared = [model for replica in config.replicas for model in replica.models]
    return next(iter([*declared, *(model.name for model in config.launcher.models)]), "")


def _tell(client: Client, recipe: Recipe, files: Files | None) -> None:
    tried = f"tried with {recipe.tried}" if recipe.tried else "by its documentation, not tried here"
    click.echo(f"# {client.title}, {DOORS[recipe.door]} ({tried})")
    for step in recipe.steps:
        if files is not None and isinstance(step, Fragment):
            files.put_in(step)
        else:
            for line in _lines(step):
                click.echo(line)
    click.echo()


def _lines(step: Step) -> Iterable[str]:
    match step:
        case Variables():
            yield from exports(step)
        case Command(argv=argv):
            yield command_line(argv)
        case Fragment(path=path, format=format, content=content):
            yield f"# in {path}:"
            yield shown(content, format)
        case Advice(text=text):
            yield f"# {text}"
