"""`luftpause fake-engine`: an engine that only pretends, on a port."""

import asyncio
import logging
import secrets
from collections.abc import Callable
from pathlib import Path
from typing import Literal

import click
import msgspec
from click.core import ParameterSource

from luftpause.cli.examples import examples
from luftpause.cli.files import FilePath
from luftpause.cli.options import FiniteRange
from luftpause.cli.ready import ready_file
from luftpause.cli.say import say
from luftpause.cli.serve import run_service
from luftpause.testkit.engine_model.figures import EngineFigures
from luftpause.testkit.fake_engine.server import fake_engine
from luftpause.testkit.fake_engine.settings import MetricsStyle, Settings, paced
from luftpause.testkit.serving import bind
from luftpause.testkit.sim.scenario import load_scenario

_DEFAULTS = Settings()
_FIGURES = _DEFAULTS.figures
_Callback = Callable[..., None]


class _Options(msgspec.Struct, frozen=True, kw_only=True):
    """What of the command line is no setting of the engine."""

    host: str
    port: int
    speedup: float
    seed: int | None
    ready_file: str | None
    figures: str | None


class _Figures(msgspec.Struct, frozen=True, kw_only=True):
    """The figures as the command line has them."""

    slots: int
    token_s: float
    crowd_s: float
    prefill_tps: float
    kv_tokens: int
    page_tokens: int
    chunk_tokens: int
    reserve: float
    queue: Literal["fcfs", "priority"]

    def resolved(self) -> EngineFigures:
        """Return them as the engine model has them."""
        figures = EngineFigures(
            max_running=self.slots,
            kv_tokens=self.kv_tokens,
            page_tokens=self.page_tokens,
            chunk_tokens=self.chunk_tokens,
            prefill_tps=self.prefill_tps,
            reserve=self.reserve,
            queue=self.queue,
        )
        return paced(figures, self.token_s, self.crowd_s)


class _Milliseconds(FiniteRange):
    """Milliseconds on the command line, seconds behind it."""

    def convert(self, value: float, param: click.Parameter | None, ctx: click.Context | None) -> float:
        return float(super().convert(value, param, ctx)) / 1000


def _amount(
    option: str, field: str, default: float, about: str, *, least: float = 0
) -> Callable[[_Callback], _Callback]:
    whole = isinstance(default, int)
    ms = option.endswith("-ms")
    kind = _Milliseconds(min=0) if ms else click.IntRange(min=int(least)) if whole else FiniteRange(min=least)
    shown = f"{default * 1000:g}" if ms else default
    return click.option(option, field, type=kind, default=shown, show_default=True, help=about)


@click.command(
    short_help="Start an engine that only pretends, for tests.",
    epilog=examples(
        ("luftpause fake-engine --port 8001 --model fake-1b", ""),
        ("luftpause fake-engine --slots 2 --token-ms 50", "few places, slow tokens"),
    ),
)
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on.")
@click.option("--port", type=click.IntRange(0, 65535), default=8001, show_default=True, help="0 picks a free one.")
@click.option("--model", "models", multiple=True, default=_DEFAULTS.models, show_default=True, help="Repeatable.")
@click.option(
    "--metrics-style",
    type=click.Choice([style.value for style in MetricsStyle]),
    default=_DEFAULTS.metrics_style.value,
    show_default=True,
    help="Whose names /metrics uses.",
)
@click.option("--label", "labels", multiple=True, default=_DEFAULTS.labels, show_default=True, help="For /classify.")
@_amount("--slots", "slots", _FIGURES.max_running, "Requests that run at the same time.", least=1)
@_amount("--ttft-ms", "ttft_s", _DEFAULTS.ttft_s, "Fixed delay before a prompt is read.")
@_amount("--token-ms", "token_s", _FIGURES.step_s + _FIGURES.decode_s, "Time per token.")
@_amount("--crowd-ms", "crowd_s", _FIGURES.decode_s, "What each further request adds to a token's time.")
@_amount("--prefill-tps", "prefill_tps", _FIGURES.prefill_tps, "Prompt tokens per second.", least=1)
@_amount("--kv-tokens", "kv_tokens", _FIGURES.kv_tokens, "Tokens of memory, running and cached.", least=64)
@_amount("--page-tokens", "page_tokens", _FIGURES.page_tokens, "Prefixes are kept by pages of so many.", least=1)
@_amount("--chunk-tokens", "chunk_tokens", _FIGURES.chunk_tokens, "Tokens of a step, prompts included.", least=1)
@click.option(
    "--reserve",
    type=FiniteRange(0, 1),
    default=_FIGURES.reserve,
    show_default=True,
    help="Share of the longest reply that must fit when a request begins.",
)
@click.option(
    "--queue",
    type=click.Choice(["fcfs", "priority"]),
    default=_FIGURES.queue,
    show_default=True,
    help="Whether the body's `priority` counts: the smaller goes first.",
)
@click.option(
    "--figures",
    metavar="FILE|NAME",
    help="Take [engine] of a scenario, as `sim` does, in place of --slots to --queue.  [default for --ttft-ms then: 0]",
)
@_amount("--load-s", "load_s", _DEFAULTS.load_s, "Answer 503 this long after the start.")
@click.option("--slot-save-path", metavar="FOLDER", help="Have llama-server's /slots, and save them there.")
@_amount("--slot-bytes", "slot_bytes", _DEFAULTS.slot_bytes, "Length of a saved slot's file for each token.")
@_amount("--slot-ms", "slot_s", _DEFAULTS.slot_s, "What a save or a restore of a slot takes.")
@click.option(
    "--slot-fails", multiple=True, type=click.Choice(["save", "restore"]), help="Have that fail each time; repeatable."
)
@_amount("--speedup", "speedup", 1.0, "Divide all times by this.", least=0.001)
@_amount("--tool-rounds", "tool_rounds", _DEFAULTS.tool_rounds, "Rounds of tools, where the task does not say.")
@_amount("--reply-tokens", "reply_tokens", _DEFAULTS.reply_tokens, "Length, where the task does not say.", least=1)
@_amount("--stream-interval", "stream_interval", 1, "Tokens that a stream sends in one go.", least=1)
@click.option(
    "--seed", type=int, help="Same seed, same replies and ids; left out: another one each time, as replicas want it."
)
@click.option("--ready-file", type=FilePath(dir_okay=False), metavar="PATH", help="Write the address there.")
@click.pass_context
def command(ctx: click.Context, /, **options: object) -> None:
    """Start an engine that only pretends: OpenAI chat with tools and simulated latency.

    It answers /v1/chat/completions, /v1/completions, /v1/embeddings, /v1/models, /classify, /tokenize, /slots, /health
    and /metrics. The last user message may hold orders: [tools:N] [parallel:N] [tool:NAME] [tokens:N] [fail:STATUS]
    [die] [stall] [no-usage] [no-logprobs] [as-text:FORM] [arg:NAME=TEXT].
    """
    logging.getLogger("uvicorn.error").setLevel(logging.CRITICAL)  # cutting answers short is what it is for
    chosen = msgspec.convert(options, _Options)
    resolved = {"seed": secrets.randbits(32) if chosen.seed is None else chosen.seed, **_figures(ctx, chosen)}
    settings = msgspec.convert({**options, **resolved}, Settings).sped_up(chosen.speedup)
    ctx.exit(run_service(lambda stop: _serve(chosen, settings, stop)))


def _figures(ctx: click.Context, chosen: _Options) -> dict[str, object]:
    """Return what the engine is like: as the scenario says it, or as the options do.

    Raises:
        ConfigError: there is no such scenario, or it cannot be used.
        OSError: the scenario cannot be read.
        UsageError: both say it.
    """
    given = {name for name in ctx.params if ctx.get_parameter_source(name) is not ParameterSource.DEFAULT}
    if chosen.figures is None:
        return {"figures": msgspec.convert(ctx.params, _Figures).resolved()}
    said = given.intersection(_Figures.__struct_fields__)
    twice = [option.opts[0] for option in ctx.command.params if option.name in said]
    if twice:
        raise click.UsageError(f"--figures says it already: {', '.join(twice)}")
    figures = load_scenario(chosen.figures).engine
    return {"figures": figures} if "ttft_s" in given else {"figures": figures, "ttft_s": 0.0}


async def _serve(options: _Options, settings: Settings, stop: asyncio.Event) -> None:
    with ready_file(Path(options.ready_file) if options.ready_file else None) as announce:
        async with fake_engine(settings, listener=bind(options.host, options.port)) as url:
            announce({"engine": url})
            say(f"fake-engine: {url} serves {', '.join(settings.models)}")
            await stop.wait()
