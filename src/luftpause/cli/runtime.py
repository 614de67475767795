"""`luftpause runtime`: the MCP door alone, for a set-up of several processes."""

import asyncio

import click

from luftpause.assembly.parts import Plans
from luftpause.assembly.split import runtime_alone
from luftpause.cli.access import access_of, access_option
from luftpause.cli.examples import examples
from luftpause.cli.options import ServiceOptions, service_options, setting
from luftpause.cli.ready import ready_file
from luftpause.cli.say import say
from luftpause.cli.serve import run_service


@click.command(
    short_help="Start the MCP door.",
    epilog=examples(
        ("luftpause runtime --config luftpause.toml", "the common file"),
        ("luftpause runtime --set runtime.state_dir=/srv/runs", "the journal's place"),
    ),
)
@access_option
@service_options()
@setting("--host", "runtime.host", help="Address to listen on.  [default: 127.0.0.1]")
@setting("--port", "runtime.port", help="Port to listen on; 0 picks a free one.")
def command(options: ServiceOptions) -> None:
    """Start the MCP door: sub-agents that survive a restart.

    They take their turns at runtime.dataplane_url, else at the configured dataplane.
    """
    ctx = click.get_current_context()
    config = options.load().config
    plans = Plans(config=config, access=access_of(ctx, config))
    ctx.exit(run_service(lambda stop: _run(plans, options, stop)))


async def _run(plans: Plans, options: ServiceOptions, stop: asyncio.Event) -> None:
    with ready_file(options.ready_file) as announce:
        async with runtime_alone(plans) as url:
            announce({"runtime": url})
            say(f"runtime: {url}")
            await stop.wait()
