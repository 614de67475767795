"""Who may come in, from the environment and the command line."""

import os

import click

from luftpause.assembly.doors import Access
from luftpause.cli.failures import CommandFailedError
from luftpause.cli.options import Callback

TOKEN_VARIABLE = "LUFTPAUSE_TOKEN"


def access_option(callback: Callback) -> Callback:
    """Add `--allow-unauthenticated`; `access_of` has what it said."""
    return click.option(
        "--allow-unauthenticated",
        is_flag=True,
        expose_value=False,
        callback=_take,
        help="Open doors to other machines although LUFTPAUSE_TOKEN is not set.",
    )(callback)


def access_of(ctx: click.Context) -> Access:
    """Return who may come in; without a token anyone may who can reach the doors, and a warning says so."""
    token = os.environ.get(TOKEN_VARIABLE, "").strip()  # one read from a file often ends in a line break
    if not all("!" <= character <= "~" for character in token):
        raise CommandFailedError(f"{TOKEN_VARIABLE} holds a character that no client can send; use printable ASCII")
    if not token:
        click.echo(f"warning: {TOKEN_VARIABLE} is not set: any program on this machine may use every door", err=True)
    return Access(token=token, open_to_all=bool(ctx.meta.get(__name__)))


def _take(ctx: click.Context, _: click.Parameter, value: bool) -> None:
    ctx.meta[__name__] = value
