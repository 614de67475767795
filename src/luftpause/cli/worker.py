"""`python -m luftpause.cli.worker --log-level LEVEL NUMBER CHANNEL`: one of the processes that serve the LLM door.

Not for people: `luftpause dataplane --workers N` and `luftpause up --workers N` start it, and tell it over the channel
what to do.
"""

import asyncio
import sys

import click

from luftpause.adapters.crew.member import enrolled
from luftpause.assembly.crew import order_from
from luftpause.assembly.parts import Plans
from luftpause.assembly.split import dataplane_worker
from luftpause.cli.serve import run_service
from luftpause.telemetry import logs


def worker_command(log_level: str) -> tuple[str, ...]:
    """Return the command line that starts a worker; its number and its channel come last."""
    return (sys.executable, "-m", "luftpause.cli.worker", "--log-level", log_level)


@click.command(hidden=True)
@click.option("--log-level", type=click.Choice(logs.LEVELS), required=True)
@click.argument("number", type=int)
@click.argument("channel", type=int)
def command(log_level: str, number: int, channel: int) -> None:
    """Serve the LLM door beside others, as told over the channel."""
    logs.configure(log_level, always={"worker": number})
    click.get_current_context().exit(run_service(lambda stop: _run(number, channel, stop), is_child=True))


async def _run(number: int, channel: int, stop: asyncio.Event) -> None:
    async with enrolled(channel, foreman_gone=stop.set) as member:
        order = order_from(member.order)
        plans = Plans(config=order.config, access=order.access)
        async with dataplane_worker(plans, member, number):
            member.opened()
            await stop.wait()


if __name__ == "__main__":
    command()
