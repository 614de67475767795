"""`luftpause loadgen`: made-up agents at one of the doors, and how they fared."""

import asyncio
import dataclasses
import json
import os
import sys

import click
import msgspec

from luftpause.adapters.engine_http.engines import HttpEngines
from luftpause.cli.examples import examples
from luftpause.cli.failures import FAILED, CommandFailedError
from luftpause.cli.files import PRINTED, OutputFile, write
from luftpause.cli.options import FiniteRange
from luftpause.cli.serve import run_service
from luftpause.core.model.turns import ServiceClass
from luftpause.telemetry.printable import printable
from luftpause.testkit.load.drive import Plan, drive_until
from luftpause.testkit.load.runs import Board, RunFailedError, RunNotes
from luftpause.testkit.load.summary import summarise, summary_lines

_COUNT = click.IntRange(1, 100_000)
_WORKERS = click.IntRange(0, 10_000)
_SECONDS = FiniteRange(0, 86_400)


@click.command(
    short_help="Send made-up work through the doors and measure.",
    epilog=examples(
        ("luftpause loadgen --agents 20 --duration-s 30", "at the LLM door"),
        ("luftpause loadgen --spawn 4 --task 'Name a river'", "sub-agents"),
        ("luftpause loadgen --agents 50 --class batch --json -", "figures as JSON"),
    ),
)
@click.option("--agents", type=_WORKERS, default=0, help="Agents with their own loop, at the LLM door, at a time.")
@click.option("--spawn", "sub_agents", type=_WORKERS, default=0, help="Sub-agents, over the MCP door, at a time.")
@click.option("--base-url", default="http://127.0.0.1:8080/v1", show_default=True, help="The LLM door, or an engine.")
@click.option("--mcp-url", default="http://127.0.0.1:7000/mcp", show_default=True, help="The MCP door.")
@click.option("--duration-s", type=_SECONDS, help="Begin runs anew for so long; what is unfinished then is dropped.")
@click.option("--runs", type=_COUNT, help="Stop after so many runs.  [default: one per agent, or the duration]")
@click.option("--model", default="", help="Model of the turns.  [default: the first that the door names]")
@click.option(
    "--class",
    "service_class",
    type=click.Choice([service.value for service in ServiceClass]),
    default=ServiceClass.INTERACTIVE.value,
    show_default=True,
    help="Class of service of the runs.",
)
@click.option("--caller", default="", help="Who the runs are accounted to.")
@click.option("--tool-calls", type=click.IntRange(0, 1000), default=3, show_default=True, help="Per run, at most.")
@click.option("--tool-s", type=_SECONDS, default=0.5, show_default=True, help="How long an agent's own tool takes.")
@click.option("--context-chars", type=click.IntRange(0, 4_000_000), default=2000, show_default=True, help="Per run.")
@click.option("--task", default="", help="Give every sub-agent this task, and show what each answers.")
@click.option("--max-tokens", type=_COUNT, default=256, show_default=True, help="Longest reply of a turn.")
@click.option("--turn-timeout-s", type=_SECONDS, default=600, show_default=True, help="Longest a turn may take.")
@click.option("--token-env", default="LUFTPAUSE_TOKEN", show_default=True, help="Variable with the doors' token.")
@click.option("--json", "json_to", type=OutputFile(), help="Write the summary there as JSON; - prints it.")
@click.pass_context
def command(ctx: click.Context, /, json_to: str | None, **options: object) -> None:
    """Send made-up work through one of the doors and measure: --agents at the LLM door, or --spawn over MCP.

    Runs are kept going until the duration or the number of runs is reached; Ctrl-C shows what there is so far.
    Exit code 1 when any run failed.
    """
    if bool(options["agents"]) == bool(options["sub_agents"]):
        raise click.UsageError("give one of --agents N and --spawn N")
    if options["task"] and not options["sub_agents"]:
        raise click.UsageError("--task is for sub-agents: give --spawn N with it")
    token_env = str(options["token_env"])
    if not os.environ.get(token_env):
        if ctx.get_parameter_source("token_env") is click.core.ParameterSource.COMMANDLINE:
            raise click.BadParameter(f"the variable {token_env} is not set", param_hint="--token-env")
        token_env = ""
    plan = msgspec.convert({**options, "token_env": token_env, "habits": options}, Plan)
    board = Board()
    code = run_service(lambda stop: _load(plan, board, stop))
    if board.was_begun:
        _show(plan, board, json_to)
    ctx.exit(code or (FAILED if board.failed else 0))


async def _load(plan: Plan, board: Board, stop: asyncio.Event) -> None:
    engines = HttpEngines()
    on_terminal = sys.stderr.isatty()
    try:
        await drive_until(stop, plan, engines, board, _show_progress if on_terminal else None)
    except RunFailedError as failed:
        way_out = "; start `luftpause up`, or name the door with --mcp-url or --base-url"
        raise CommandFailedError(
            f"{failed.kind}: {failed}{way_out if failed.kind == 'unreachable' else ''}"
        ) from failed
    finally:
        await engines.close()
        if on_terminal:
            click.echo(err=True)


def _show_progress(line: str) -> None:
    click.echo(f"\r{line}\x1b[K", nl=False, err=True)


def _show(plan: Plan, board: Board, json_to: str | None) -> None:
    summary = summarise(board)
    if json_to != PRINTED:
        for line in (*(_answer(run) for run in board.ended if plan.habits.task), *summary_lines(summary)):
            click.echo(printable(line))
    if json_to is not None:
        text = json.dumps(plan.described() | dataclasses.asdict(summary), indent=2)
        write(f"{text}\n".encode(), json_to)


def _answer(run: RunNotes) -> str:
    said = run.result if run.failure is None else f"FAILED: {run.failure}"
    return f"answer {run.number:<5} {' '.join(said.split())}"
