"""`luftpause scheduler`: the scheduler alone, for a set-up of several processes."""

import asyncio

import click

from luftpause.assembly.parts import Plans
from luftpause.assembly.split import scheduler_alone
from luftpause.cli.access import access_option, operator_access_of
from luftpause.cli.event_log import event_log_options, recording_of
from luftpause.cli.examples import examples
from luftpause.cli.options import ServiceOptions, service_options, setting
from luftpause.cli.ready import ready_file
from luftpause.cli.say import say
from luftpause.cli.serve import run_service


@click.command(
    short_help="Start the scheduler.",
    epilog=examples(
        ("luftpause scheduler --config luftpause.toml", "the common file"),
        ("luftpause scheduler --port 5000 --http-port 5001", "link; page and status"),
    ),
)
@access_option
@event_log_options
@service_options()
@setting("--host", "scheduler.host", help="Address to listen on.  [default: 127.0.0.1]")
@setting("--port", "scheduler.port", help="Port of the link; 0 picks a free one.  [default: 5000]")
@setting("--http-port", "scheduler.http_port", help="Port of status and page.  [default: 5001]")
def command(options: ServiceOptions) -> None:
    """Start the scheduler: decides where and when every turn runs. Other services reach it over its link."""
    ctx = click.get_current_context()
    config = options.load().config
    plans = Plans(config=config, access=operator_access_of(ctx, config), recording=recording_of(ctx))
    ctx.exit(run_service(lambda stop: _run(plans, options, stop)))


async def _run(plans: Plans, options: ServiceOptions, stop: asyncio.Event) -> None:
    with ready_file(options.ready_file) as announce:
        async with scheduler_alone(plans) as scheduler:
            announce({"scheduler": scheduler.url})
            say(f"scheduler: {scheduler.url}, link {scheduler.link}")
            await stop.wait()
