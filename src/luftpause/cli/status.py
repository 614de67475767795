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
from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.table import Table
from rich.text import Text

from luftpause.cli.asking import ANSWER_BYTES_MAX, answer_of, configured_url
from luftpause.cli.examples import examples
from luftpause.cli.failures import CommandFailedError
from luftpause.cli.models import MIB, models_table
from luftpause.cli.options import FiniteRange, config_option
from luftpause.cli.status_rows import (
    CallerRow,
    DeviceRow,
    FamilyRow,
    HeldRow,
    MemberRow,
    PeerRow,
    ReplicaRow,
    RunRow,
    Spent,
    Status,
    ToolRow,
)
from luftpause.telemetry.printable import printable

SHOWN_MAX = 20
"""Rows of callers and of families."""
CHILDREN_MAX = 5
"""Rows of each family's children."""


@click.command(
    short_help="Show models, replicas, held turns and runs.",
    epilog=examples(
        ("luftpause status", "once"),
        ("luftpause status --watch", "again and again, until Ctrl-C"),
        ("luftpause status --json", "for programs"),
    ),
)
@click.option("--url", metavar="URL", help="The scheduler's status address; from the configuration if absent.")
@click.option("--json", "as_json", is_flag=True, help="Print the scheduler's own JSON, one line each time.")
@click.option("--watch", is_flag=True, help="Go on until Ctrl-C.")
@click.option(
    "--interval",
    type=FiniteRange(0.1, 3600),
    default=2.0,
    show_default=True,
    metavar="SECONDS",
    help="Time between two looks with --watch.",
)
@config_option
def command(url: str | None, as_json: bool, watch: bool, interval: float, config: Path | None) -> None:
    """Show models, replicas, held turns, runs and their families, callers and tools, as the scheduler sees them."""
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
    parts: list[RenderableType] = []
    if status.models:
        parts.append(models_table(status.models))
        parts += [Text(printable(_memory(device))) for device in status.devices]
    parts.append(_replicas(status.replicas))
    parts.append(_held(status.held) if status.held else Text("no held turns"))
    parts.append(_runs(status.runs) if status.runs else Text("no runs"))
    if status.callers:
        parts.append(_callers(status.callers))
    if status.families:
        parts.append(_families(status.families))
    if status.tools:
        parts.append(_tools(status.tools))
    if status.peers:
        parts.append(_peers(status.peers))
    return Group(*parts)


def _replicas(rows: Sequence[ReplicaRow]) -> Table:
    replicas = _table("replica", "models", "state", "in flight", "foreign", title="Replicas")
    for replica in rows:
        most = "" if replica.capacity is None else f"/{replica.capacity}"
        state = replica.state or ("healthy" if replica.healthy else "unhealthy")
        foreign = str(replica.foreign or "")
        _add(replicas, replica.name, ", ".join(replica.models), state, f"{replica.in_flight}{most}", foreign)
    return replicas


def _held(rows: Sequence[HeldRow]) -> Table:
    held = _table("class", "caller", "turns", "oldest", "about still", "why", title="Held turns")
    for row in rows:
        still = "" if row.expected_s is None else f"{row.expected_s:.0f} s"
        _add(held, row.service_class, row.caller, str(row.count), f"{row.oldest_s:.1f} s", still, row.reason)
    return held


def _runs(rows: Sequence[RunRow]) -> Table:
    runs = _table("phase", "class", "runs", title="Runs")
    for run in rows:
        _add(runs, run.phase, run.service_class, str(run.count))
    return runs


def _callers(rows: Sequence[CallerRow]) -> Table:
    callers = _table("principal", "caller", "in flight", "held", title="Callers")
    for row in rows[:SHOWN_MAX]:
        _add(callers, row.principal, row.caller, str(row.in_flight), str(row.held))
    return callers


def _families(rows: Sequence[FamilyRow]) -> Table:
    """Return the busiest families with all that they cost; children that are parents have rows of their own too."""
    families = _table("run", "phase", "class", "turns", "tokens in", "tokens out", title="Families")
    for family in rows[:SHOWN_MAX]:
        _add(families, family.run, *_standing(family), *_costs(family.subtree))
        for child in family.children[:CHILDREN_MAX]:
            _add(families, f"  {child.run}", *_standing(child), *_costs(child.own))
        more = len(family.children) - len(family.children[:CHILDREN_MAX]) + family.omitted
        if more:
            _add(families, f"  and {more} more", "", "", "", "", "")
    return families


def _standing(member: MemberRow) -> tuple[str, str]:
    return member.phase or "not known", member.service_class or ""


def _costs(spent: Spent) -> tuple[str, str, str]:
    return str(spent.turns), f"{spent.prompt_tokens:,}", f"{spent.completion_tokens:,}"


def _memory(device: DeviceRow) -> str:
    return f"{device.launcher} {device.device}: {device.taken / MIB:,.0f} of {device.budget / MIB:,.0f} MiB"


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
