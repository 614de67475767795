"""`luftpause dataplane`: the LLM door alone, for a set-up of several processes."""

import asyncio

import click

from luftpause.assembly.parts import Plans
from luftpause.assembly.split import dataplane_alone
from luftpause.cli.access import access_of, access_option
from luftpause.cli.examples import examples
from luftpause.cli.options import ServiceOptions, service_options, setting
from luftpause.cli.ready import ready_file
from luftpause.cli.say import say
from luftpause.cli.serve import run_service
from luftpause.cli.worker import worker_command


@click.command(
    short_help="Start the LLM door.",
    epilog=examples(
        ("luftpause dataplane --config luftpause.toml", "the common file"),
        ("luftpause dataplane --workers 4", "four processes (Linux)"),
    ),
)
@access_option
@service_options()
@setting("--host", "dataplane.host", help="Address to listen on.  [default: 127.0.0.1]")
@setting("--port", "dataplane.port", help="Port to listen on; 0 picks a free one.")
@setting("--workers", "dataplane.workers", help="Processes that serve the port together.  [default: 1]")
def command(options: ServiceOptions) -> None:
    """Start the LLM door: takes turns, asks the scheduler where they go, streams the answers through.

    Its scheduler is at scheduler.host and scheduler.port; while that is away, turns are held.
    """
    ctx = click.get_current_context()
    config = options.load().config
    plans = Plans(config=config, access=access_of(ctx, config), worker_command=worker_command(options.log_level))
    ctx.exit(run_service(lambda stop: _run(plans, options, stop)))


async def _run(plans: Plans, options: ServiceOptions, stop: asyncio.Event) -> None:
    with ready_file(options.ready_file) as announce:
        async with dataplane_alone(plans) as url:
            announce({"dataplane": url})
            say(f"dataplane: {url}")
            await stop.wait()
