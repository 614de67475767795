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
from rich.console import Group, RenderableType
from rich.live import Live
from rich.table import Table
from rich.text import Text

from luftpause.cli.asking import ANSWER_BYTES_MAX, answer_of, configured_url
from luftpause.cli.examples import examples
from luftpause.cli.failures import CommandFailedError
from luftpause.cli.models import in_units, models_table
from luftpause.cli.options import FiniteRange, config_option
from luftpause.cli.status_rows import (
    CallerRow,
    DeviceRow,
    Event,
    FamilyRow,
    HeldRow,
    MemberRow,
    PeerRow,
    ReplicaRow,
    RunRow,
    Spent,
    Status,
    SubAgentRow,
    ToolRow,
)
from luftpause.cli.tables import console, safe_table
from luftpause.telemetry.printable import printable

SHOWN_MAX = 20
"""Rows of callers, of families and of sub-agents."""
CHILDREN_MAX = 5
"""Rows of each family's children."""
TASK_MAX = 40
"""Characters of a task or of a call's arguments."""


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
    """Show what the status page shows.

    Tool calls that wait for a person, what each held turn waits for, runs and sub-agents, tools, models, replicas.

    --json prints the scheduler's own `GET /status`, which docs/status.schema.json describes. Exit code 1 when no
    scheduler answers.
    """
    address = url or configured_url(config)
    try:
        if as_json:
            _print_json(address, interval if watch else None)
        elif watch:
            _watch(address, interval)
        else:
            console().print(_all(address))
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


def first_event(address: str, env: Mapping[str, str]) -> Event:
    """Return the first event of the page's stream, which has all there is.

    Raises:
        CommandFailedError: there is none, for the reason that is said.
    """
    with answer_of(address, "GET", "/events", env) as response:
        line = response.readline(ANSWER_BYTES_MAX + 1)
        status = response.status
    if status != http.client.OK or not line.startswith(b"data: "):
        raise CommandFailedError(f"GET /events answered {status}")
    try:
        return msgspec.json.decode(line.removeprefix(b"data: "), type=Event)
    except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError) as error:
        raise CommandFailedError(f"GET /events answered something else: {error}") from None


def _all(address: str) -> Group:
    """Ask for everything and return it as tables."""
    status = decoded(fetch(address, os.environ), address)
    try:
        event = first_event(address, os.environ)
    except CommandFailedError as error:
        return _spaced([*_tables(status), Text(printable(f"sub-agents are not told: {error}"))])
    return _spaced([*_waiting(event, address), *_tables(status), *_sub_agents(event)])


def _spaced(parts: Sequence[RenderableType]) -> Group:
    """Return tables with an empty line before each, and lines of text right below what they belong to."""
    shown: list[RenderableType] = []
    for part in parts:
        shown += [Text(""), part] if shown and isinstance(part, Table) else [part]
    return Group(*shown)


def _tables(status: Status) -> list[RenderableType]:
    parts: list[RenderableType] = [_held(status.held) if status.held else Text("no held turns")]
    parts.append(_runs(status.runs) if status.runs else Text("no runs"))
    if status.callers:
        parts.append(_callers(status.callers))
    if status.families:
        parts.append(_families(status.families))
    if status.tools:
        parts.append(_tools(status.tools))
    if status.models:
        parts.append(models_table(status.models))
        parts += [Text(printable(_memory(device))) for device in status.devices]
    parts.append(_replicas(status.replicas))
    if status.peers:
        parts.append(_peers(status.peers))
    return parts


def _waiting(event: Event, address: str) -> list[RenderableType]:
    """Return the calls that wait for a person, and where they are answered; nothing where there are none."""
    trees = event.tables.trees
    rows = [
        (call.tool, _cut(call.arguments), call.reason, _cut(run.task or run.handle))
        for run in (trees.rows[key] for key in trees.order)
        for call in run.approvals
    ]
    if not rows:
        return []
    table = safe_table("Waiting for you", ("tool", "arguments", "because", "run"), rows, spare=("because",))
    return [table, Text(printable(f"answer on the page: {address}"))]


def _sub_agents(event: Event) -> list[RenderableType]:
    trees, runtime = event.tables.trees, event.runtime
    parts: list[RenderableType] = []
    if trees.order:
        rows = (_sub_agent(trees.rows[key]) for key in trees.order[:SHOWN_MAX])
        columns = ("run", "task", "state", "turns", "tool calls", "tokens in", "tokens out")
        parts.append(safe_table("Sub-agents", columns, rows, spare=columns[-3:]))
    more = len(trees.order[SHOWN_MAX:]) + (runtime.omitted if runtime is not None else 0)
    if more:
        parts.append(Text(f"and {more} more"))
    if runtime is not None and runtime.away:
        parts.append(Text(printable(f"the runtime at {runtime.url} does not answer: {runtime.away}")))
    return parts


def _sub_agent(run: SubAgentRow) -> tuple[str, ...]:
    turns, *tokens = _costs(run.subtree)
    return (run.handle, _cut(run.task), run.status, turns, str(run.subtree.tool_calls), *tokens)


def _cut(text: str) -> str:
    return text if len(text) <= TASK_MAX else f"{text[: TASK_MAX - 1]}…"


def _replicas(rows: Sequence[ReplicaRow]) -> Table:
    columns = ("replica", "models", "state", "in flight", "foreign")
    return safe_table("Replicas", columns, map(_replica, rows))


def _replica(row: ReplicaRow) -> tuple[str, ...]:
    most = "" if row.capacity is None else f"/{row.capacity}"
    state = row.state or ("healthy" if row.healthy else "unhealthy")
    return (row.name, ", ".join(row.models), state, f"{row.in_flight}{most}", str(row.foreign or ""))


def _held(rows: Sequence[HeldRow]) -> Table:
    columns = ("class", "caller", "turns", "oldest", "next in", "why")
    return safe_table("Held turns", columns, map(_held_row, rows), spare=("class",))


def _held_row(row: HeldRow) -> tuple[str, ...]:
    return (row.service_class, row.caller, str(row.count), f"{row.oldest_s:.1f} s", _next_in(row), row.reason)


def _next_in(row: HeldRow) -> str:
    if row.expected_s is None:
        return ""
    if not row.expected_s:
        return "soon"  # later than was thought, or at once
    return "< 1 s" if row.expected_s < 1 else f"{row.expected_s:.0f} s"


def _runs(rows: Sequence[RunRow]) -> Table:
    return safe_table("Runs", ("phase", "class", "runs"), ((r.phase, r.service_class, str(r.count)) for r in rows))


def _callers(rows: Sequence[CallerRow]) -> Table:
    cells = ((row.principal, row.caller, str(row.in_flight), str(row.held)) for row in rows[:SHOWN_MAX])
    return safe_table("Callers", ("principal", "caller", "in flight", "held"), cells)


def _families(rows: Sequence[FamilyRow]) -> Table:
    """Return the busiest families with all that they cost; children that are parents have rows of their own too."""
    cells: list[tuple[str, ...]] = []
    for family in rows[:SHOWN_MAX]:
        cells.append((family.run, *_standing(family), *_costs(family.subtree)))
        children = family.children[:CHILDREN_MAX]
        cells += [(f"  {child.run}", *_standing(child), *_costs(child.own)) for child in children]
        more = len(family.children) - len(children) + family.omitted
        if more:
            cells.append((f"  and {more} more", "", "", "", "", ""))
    columns = ("run", "phase", "class", "turns", "tokens in", "tokens out")
    return safe_table("Families", columns, cells, spare=columns[-2:])


def _standing(member: MemberRow) -> tuple[str, str]:
    return member.phase or "not known", member.service_class or ""


def _costs(spent: Spent) -> tuple[str, str, str]:
    return str(spent.turns), f"{spent.prompt_tokens:,}", f"{spent.completion_tokens:,}"


def _memory(device: DeviceRow) -> str:
    return f"{device.launcher} {device.device}: {in_units(device.taken)} of {in_units(device.budget)}"


def _tools(rows: Sequence[ToolRow]) -> Table:
    columns = ("server", "tool", "out now", "came back", "p50", "p90", "expected back")
    return safe_table("Tools", columns, map(_tool, rows), spare=("server", "came back", "p90"))


def _tool(row: ToolRow) -> tuple[str, ...]:
    times = (f"{seconds:.1f} s" for seconds in (row.p50_s, row.p90_s, row.expected_return_s))
    return (row.server, row.tool, str(row.running), str(row.returned), *times)


def _peers(rows: Sequence[PeerRow]) -> Table:
    cells = ((row.name, "up" if row.connected else "lost, in its grace", str(row.open_turns)) for row in rows)
    return safe_table("Peers", ("peer", "link", "open turns"), cells)


def _print_json(address: str, interval: float | None) -> None:
    while True:
        body = fetch(address, os.environ)
        decoded(body, address)
        click.echo(msgspec.json.encode(msgspec.json.decode(body)))
        if interval is None:
            return
        time.sleep(interval)


def _watch(address: str, interval: float) -> None:
    screen = console()
    with Live(Text(""), console=screen, auto_refresh=False, screen=False) as live:
        while True:
            try:
                shown: Group | Text = _all(address)
            except CommandFailedError as error:  # it may come back; that is what watching is for
                shown = Text(printable(str(error)))
            if screen.is_terminal:
                live.update(shown, refresh=True)
            else:
                screen.print(shown)  # there is nothing to draw over
            time.sleep(interval)
