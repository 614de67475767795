"""`luftpause models`: which models launchers have, and what an operator wants of them.

Names and log lines come from elsewhere, so none of them is printed as it came.
"""

import http.client
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeVar
from urllib.parse import quote, urlencode

import click
import msgspec
from rich.table import Table

from luftpause.cli.asking import ANSWER_BYTES_MAX, answer_of, configured_url
from luftpause.cli.examples import examples
from luftpause.cli.failures import CommandFailedError
from luftpause.cli.options import config_option
from luftpause.cli.tables import console, safe_table
from luftpause.telemetry.printable import printable

MIB = 2**20


class Leases(msgspec.Struct, frozen=True):
    """What keeps a model up."""

    in_flight: int = 0
    waiting: int = 0
    expected: int = 0


class ParkedKv(msgspec.Struct, frozen=True):
    """Runs whose KV is kept in files."""

    runs: int = 0
    bytes: int = 0


class ModelRow(msgspec.Struct, frozen=True, kw_only=True):
    """What this command shows of a model; further fields are none of its business."""

    name: str
    launcher: str = ""
    state: str = ""
    leases: Leases = Leases()
    memory: int = 0
    memory_measured: bool = False
    parked: ParkedKv = ParkedKv()
    pinned: bool = False
    ttl_left_s: float | None = None
    eta_s: float | None = None
    retry_after_s: float | None = None
    why: str = ""


class Listing(msgspec.Struct, frozen=True, kw_only=True):
    """The answer to `GET /models`."""

    models: list[ModelRow]


class Told(msgspec.Struct, frozen=True):
    """What an error says."""

    message: str = ""


class Failed(msgspec.Struct, frozen=True):
    """An error's body."""

    error: Told = Told()


class Lines(msgspec.Struct, frozen=True):
    """The answer to `GET /models/M/logs`."""

    lines: list[str] = []


class Line(msgspec.Struct, frozen=True):
    """One event of a log that is followed."""

    line: str = ""


Callback = Callable[..., None]

T = TypeVar("T")


@click.group(short_help="List, load and unload models.")
def command() -> None:
    """List, load, unload and pin the models that launchers start on demand, and read what their engines write."""


def where(callback: Callback) -> Callback:
    """Add `--url` and `--config`."""
    url = click.option("--url", metavar="URL", help="The scheduler's status address; from the configuration if absent.")
    return config_option(url(callback))


@command.command(
    name="list",
    epilog=examples(
        ("luftpause models list", ""),
        ("luftpause models list --json", "for programs"),
    ),
)
@click.option("--json", "as_json", is_flag=True, help="Print the scheduler's own JSON.")
@where
def list_models(as_json: bool, url: str | None, config: Path | None) -> None:
    """Show all models and what they are up to."""
    address = url or configured_url(config)
    body = _asked(address, "GET", "/models")
    listing = _decoded(body, address, Listing)
    if as_json:
        click.echo(msgspec.json.encode(msgspec.json.decode(body)))
    else:
        console().print(models_table(listing.models))


@command.command(
    epilog=examples(
        ("luftpause models load smollm2", ""),
    ),
)
@click.argument("model")
@where
def load(model: str, url: str | None, config: Path | None) -> None:
    """Have MODEL loaded, if there is room beside what is used."""
    _wish(url or configured_url(config), model, "load")


@command.command(
    epilog=examples(
        ("luftpause models unload smollm2", "once its turns have ended"),
        ("luftpause models unload smollm2 --force", "at once"),
    ),
)
@click.argument("model")
@click.option("--force", is_flag=True, help="At once, whatever is in flight; else once that has ended.")
@click.option("--keep-waiting", is_flag=True, help="Turns that wait for it go on to wait; else they are refused.")
@where
def unload(model: str, force: bool, keep_waiting: bool, url: str | None, config: Path | None) -> None:
    """Have MODEL unloaded."""
    flags = {name: "true" for name, on in (("force", force), ("keep_waiting", keep_waiting)) if on}
    _wish(url or configured_url(config), model, "unload", flags)


@command.command(
    epilog=examples(
        ("luftpause models pin smollm2", ""),
    ),
)
@click.argument("model")
@where
def pin(model: str, url: str | None, config: Path | None) -> None:
    """Keep MODEL up once it is up, whoever needs its room."""
    _wish(url or configured_url(config), model, "pin")


@command.command(
    epilog=examples(
        ("luftpause models unpin smollm2", ""),
    ),
)
@click.argument("model")
@where
def unpin(model: str, url: str | None, config: Path | None) -> None:
    """Let MODEL go again when it is idle or its room is needed."""
    _wish(url or configured_url(config), model, "unpin")


@command.command(
    epilog=examples(
        ("luftpause models logs smollm2 -n 50", "the last 50 lines"),
        ("luftpause models logs smollm2 -f", "and what follows"),
    ),
)
@click.argument("model")
@click.option("-f", "--follow", is_flag=True, help="Go on until Ctrl-C.")
@click.option(
    "-n", "--lines", type=click.IntRange(0, 1000), default=200, show_default=True, help="Lines to begin with."
)
@where
def logs(model: str, follow: bool, lines: int, url: str | None, config: Path | None) -> None:
    """Show what the engines of MODEL wrote last."""
    address = url or configured_url(config)
    query = urlencode({"lines": lines, **({"follow": "true"} if follow else {})})
    path = f"/models/{quote(model, safe='')}/logs?{query}"
    if not follow:
        for line in _decoded(_asked(address, "GET", path), address, Lines).lines:
            click.echo(printable(line))
        return
    try:
        with answer_of(address, "GET", path, os.environ, follows=True) as response:
            _check(response, address)
            while event := response.readline(ANSWER_BYTES_MAX):
                if event.startswith(b"data: "):
                    click.echo(printable(_decoded(event[len(b"data: ") :], address, Line).line))
    except KeyboardInterrupt:
        click.echo()


def _wish(address: str, model: str, what: str, query: dict[str, str] | None = None) -> None:
    path = f"/models/{quote(model, safe='')}/{what}" + (f"?{urlencode(query)}" if query else "")
    row = _decoded(_asked(address, "POST", path), address, ModelRow)
    why = f" ({row.why})" if row.why else ""
    click.echo(printable(f"{row.name}: {row.state}{', pinned' if row.pinned else ''}{why}"))


def _asked(address: str, method: str, path: str) -> bytes:
    with answer_of(address, method, path, os.environ) as response:
        _check(response, address)
        return response.read(ANSWER_BYTES_MAX)


def _check(response: http.client.HTTPResponse, address: str) -> None:
    if response.status == http.client.OK:
        return
    try:
        said = msgspec.json.decode(response.read(ANSWER_BYTES_MAX), type=Failed).error.message
    except (msgspec.MsgspecError, UnicodeDecodeError):
        said = ""
    raise CommandFailedError(said or f"{address} is no scheduler: it answered {response.status}")


def _decoded(body: bytes, address: str, kind: type[T]) -> T:
    try:
        return msgspec.json.decode(body, type=kind)
    except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError) as error:
        raise CommandFailedError(f"{address} answered something that is no scheduler's: {error}") from None


def models_table(models: Sequence[ModelRow]) -> Table:
    """Return models as a table for a terminal."""
    columns = ("model", "launcher", "state", "turns", "waiting", "expected", "memory", "parked", "why")
    return safe_table("Models", columns, map(_cells, models), spare=("launcher", "expected"))


def _cells(row: ModelRow) -> tuple[str, ...]:
    about = "" if row.memory_measured else "~"
    size = f"{about}{in_units(row.memory)}" if row.memory else "?"
    return (row.name, row.launcher, _state(row), *_counts(row.leases), size, _parked(row.parked), row.why)


def in_units(count: int) -> str:
    """Return so many bytes in the unit that people would say."""
    return f"{count / MIB:,.0f} MiB" if count < 1024 * MIB else f"{count / MIB / 1024:,.1f} GiB"


def _counts(leases: Leases) -> tuple[str, str, str]:
    return str(leases.in_flight), str(leases.waiting), str(leases.expected)


def _parked(kept: ParkedKv) -> str:
    return f"{kept.runs} ({in_units(kept.bytes)})" if kept.runs else ""


def _state(row: ModelRow) -> str:
    said = row.state + (", pinned" if row.pinned else "")
    if row.eta_s == 0:
        return f"{said}, longer than estimated"
    if row.eta_s is not None:
        return f"{said}, ready in {max(1, row.eta_s):.0f} s"
    if row.retry_after_s is not None:
        return f"{said}, left alone for {row.retry_after_s:.0f} s"
    return said if row.ttl_left_s is None else f"{said}, idle for another {row.ttl_left_s:.0f} s"
