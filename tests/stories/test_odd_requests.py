"""Requests that are odd but sound must reach their engine unchanged; ambiguous ones must be refused."""

from collections.abc import Iterator

import pytest

from stories.programs import Program, running
from stories.raw_wire import Engine, ask, chat_body
from stories.set_ups import FREE_PORTS, launched_engines, replicas, write

pytestmark = pytest.mark.timeout(120)
GOOD = b'{"model":"fake","messages":[{"role":"user","content":"%b"}]}'


@pytest.fixture(scope="module")
def engine() -> Iterator[Engine]:
    with Engine() as engine:
        yield engine


@pytest.fixture(scope="module")
def up(engine: Engine, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Program]:
    directory = tmp_path_factory.mktemp("requests")
    spare = launched_engines(instances=1).replace('"fake"', '"spare"', 1)
    config = write(directory, FREE_PORTS, replicas(engine.url), spare)
    with running(directory, "up", "up", "--config", config) as program:
        yield program


@pytest.mark.parametrize("protocol", ["h2c", "websocket"])
def test_the_body_of_a_request_that_offers_an_upgrade_reaches_the_engine(
    up: Program, engine: Engine, protocol: str
) -> None:
    """Java's HTTP client offers h2c with every first request; a server that does not want it answers as ever."""
    body = chat_body()
    lines = ("Connection: Upgrade, HTTP2-Settings", f"Upgrade: {protocol}", "HTTP2-Settings: AAMAAABk")
    answer = ask(up.url("dataplane"), body, *lines)
    assert (answer.status, engine.bodies[-1:]) == (200, [body]), answer.body


@pytest.mark.parametrize(
    "body",
    [
        GOOD % rb"cut \ud83d",
        GOOD % rb"cut \ud83d... and more",
        GOOD % rb"cut \ude00",
        rb'{"model":"fake","messages":[],"x\ud83d":1}',
    ],
)
def test_half_of_an_escaped_surrogate_pair_passes_as_it_is(up: Program, engine: Engine, body: bytes) -> None:
    """JSON allows it, and JavaScript writes it for a text that was cut inside an emoji."""
    answer = ask(up.url("dataplane"), body)
    assert (answer.status, engine.bodies[-1:]) == (200, [body]), answer.body


@pytest.mark.parametrize(
    "body",
    [
        b'{"model":"fake","messages":[{"role":"user","content":"\xff"}],"tools":[{"model":1}]}',
        b'{"model":"fake","messages":[],"seed":' + b"1" * 5000 + b',"tools":[{"model":1}]}',
    ],
    ids=["bytes that are no UTF-8", "a number of 5000 digits"],
)
def test_a_nested_model_key_makes_no_passing_body_fail(up: Program, engine: Engine, body: bytes) -> None:
    plain = body.replace(b'{"model":1}', b'{"mode_":1}')
    assert ask(up.url("dataplane"), plain).status == 200
    answer = ask(up.url("dataplane"), body)
    assert (answer.status, engine.bodies[-1:]) == (200, [body]), answer.body


@pytest.mark.parametrize(
    "body",
    [
        b'{"model":"fake","stream":false,"stream":true,"messages":[]}',
        b'{"model":"fake","messages":[],"messages":[{"role":"user","content":"hi"}]}',
        b'{"model":"fake","temperature":0,"temperature":1,"messages":[]}',
        rb'{"model":"fake","\u006dodel":"other","messages":[]}',
    ],
)
def test_a_repeated_top_level_key_is_refused(up: Program, engine: Engine, body: bytes) -> None:
    """HOUSE.md: duplicate top-level keys are a 400."""
    before = len(engine.bodies)
    answer = ask(up.url("dataplane"), body)
    assert (answer.status, len(engine.bodies) - before) == (400, 0), answer.body


def test_blanks_after_a_header_are_no_part_of_its_value(up: Program) -> None:
    door = up.url("dataplane")
    assert ask(door, chat_body(), "x-luftpause-class: batch ").status == 200
    assert ask(door, chat_body(), "x-luftpause-class: batch\t").status == 200
    assert ask(door, chat_body(), host="localhost ").status == 200
    assert ask(door, chat_body(), "x-luftpause-run-id: blank ").headers["x-luftpause-run-id"] == "blank"


def test_one_odd_message_does_not_hide_the_tool_calls_of_the_others(up: Program, engine: Engine) -> None:
    called = b'{"choices":[{"finish_reason":"tool_calls","message":{"tool_calls":[{"id":"only-one"}]}}]}'
    engine.reply = lambda _: b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n%b" % (len(called), called)
    first = ask(up.url("dataplane"), chat_body())
    second = ask(
        up.url("dataplane"),
        b'{"model":"fake","messages":[{"role":"assistant","tool_calls":[null]},{"role":"tool","tool_call_id":7},'
        b'{"role":"tool","tool_call_id":"only-one","content":"r"}]}',
    )
    assert second.headers["x-luftpause-run-id"] == first.headers["x-luftpause-run-id"]
