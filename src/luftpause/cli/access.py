"""Who may come in, from the environment and the command line."""

import os
import secrets
from dataclasses import replace

import click

from luftpause.assembly.declared import is_sendable, principal_keys
from luftpause.assembly.doors import Access
from luftpause.cli.failures import CommandFailedError
from luftpause.cli.options import Callback
from luftpause.config.schema import Config

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


def access_of(ctx: click.Context, config: Config) -> Access:
    """Return who may come in, the declared principals included; a warning says so where anybody may.

    Raises:
        CommandFailedError: LUFTPAUSE_TOKEN cannot be sent.
        ConfigError: the token of a principal cannot be used.
    """
    access = operator_access_of(ctx, config)
    return replace(access, principals=principal_keys(config, os.environ, operator_token=access.token))


def operator_access_of(ctx: click.Context, config: Config) -> Access:
    """Return who may come in where no door is open to the declared principals; see `access_of`.

    Without LUFTPAUSE_TOKEN anybody may, but not where principals are declared: then a token that nobody knows stands
    in for it, since whoever may use the scheduler's addresses may act for all of them.
    """
    token = os.environ.get(TOKEN_VARIABLE, "").strip()  # one read from a file often ends in a line break
    if not is_sendable(token):
        raise CommandFailedError(f"{TOKEN_VARIABLE} holds a character that no client can send; use printable ASCII")
    if not token and config.principals:
        token = secrets.token_urlsafe(32)
        click.echo(f"warning: {TOKEN_VARIABLE} is not set: status and link are closed to everybody", err=True)
    elif not token:
        click.echo(f"warning: {TOKEN_VARIABLE} is not set: whoever can reach a door may use it", err=True)
    return Access(token=token, open_to_all=bool(ctx.meta.get(__name__)))


def _take(ctx: click.Context, _: click.Parameter, value: bool) -> None:
    ctx.meta[__name__] = value
