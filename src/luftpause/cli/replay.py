"""`luftpause replay`: decide again what an event log says was decided."""

from pathlib import Path

import click

from luftpause.adapters.event_log.replaying import DifferenceError, Replayed, replay
from luftpause.cli.failures import CommandFailedError
from luftpause.cli.say import say
from luftpause.core.scheduling.invariants import check as prove


@click.command(short_help="Decide again what an event log says.")
@click.argument("file", type=click.Path(path_type=Path, exists=True, dir_okay=False))
@click.option("--check", is_flag=True, help="Prove the state sound after every event too; slow.")
def command(file: Path, *, check: bool) -> None:
    """Take in every event of FILE again and compare each decision with the one that was made.

    FILE was written by `--event-log`. Exit code 1 at the first difference.
    """
    with file.open("rb") as lines:
        try:
            seen = replay(lines, prove if check else None)
        except DifferenceError as difference:
            raise CommandFailedError(f"{file}: {difference}") from difference
    for line in _summary(seen):
        say(line)


def _summary(seen: Replayed) -> list[str]:
    missing = f", {seen.dropped} missing" if seen.dropped else ""
    torn = f", {seen.torn} torn lines" if seen.torn else ""
    holds = ", ".join(f"{reason} {count}" for reason, count in sorted(seen.holds.items())) or "none"
    return [
        f"Every decision is the same: {seen.events} events in {seen.segments} segments{missing}{torn}.",
        f"  states compared  {seen.digests}",
        f"  turns            {seen.placed} placed, {seen.refused} refused",
        f"  held             p50 {seen.held_s_at(0.5):.3f} s, p99 {seen.held_s_at(0.99):.3f} s",
        f"  holds            {holds}",
    ]
