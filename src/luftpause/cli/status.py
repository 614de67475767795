"""`luftpause status`: what the scheduler sees, as tables or JSON, once or again and again.

Every name in the answer comes from clients and engines, so none of it is printed as it came.
"""

import http.client
import os
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

import click
import msgspec
from rich.console import Console, Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from luftpause.cli.asking import ANSWER_BYTES_MAX, answer_of, configured_url
from luftpause.cli.failures import CommandFailedError
from luftpause.cli.options import config_option
from luftpause.telemetry.printable import printable


class ReplicaRow(msgspec.Struct, frozen=True, kw_only=True):
    """One replica; capacity is None while its turns are not capped."""

    name: str
    models: list[str] = []
    healthy: bool = False
    state: str = ""
    in_flight: int = 0
    capacity: int | None = None


class HeldRow(msgspec.Struct, frozen=True, kw_only=True):
    """Turns that wait for the same reason; `oldest_s` is how long the oldest has waited, in seconds."""

    service_class: str = msgspec.field(name="class", default="")
    caller: str = ""
    count: int = 1
    oldest_s: float = 0.0
    reason: str = ""


class RunRow(msgspec.Struct, frozen=True, kw_only=True):
    """How many runs of a class are in a phase."""

    phase: str
    service_class: str = msgspec.field(name="class", default="")
    count: int


class ToolRow(msgspec.Struct, frozen=True, kw_only=True):
    """How long runs stay out on a tool, in seconds."""

    server: str = ""
    tool: str
    returned: int = 0
    running: int = 0
    p50_s: float
    p90_s: float
    expected_return_s: float


class PeerRow(msgspec.Struct, frozen=True, kw_only=True):
    """A service that holds the scheduler over its link."""

    name: str
    connected: bool = False
    open_turns: int = 0


class Status(msgspec.Struct, frozen=True, kw_only=True):
    """What this command needs of the scheduler's `GET /status`; further fields are none of its business."""

    replicas: list[ReplicaRow]
    held: list[HeldRow] = []
    runs: list[RunRow] = []
    tools: list[ToolRow] = []
    peers: list[PeerRow] = []


@click.command(short_help="Show replicas, held turns, runs and tools.")
@click.option("--url", metavar="URL", help="The scheduler's status address; from the configuration if absent.")
@click.option("--json", "as_json", is_flag=True, help="Print the scheduler's own JSON, one line each time.")
@click.option("--watch", is_flag=True, help="Go on until Ctrl-C.")
@click.option(
    "--interval",
    type=click.FloatRange(0.1, 3600),
    default=2.0,
    show_default=True,
    metavar="SECONDS",
    help="Time between two looks with --watch.",
)
@config_option
def command(url: str | None, as_json: bool, watch: bool, interval: float, config: Path | None) -> None:
    """Show replicas, held turns, runs and tools, as the scheduler sees them."""
    address = url or configured_url(config)
    try:
        if as_json:
            _print_json(address, interval if watch else None)
        elif watch:
            _watch(address, interval)
        else:
            Console().print(tables(decoded(fetch(address, os.environ), address)))
    except KeyboardInterrupt:
        click.echo()


def fetch(address: str, env: Mapping[str, str]) -> bytes:
    """Return the body of `GET /status` below an address. Sends the token of LUFTPAUSE_TOKEN if that is set.

    Raises:
        CommandFailedError: nothing answers there, or not with a status.
    """
    with answer_of(address, "GET", "/status", env) as response:
        body = response.read(ANSWER_BYTES_MAX + 1)
        status = response.status
    if status != http.client.OK or len(body) > ANSWER_BYTES_MAX:
        raise CommandFailedError(
            f"{address} is no scheduler: GET /status answered {status}; give the address that"
            " `luftpause up` prints as status"
        )
    return body


def decoded(body: bytes, address: str) -> Status:
    """Return the answer as values.

    Raises:
        CommandFailedError: it is no scheduler's status.
    """
    try:
        return msgspec.json.decode(body, type=Status)
    except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError) as error:
        raise CommandFailedError(f"{address} answered something that is no scheduler's status: {error}") from None


def tables(status: Status) -> Group:
    """Return the status as tables for a terminal."""
    replicas = _table("replica", "models", "state", "in flight", title="Replicas")
    for replica in status.replicas:
        most = "" if replica.capacity is None else f"/{replica.capacity}"
        state = replica.state or ("healthy" if replica.healthy else "unhealthy")
        _add(replicas, replica.name, ", ".join(replica.models), state, f"{replica.in_flight}{most}")
    held = _table("class", "caller", "turns", "oldest", "why", title="Held turns")
    for row in status.held:
        _add(held, row.service_class, row.caller, str(row.count), f"{row.oldest_s:.1f} s", row.reason)
    runs = _table("phase", "class", "runs", title="Runs")
    for run in status.runs:
        _add(runs, run.phase, run.service_class, str(run.count))
    parts = [replicas, held if status.held else Text("no held turns"), runs if status.runs else Text("no runs")]
    if status.tools:
        parts.append(_tools(status.tools))
    if status.peers:
        parts.append(_peers(status.peers))
    return Group(*parts)


def _tools(rows: Sequence[ToolRow]) -> Table:
    tools = _table("server", "tool", "out now", "came back", "p50", "p90", "expected back", title="Tools")
    for row in rows:
        times = (f"{seconds:.1f} s" for seconds in (row.p50_s, row.p90_s, row.expected_return_s))
        _add(tools, row.server, row.tool, str(row.running), str(row.returned), *times)
    return tools


def _peers(rows: Sequence[PeerRow]) -> Table:
    peers = _table("peer", "link", "open turns", title="Peers")
    for row in rows:
        _add(peers, row.name, "up" if row.connected else "lost, in its grace", str(row.open_turns))
    return peers


def _print_json(address: str, interval: float | None) -> None:
    while True:
        body = fetch(address, os.environ)
        decoded(body, address)
        click.echo(msgspec.json.encode(msgspec.json.decode(body)))
        if interval is None:
            return
        time.sleep(interval)


def _watch(address: str, interval: float) -> None:
    with Live(Text(""), auto_refresh=False, screen=False) as live:
        while True:
            try:
                shown: Group | Text = tables(decoded(fetch(address, os.environ), address))
            except CommandFailedError as error:  # it may come back; that is what watching is for
                shown = Text(printable(str(error)))
            live.update(shown, refresh=True)
            time.sleep(interval)


def _table(*columns: str, title: str) -> Table:
    table = Table(title=title, title_justify="left")
    for column in columns:
        table.add_column(column)
    return table


def _add(table: Table, *cells: str) -> None:
    table.add_row(*(Text(printable(cell)) for cell in cells))
