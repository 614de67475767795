"""The options of whatever runs the scheduler that make it write down what it decides."""

from pathlib import Path

import click

from luftpause.assembly.recording import Recording
from luftpause.cli.files import FilePath
from luftpause.cli.options import Callback


def event_log_options(callback: Callback) -> Callback:
    """Add `--event-log FILE` and `--validate`; `recording_of` has what they said."""
    log = click.option(
        "--event-log",
        type=FilePath(path_type=Path, dir_okay=False),
        metavar="FILE",
        expose_value=False,
        callback=_take,
        help="Append every event and decision of the scheduler there, for `luftpause replay`.",
    )
    validate = click.option(
        "--validate",
        is_flag=True,
        expose_value=False,
        callback=_take,
        help="Prove the scheduler's state sound after every event; slow.",
    )
    return log(validate(callback))


def recording_of(ctx: click.Context) -> Recording:
    """Return what is to be written down."""
    said = ctx.meta.get(__name__, {})
    return Recording(event_log=said.get("event_log"), validates=bool(said.get("validate")))


def _take(ctx: click.Context, option: click.Parameter, value: object) -> None:
    ctx.meta.setdefault(__name__, {})[option.name] = value
