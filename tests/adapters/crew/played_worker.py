"""A worker without a door, run as a program: `python played_worker.py NUMBER CHANNEL`.

Its order is JSON: `folder`, where it leaves notes, and `how` it behaves. "serve": it opens, counts to its number, and
says at SIGUSR1 in NUMBER.total what all counted. "stubborn": SIGTERM does not end it. "once": it can be started once.
"never": it ends before it opens.
"""

import asyncio
import json
import os
import signal
import sys
from pathlib import Path

from luftpause.adapters.crew.member import Member, enrolled
from luftpause.telemetry.exposition import Family, Sample


async def serve(number: int, channel: int) -> int:
    stop = asyncio.Event()
    async with enrolled(channel, foreman_gone=stop.set) as member:
        order = json.loads(member.order)
        folder, how = Path(order["folder"]), order["how"]
        if how == "never" or (how == "once" and (folder / f"{number}.pid").exists()):
            return 3
        loop = asyncio.get_running_loop()
        loop.add_signal_handler(signal.SIGTERM, (lambda: None) if how == "stubborn" else stop.set)
        loop.add_signal_handler(
            signal.SIGUSR1, lambda: loop.create_task(note_total(member, folder / f"{number}.total"))
        )
        member.shows(
            lambda: (
                Family("answers", "", "counter", (Sample("answers_total", (), float(number)),)),
                Family("opened", "", "gauge", (Sample("opened", (), float(number)),)),
            )
        )
        note(folder / f"{number}.pid", str(os.getpid()))
        member.opened()
        await stop.wait()
        note(folder / f"{number}.drained", "yes")
    return 0


async def note_total(member: Member, path: Path) -> None:
    note(path, str({family.name: family.samples[0].value for family in await member.counts()}))


def note(path: Path, text: str) -> None:
    """Leave a note that is whole once it is there."""
    draft = path.with_suffix(".draft")
    draft.write_text(text, encoding="utf-8")
    draft.replace(path)


if __name__ == "__main__":
    sys.exit(asyncio.run(serve(int(sys.argv[1]), int(sys.argv[2]))))
