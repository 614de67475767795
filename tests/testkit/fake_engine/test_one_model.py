"""The engine over HTTP is the simulated one: the same requests at the same instants fare alike, token by token.

The whole app runs in virtual time; what it hands its model, and when, is played again on the model as the simulator
drives it.
"""

import asyncio
import json
import random
from dataclasses import dataclass, field
from typing import Literal

import pytest
from uvicorn._types import ASGIReceiveEvent, ASGISendEvent

from luftpause.testkit.engine_model import engine as engine_model
from luftpause.testkit.engine_model.engine import Outcome, Progress
from luftpause.testkit.engine_model.figures import EngineFigures
from luftpause.testkit.engine_model.sequence import Request
from luftpause.testkit.fake_engine.app import FakeEngineApp
from luftpause.testkit.fake_engine.engine import Engine, Seat
from luftpause.testkit.fake_engine.settings import Settings
from testkit.engine_model.asking import run_out
from testkit.fake_engine.asgi import scope
from testkit.virtual_time import let_pass, run_virtual

LEFT, CUT, WHOLE = "left", "cut", "whole"


@dataclass
class Watched:
    """What the model was handed, and what clients saw: when, and of which request."""

    orders: list[tuple[float, Request | int]] = field(default_factory=list)
    tokens: list[tuple[float, int]] = field(default_factory=list)
    ends: list[tuple[float, int, str]] = field(default_factory=list)
    left: set[int] = field(default_factory=set)


class WatchedEngine(Engine):
    """The engine of the app, noting what it hands its model."""

    def __init__(self, settings: Settings, watched: Watched) -> None:
        super().__init__(settings.figures, settings.ttft_s)
        self._watched = watched
        self.newest: Request | None = None

    def enter(self, request: Request) -> Seat:
        self.newest = request
        return super().enter(request)

    def _submit(self, seat: Seat) -> None:
        self._watched.orders.append((asyncio.get_running_loop().time(), seat.request))
        super()._submit(seat)

    def leave(self, seat: Seat) -> None:
        if not seat.ended:
            self._watched.left.add(seat.request.key)
            if seat.waits is None:
                self._watched.orders.append((asyncio.get_running_loop().time(), seat.request.key))
        super().leave(seat)


class Client:
    """Asks for one streamed reply; may leave before its end."""

    def __init__(self, body: dict[str, object], leaves_after_s: float | None) -> None:
        self._body = json.dumps(body | {"stream": True}).encode()
        self._leaves_after_s = leaves_after_s
        self._asked = False

    async def ask(self, app: FakeEngineApp, watched: Watched) -> None:
        loop = asyncio.get_running_loop()
        engine = app.engine
        assert isinstance(engine, WatchedEngine)
        last = b""
        key = 0

        async def receive() -> ASGIReceiveEvent:
            if not self._asked:
                self._asked = True
                return {"type": "http.request", "body": self._body, "more_body": False}
            await let_pass(1e5 if self._leaves_after_s is None else self._leaves_after_s)
            return {"type": "http.disconnect"}

        async def send(event: ASGISendEvent) -> None:
            nonlocal last, key
            if event["type"] == "http.response.start":
                assert engine.newest is not None
                key = engine.newest.key
            elif event["type"] == "http.response.body":
                last = event["body"] or last
                watched.tokens += [(loop.time(), key)] * (last.count(b'"content":') - last.count(b'"role"'))

        await app(scope("POST", "/v1/chat/completions"), receive, send)
        end = LEFT if key in watched.left else WHOLE if b"[DONE]" in last else CUT
        watched.ends.append((loop.time(), key, end))


def talk(dice: random.Random, number: int) -> dict[str, object]:
    """Draw a request: of one of a few conversations, now and then one whose reply breaks."""
    conversation = dice.randrange(8)
    messages = [{"role": "system", "content": "words " * 60}]
    for turn in range(dice.randrange(1, 4)):
        messages += [{"role": "user", "content": f"{conversation} {turn} " + "more " * dice.randrange(20, 200)}]
        messages += [{"role": "assistant", "content": f"answer {turn} " + "said " * 30}]
    orders = f"[tokens:{dice.randrange(1, 120)}]" + dice.choice(("", "", "", "[die]"))
    messages += [{"role": "user", "content": f"{number} {orders}"}]
    return {
        "model": "fake-1b",
        "messages": messages,
        "priority": dice.randrange(2),
        "max_tokens": dice.choice((100, 200)),
    }


def over_http(settings: Settings, seed: int) -> Watched:
    """Ask for 80 replies over a while, and return what happened once all is over."""
    dice, watched = random.Random(seed), Watched()

    async def later(client: Client, at: float, app: FakeEngineApp) -> None:
        await let_pass(at)
        await client.ask(app, watched)

    async def play() -> None:
        app = FakeEngineApp(settings)
        app.engine = WatchedEngine(settings, watched)
        steps = asyncio.create_task(app.engine.run())
        at, asked = 0.0, []
        for number in range(80):
            at += dice.expovariate(15.0)
            client = Client(talk(dice, number), dice.uniform(0.01, 2.0) if dice.random() < 0.15 else None)
            asked.append(later(client, at, app))
        await asyncio.gather(*asked)
        steps.cancel()
        await asyncio.gather(steps, return_exceptions=True)

    run_virtual(play())
    return watched


def simulated(orders: list[tuple[float, Request | int]], engine: engine_model.Engine) -> list[tuple[float, Progress]]:
    """Return what the model makes of the orders."""
    seen: list[tuple[float, Progress]] = []
    for at, order in orders:
        seen += run_out(engine, at)
        if isinstance(order, int):
            engine.abort(order, at)
        else:
            engine.submit(order, at)
    return seen + run_out(engine)


def alike(seen: list[tuple[float, int]], expected: list[tuple[float, int]]) -> bool:
    """Say whether the same requests come in the same order, at the same instants."""
    assert [key for _, key in seen] == [key for _, key in expected]
    return [at for at, _ in seen] == pytest.approx([at for at, _ in expected], abs=1e-6)


@pytest.mark.parametrize("queue", ["fcfs", "priority"])
@pytest.mark.parametrize("ttft_s", [0.0, 0.05])
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_http_and_simulation_give_the_same_tokens_in_the_same_order_at_the_same_instants(
    seed: int, ttft_s: float, queue: Literal["fcfs", "priority"]
) -> None:
    figures = EngineFigures(
        kv_tokens=2500, max_running=12, chunk_tokens=256, reserve=0.0, step_s=0.01, context_s=1e-7, queue=queue
    )
    watched = over_http(Settings(figures=figures, ttft_s=ttft_s), seed)
    engine = engine_model.Engine(figures)
    skipping, stepping = simulated(watched.orders, engine), engine_model.Engine(figures, each_step=True)
    stepwise = simulated(watched.orders, stepping)

    tokens = [(at, p.key) for at, p in stepwise if p.outcome in (Outcome.FIRST_TOKEN, Outcome.TOKEN)]
    assert alike(watched.tokens, tokens)
    first = [(at, p.key) for at, p in skipping if p.outcome is Outcome.FIRST_TOKEN]
    began: dict[int, float] = {}
    for at, key in watched.tokens:
        began.setdefault(key, at)
    assert alike([(at, key) for key, at in began.items()], first)
    ends = {Outcome.DONE: WHOLE, Outcome.DIED: CUT}
    for outcome, end in ends.items():
        expected = [(at, p.key) for at, p in skipping if p.outcome is outcome]
        assert alike([(at, key) for at, key, how in watched.ends if how == end], expected)
        assert expected, "the load is to show every kind of end"
    assert {key for _, key, how in watched.ends if how == LEFT} == watched.left
    assert watched.left
    assert engine.totals == stepping.totals
    assert engine.totals.cached_tokens
    assert engine.totals.retractions
