"""`luftpause fake-mcp`: MCP tools that only pretend, on a port or on standard input and output."""

import asyncio
import os
from pathlib import Path

import click
import msgspec

from luftpause.cli.examples import examples
from luftpause.cli.files import FilePath
from luftpause.cli.options import FiniteRange
from luftpause.cli.ready import ready_file
from luftpause.cli.say import say
from luftpause.cli.serve import run_service
from luftpause.testkit.fake_mcp.server import fake_mcp, serve_stdio
from luftpause.testkit.fake_mcp.tools import Settings
from luftpause.testkit.serving import bind

_DELAY_S = FiniteRange(0, 3600)


class _Options(msgspec.Struct, frozen=True, kw_only=True):
    """The command line, parsed."""

    host: str
    port: int
    stdio: bool
    delay_s: float | None
    deep_delay_s: float | None
    seed: int
    destructive: bool
    effects: str | None
    ready_file: str | None

    def settings(self) -> Settings:
        """Return what the server needs of it."""
        return Settings(
            delay_s=self.delay_s,
            deep_delay_s=self.deep_delay_s,
            seed=self.seed,
            destructive=self.destructive,
            effects=None if self.effects is None else Path(self.effects),
        )


@click.command(
    short_help="Start MCP tools that only pretend, for tests.",
    epilog=examples(
        ("luftpause fake-mcp --port 9000", "over HTTP"),
        ("luftpause fake-mcp --stdio --destructive", "as somebody's child"),
    ),
)
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on.")
@click.option("--port", type=click.IntRange(0, 65535), default=9000, show_default=True, help="0 picks a free one.")
@click.option("--stdio", is_flag=True, help="Speak on standard input and output instead.")
@click.option("--delay-s", type=_DELAY_S, help="How long lookup takes.  [default: random, 0.5 to 2]")
@click.option("--deep-delay-s", type=_DELAY_S, help="How long deep_search takes.  [default: random, 2 to 5]")
@click.option("--seed", type=int, default=0, show_default=True, help="Same seed, same delays and answers.")
@click.option("--destructive", is_flag=True, help="Also offer delete_note, which says that it destroys.")
@click.option("--effects", type=FilePath(dir_okay=False), help="Append a line there per call.")
@click.option("--ready-file", type=FilePath(dir_okay=False), help="Write the address there.")
@click.pass_context
def command(ctx: click.Context, /, **options: object) -> None:
    """Start MCP tools that only pretend: lookup, and the slower deep_search."""
    chosen = msgspec.convert(options, _Options)
    ctx.exit(run_service(lambda stop: (_serve_stdio if chosen.stdio else _serve)(chosen, stop)))


async def _serve(options: _Options, stop: asyncio.Event) -> None:
    with ready_file(Path(options.ready_file) if options.ready_file else None) as announce:
        async with fake_mcp(options.settings(), listener=bind(options.host, options.port)) as url:
            announce({"fake_mcp": url})
            say(f"fake-mcp: {url}/mcp")
            await stop.wait()


async def _serve_stdio(options: _Options, stop: asyncio.Event) -> None:
    """Serve until the input ends or a signal comes."""
    served = asyncio.create_task(serve_stdio(options.settings()), name="stdio")
    stopped = asyncio.create_task(stop.wait(), name="stop")
    await asyncio.wait((served, stopped), return_when=asyncio.FIRST_COMPLETED)
    if not served.done():
        os._exit(0)  # the SDK reads standard input in a thread that nothing but its end can wake
    stopped.cancel()
    await served
