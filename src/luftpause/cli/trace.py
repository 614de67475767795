"""`luftpause trace export`: what all runs and models did when, as a trace that Perfetto and Chrome show."""

import http.client
import os
from datetime import UTC, datetime
from pathlib import Path

import click
import msgspec

from luftpause.adapters.event_log.lines import Segment
from luftpause.adapters.event_log.replaying import DifferenceError, replay
from luftpause.cli.asking import ANSWER_BYTES_MAX, answer_of, configured_url
from luftpause.cli.examples import examples
from luftpause.cli.failures import CommandFailedError
from luftpause.cli.files import PRINTED, OutputFile, write
from luftpause.cli.options import FiniteRange, config_option
from luftpause.cli.trace_events import ChangeRow, LaneRow, Told, trace_events
from luftpause.core.model.ids import Instant
from luftpause.core.scheduling.events import Event, WokeUp
from luftpause.core.scheduling.state import Decision, State
from luftpause.services.scheduler.phases import Change, Phases

LANES_MAX = 1_000_000
"""Of a log: all runs that it can hold."""


@click.group(short_help="Export what runs did as a trace.")
def command() -> None:
    """Export what runs and models did, to be looked at in Perfetto or in chrome://tracing."""


@command.command(
    short_help="Write a trace for Perfetto.",
    epilog=examples(
        ("luftpause trace export -o trace.json", "the last minutes"),
        ("luftpause trace export --last 60 -o trace.json", "the last one"),
        ("luftpause trace export ev.log -o trace.json", "all that a log holds"),
    ),
)
@click.argument("file", required=False, type=click.Path(path_type=Path, exists=True, dir_okay=False))
@click.option("--url", metavar="URL", help="The scheduler's status address; from the configuration if absent.")
@click.option("--last", type=FiniteRange(0.001, 1e9), metavar="SECONDS", help="Only so long, up to the end.")
@click.option(
    "-o",
    "--output",
    type=OutputFile(),
    default=PRINTED,
    show_default=True,
    metavar="FILE",
    help="Where to; - prints it.",
)
@config_option
def export(file: Path | None, url: str | None, last: float | None, output: str, config: Path | None) -> None:
    """Write a trace in Chrome's trace-event format, which ui.perfetto.dev opens.

    With FILE, which `--event-log` wrote, of all that stands in it; without, of the last minutes of a scheduler that
    runs. Each run has a row: held, loading, prefill, decode, tool.
    """
    told = _live(url or configured_url(config)) if file is None else _recorded(file)
    body = msgspec.json.encode(trace_events(told, None if last is None else last * 1000))
    write(body + b"\n", output)
    if output != PRINTED:
        click.echo(f"{output}: {len(told.lanes)} rows, {len(told.changes)} changes", err=True)


def _live(address: str) -> Told:
    with answer_of(address, "GET", "/timeline", os.environ) as response:
        body, status = response.read(ANSWER_BYTES_MAX + 1), response.status
    if status != http.client.OK or len(body) > ANSWER_BYTES_MAX:
        raise CommandFailedError(f"{address} is no scheduler: GET /timeline answered {status}")
    try:
        return msgspec.json.decode(body, type=Told)
    except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError) as error:
        raise CommandFailedError(f"{address} answered something that is no timeline: {error}") from None


def _recorded(file: Path) -> Told:
    recording = _Recording()
    with file.open("rb") as lines:
        try:
            replay(lines, watcher=recording)
        except DifferenceError as difference:
            raise CommandFailedError(f"{file}: {difference}") from difference
    return recording.told()


class _Recording:
    """Follows a log that is replayed. Its instants are seconds of the world's clock, for segments have their own."""

    def __init__(self) -> None:
        self._changes: list[Change] = []
        self._phases = Phases(self._changes.append, lanes_max=LANES_MAX)
        self._state: State | None = None
        self._ahead_s = 0.0
        self._now = Instant(0.0)

    def began(self, segment: Segment, state: State) -> None:
        """See `Watcher`: what was open in the segment before and is not in this one has ended in between."""
        utc = datetime.strptime(segment.utc, "%Y-%m-%dT%H:%M:%SZ").replace(tzinfo=UTC)
        begins = max(utc.timestamp(), self._now)
        self._ahead_s = begins - segment.now
        if self._state is not None:
            self._follow(self._state, WokeUp(), Instant(begins), Decision(state, ()))
        self._state = state

    def decided(self, before: State, event: Event, now: Instant, decision: Decision) -> None:
        """See `Watcher`."""
        self._follow(before, event, Instant(now + self._ahead_s), decision)
        self._state = decision.state

    def told(self) -> Told:
        """Return all of it, in milliseconds since the first change."""
        began = self._changes[0].at if self._changes else self._now
        lanes = {change.lane.number: change.lane for change in self._changes}
        return Told(
            now_ms=round((self._now - began) * 1000),
            lanes=[
                LaneRow(
                    number=lane.number,
                    name=lane.name,
                    kind="model" if lane.is_model else "run",
                    service_class=lane.service_class,
                    caller=lane.caller,
                    model=lane.model,
                    parent=lane.parent,
                )
                for lane in lanes.values()
            ],
            changes=[
                ChangeRow(
                    lane=change.lane.number,
                    phase=change.phase.value,
                    at_ms=round((change.at - began) * 1000),
                    detail=change.detail,
                )
                for change in self._changes
            ],
        )

    def _follow(self, before: State, event: Event, now: Instant, decision: Decision) -> None:
        self._now = now
        self._phases.decided(before, event, now, decision)
