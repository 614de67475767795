"""`luftpause launcher`: engines on demand on this machine, for a scheduler elsewhere."""

import asyncio

import click

from luftpause.assembly.parts import Plans
from luftpause.assembly.split import launcher_alone
from luftpause.cli.access import access_option, operator_access_of
from luftpause.cli.examples import examples
from luftpause.cli.options import ServiceOptions, service_options, setting
from luftpause.cli.ready import ready_file
from luftpause.cli.reloading import reloading
from luftpause.cli.say import say
from luftpause.cli.serve import run_service
from luftpause.services.launcher.instance import InstanceView


@click.command(
    short_help="Start the launcher.",
    epilog=examples(
        ("luftpause launcher --config luftpause.toml", "the common file"),
        ("luftpause launcher --scheduler-host 10.0.0.2", "from another machine"),
    ),
)
@access_option
@service_options()
@setting("--scheduler-host", "scheduler.host", help="Where the scheduler's link is.  [default: 127.0.0.1]")
@setting("--scheduler-port", "scheduler.port", help="Port of the scheduler's link.  [default: 5000]")
def command(options: ServiceOptions) -> None:
    """Start the launcher: engines of `[[launcher.models]]` start and stop on this machine as the scheduler orders.

    It has no port of its own: it connects to the scheduler's link. SIGUSR1 reads the models anew.
    """
    ctx = click.get_current_context()
    config = options.load().config
    plans = Plans(config=config, access=operator_access_of(ctx, config))
    ctx.exit(run_service(lambda stop: _run(plans, options, stop)))


async def _run(plans: Plans, options: ServiceOptions, stop: asyncio.Event) -> None:
    section = plans.config.launcher
    with ready_file(options.ready_file) as announce:
        async with launcher_alone(plans, on_change=_changed) as launcher:
            with reloading(options, launcher):
                announce({})
                say(f"launcher: {section.name}, {len(section.models)} models")
                await stop.wait()


def _changed(view: InstanceView) -> None:
    why = f" ({view.why})" if view.why else ""
    say(f"  engine    {view.replica}: {view.state}{why}")
