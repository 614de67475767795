"""`luftpause up`: everything in one process, and without a configuration a model to try it with."""

import asyncio
import os
import shlex
import shutil
import sys
from dataclasses import dataclass, replace
from pathlib import Path

import click
import msgspec

import luftpause
from luftpause.assembly.all_in_one import AllInOne, all_in_one
from luftpause.assembly.embedded import stands_in
from luftpause.assembly.parts import Plans
from luftpause.cli.access import TOKEN_VARIABLE, access_of, access_option
from luftpause.cli.event_log import event_log_options, recording_of
from luftpause.cli.examples import examples
from luftpause.cli.options import ServiceOptions, service_options, setting
from luftpause.cli.ready import ready_file
from luftpause.cli.reloading import reloading
from luftpause.cli.say import say
from luftpause.cli.serve import run_service
from luftpause.cli.worker import worker_command
from luftpause.config.schema import Config
from luftpause.services.launcher.instance import InstanceView


@dataclass(frozen=True, slots=True, kw_only=True)
class _Story:
    """What is started, for the banner: `model` is one to try, empty when there is none."""

    plans: Plans
    what: str
    model: str


@click.command(
    short_help="Start everything in one process.",
    epilog=examples(
        ("luftpause up", "your file, or a small model"),
        ("luftpause up --config my.toml", "another file"),
        ("luftpause up --set dataplane.port=9090", "one key set otherwise"),
        ("luftpause up --event-log ev.log", "for replay"),
    ),
)
@access_option
@event_log_options
@service_options(log_level="warning")
@setting("--dataplane-port", "dataplane.port", help="Port of the LLM door.  [default: 8080]")
@setting("--workers", "dataplane.workers", help="Processes of their own for the LLM door.  [default: 1, none]")
@setting("--runtime-port", "runtime.port", help="Port of the MCP door.  [default: 7000]")
@setting("--status-port", "scheduler.http_port", help="Port of status and page.  [default: 5001]")
@setting("--link-port", "scheduler.port", help="Port for services in other processes.  [default: 5000]")
def command(options: ServiceOptions) -> None:
    """Start the LLM door, the MCP door, the scheduler and the declared engines in one process.

    Without a configuration file it starts two engines with a small real model if the `local` extra is installed, else
    two fake ones, and says which. Ctrl-C ends everything; SIGUSR1 reads the models to launch anew.
    """
    ctx = click.get_current_context()
    story = _story(options, ctx)
    ctx.exit(run_service(lambda stop: _run(story, options, stop)))


async def _run(story: _Story, options: ServiceOptions, stop: asyncio.Event) -> None:
    progress = _Progress(story)
    with ready_file(options.ready_file) as announce:
        async with all_in_one(story.plans, on_change=progress.changed) as addresses:
            with reloading(options, addresses.launcher):
                _banner(story, addresses)
                announce({name: getattr(addresses, name) for name in ("dataplane", "runtime", "scheduler")})
                progress.opened(addresses)
                await stop.wait()


def _story(options: ServiceOptions, ctx: click.Context) -> _Story:
    loaded = options.load()
    config = loaded.config
    plans = Plans(
        config=config,
        access=access_of(ctx, config),
        recording=recording_of(ctx),
        worker_command=worker_command(options.log_level),
    )
    filled = stands_in(loaded, os.environ)
    if filled is not None:
        what = f"No luftpause.toml here, so: {filled.story}."
        return _Story(plans=replace(plans, config=filled.config), what=what, model=filled.model)
    models = [model for replica in config.replicas for model in replica.models]
    models += [model.name for model in config.launcher.models]
    what = f"Configuration: {loaded.source or 'environment and command line'}."
    if not models:
        what += " It declares no [[replicas]] and no [[launcher.models]]: every turn will be refused."
    return _Story(plans=plans, what=what, model=models[0] if models else "")


def _banner(story: _Story, addresses: AllInOne) -> None:
    say(f"luftpause {luftpause.__version__}. {story.what}")
    say(f"  LLM door  {addresses.dataplane}/v1")
    say(f"  MCP door  {addresses.runtime}/mcp")
    say(f"  status    {addresses.scheduler}")
    say(f"  link      {addresses.link}")


class _Progress:
    """Says how the engines that we start come up, and once all are there, how to try each door."""

    def __init__(self, story: _Story) -> None:
        self._story = story
        self._waiting = {
            f"{model.name}-{instance}"
            for model in story.plans.config.launcher.models
            if model.preload and model.backend != "ollama"
            for instance in range(1, model.instances + 1)
        }
        self._addresses: AllInOne | None = None
        self._told = False

    def changed(self, view: InstanceView) -> None:
        """Take in that an engine went from one state to another."""
        why = f" ({view.why})" if view.why else ""
        say(f"  engine    {view.replica}: {view.state}{why}")
        if view.state == "ready":
            self._waiting.discard(view.replica)
            self._tell()

    def opened(self, addresses: AllInOne) -> None:
        """Take in that the doors are open."""
        self._addresses = addresses
        self._tell()

    def _tell(self) -> None:
        if self._waiting or self._told or self._addresses is None:
            return
        self._told = True
        if self._story.model:
            say(_invitation(self._story, self._addresses))


def _invitation(story: _Story, addresses: AllInOne) -> str:
    message = {"model": story.model, "messages": [{"role": "user", "content": "Name three rivers."}]}
    body = msgspec.json.encode(message).decode()
    variable = _token_variable(story.plans.config)
    key = f' -H "authorization: Bearer ${variable}"' if variable else ""
    json_header = "-H 'content-type: application/json'"
    task = "Find out about the river Rhine and say one sentence."
    loadgen = f"{_own_name()} loadgen --spawn 4 --mcp-url {addresses.runtime}/mcp --task {shlex.quote(task)}"
    if variable not in ("", TOKEN_VARIABLE):
        loadgen += f" --token-env {variable}"
    return (
        "Ready. Try the LLM door:\n"
        f"  curl {addresses.dataplane}/v1/chat/completions {json_header}{key} -d '{body}'\n"
        "and the MCP door, with four sub-agents at once that use tools:\n"
        f"  {loadgen}\n"
        "Ctrl-C ends everything."
    )


def _token_variable(config: Config) -> str:
    """Return the variable with a token that opens both doors, "" where none is asked for."""
    if os.environ.get(TOKEN_VARIABLE, "").strip():
        return TOKEN_VARIABLE
    return config.principals[0].token_env if config.principals else ""


def _own_name() -> str:
    """Return how the person at the terminal can call us: `luftpause` if that finds us, else a path."""
    program = Path(sys.argv[0])
    if shutil.which("luftpause") == str(program.absolute()):
        return "luftpause"
    if program.name != "luftpause":
        return shlex.join((sys.executable, "-m", "luftpause"))
    folder = Path.cwd()
    absolute = program.absolute()
    return shlex.quote(str(absolute.relative_to(folder) if absolute.is_relative_to(folder) else absolute))
