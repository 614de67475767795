"""The failure table: what a client sees when something fails, and what is left behind, row by row and way by way.

One `up`, and an engine that fails as a word in the text tells it to. Each row is tried in every way in at the door:
every dialect, streamed or not, at an engine that speaks it and at one that does not, and both kinds of `/v1/decide`.
"""

import json
import socket
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from stories.programs import Program, launch, running
from stories.raw_wire import CHAT, Answer, Engine, ask, soon, status, unchunked
from stories.set_ups import FREE_PORTS, free_port, write

pytestmark = pytest.mark.timeout(120)
RUN = "x-luftpause-run-id"
MODEL_HERE = "{model}"
LABELS = ["urgent", "lookup"]
SAID = "grüße 🌬"
GONE = ("gone", "gone-sorter")
MODELS = ("native", "plain", "sorter", "full", "full-sorter")


@dataclass(frozen=True)
class Way:
    """A way in: where a request is posted, to which model, and whether its answer is streamed.

    `passes`: the client gets the engine's own bytes. `in_run`: the turn belongs to a run.
    """

    name: str
    path: str
    model: str
    stream: bool = False
    passes: bool = True
    in_run: bool = True
    labels: bool = False

    @property
    def full_model(self) -> str:
        """The model whose only replica has no room."""
        return "full-sorter" if self.model == "sorter" else "full"

    def start(self, model: str = "") -> str:
        """Return the first line of a request. Gemini names its model there."""
        return f"POST {self.path.replace(MODEL_HERE, model or self.model)} HTTP/1.1"

    def body(self, text: str, model: str = "") -> bytes:
        asked: dict[str, object] = {"model": model or self.model}
        if MODEL_HERE in self.path:
            asked = {"contents": [{"role": "user", "parts": [{"text": text}]}]}
        elif self.path == "/v1/decide":
            asked |= {"input": text} | ({"labels": LABELS} if self.labels else {})
        elif self.path == "/v1/responses":
            asked |= {"input": text, "stream": self.stream}
        else:
            asked |= {"messages": [{"role": "user", "content": text}], "stream": self.stream, "max_tokens": 9}
        return json.dumps(asked).encode()

    def ask(self, up: Program, text: str, run: str) -> Answer:
        return ask(up.url("dataplane"), self.body(text), f"{RUN}: {run}", start=self.start())


def conversations() -> Iterator[Way]:
    for name, path in (("chat", CHAT), ("messages", "/v1/messages"), ("responses", "/v1/responses")):
        for stream in (False, True):
            how = "streamed" if stream else "whole"
            yield Way(f"{name} {how}", path, "native", stream)
            if name != "chat":
                yield Way(f"{name} {how} translated", path, "plain", stream, passes=False)


WAYS = (
    *conversations(),
    Way("gemini whole", f"/v1beta/models/{MODEL_HERE}:generateContent", "plain", passes=False),
    Way("gemini streamed", f"/v1beta/models/{MODEL_HERE}:streamGenerateContent?alt=sse", "plain", True, passes=False),
    Way("decide", "/v1/decide", "sorter", in_run=False),
    Way("decide labels", "/v1/decide", "native", passes=False, in_run=False, labels=True),
)
EVERY_WAY = pytest.mark.parametrize("way", WAYS, ids=lambda way: way.name.replace(" ", "-"))

# What the engine says.

TOKENS = [{"token": letter, "logprob": -1.0} for letter in "AB"]
LOGPROBS = {"content": [{**TOKENS[0], "top_logprobs": TOKENS}]}
MESSAGE = {"role": "assistant", "content": SAID}
USAGE = {"prompt_tokens": 3, "completion_tokens": 1, "total_tokens": 4}
WHOLE = {
    "id": "c",
    "model": "m",
    "choices": [{"index": 0, "message": MESSAGE, "logprobs": LOGPROBS, "finish_reason": "stop"}],
    "usage": USAGE,
}
CALL = {"index": 0, "id": "call_1", "type": "function", "function": {"name": "look", "arguments": "{}"}}
EVENTS = (
    {"id": "c", "model": "m", "choices": [{"index": 0, "delta": {"role": "assistant", "content": SAID}}]},
    {"id": "c", "model": "m", "choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}], "usage": USAGE},
)


def encoded(value: object) -> bytes:
    return json.dumps(value, ensure_ascii=False).encode()


def event(value: object) -> bytes:
    return b"data: " + encoded(value) + b"\n\n"


def head(start: str, *lines: str) -> bytes:
    return "\r\n".join((f"HTTP/1.1 {start}", *lines, "", "")).encode()


def streamed(*events: bytes, end: bool = True) -> bytes:
    chunks = b"".join(b"%x\r\n%b\r\n" % (len(each), each) for each in events)
    opening = head("200 OK", "content-type: text/event-stream", "transfer-encoding: chunked")
    return opening + chunks + (b"0\r\n\r\n" if end else b"")


def answered(body: bytes, start: str = "200 OK", *lines: str, length: int | None = None) -> bytes:
    announced = len(body) if length is None else length
    return head(start, "content-type: application/json", f"content-length: {announced}", *lines) + body


def good(stream: bool, *, usage: bool = True) -> bytes:
    kept = [{name: each[name] for name in each if usage or name != "usage"} for each in (WHOLE, *EVENTS)]
    return streamed(*map(event, kept[1:]), b"data: [DONE]\n\n") if stream else answered(encoded(kept[0]))


def half(stream: bool) -> bytes:
    """Return the beginning of an answer that has already named a tool."""
    called = {"id": "c", "choices": [{"index": 0, "delta": {"tool_calls": [CALL]}, "finish_reason": "tool_calls"}]}
    if stream:
        return streamed(event(EVENTS[0]), event(called), end=False)
    return answered(encoded(WHOLE)[:60], length=len(encoded(WHOLE)))


BROKEN = encoded({"error": {"message": "broken on purpose", "type": "server_error", "code": 500}})
BUSY = encoded({"error": {"message": "busy on purpose", "type": "rate_limit", "code": 429}})
HUGE_BYTES = 100 * 1024 * 1024


@dataclass
class Failing(Engine):
    """Fails as the text of a request says, and counts whose connections its clients have closed."""

    left: list[bytes] = field(default_factory=list)

    def answer(self, connection: socket.socket, head: bytes, body: bytes) -> bool:
        if not head.startswith(b"POST"):
            return super().answer(connection, head, body)
        self.bodies.append(body)
        stream = b'"stream": true' in body or b'"stream":true' in body
        fault = next((act for word, act in FAULTS.items() if word in body), None)
        if fault is None:
            connection.sendall(good(stream))
            return True
        stays = fault(connection, stream)
        if stays is None:
            connection.settimeout(60.0)
            if connection.recv(1) == b"":
                self.left.append(body)
        return stays is True


def say(*pieces: Callable[[bool], bytes], stays: bool | None) -> Callable[[socket.socket, bool], bool | None]:
    """Return what sends pieces; then the connection is kept, closed, or (None) waits for its client to leave."""

    def act(connection: socket.socket, stream: bool) -> bool | None:
        for piece in pieces:
            connection.sendall(piece(stream))
        return stays

    return act


def in_the_middle_of_a_letter(connection: socket.socket, stream: bool) -> bool:
    raw = good(stream)
    at = raw.index("ü".encode()) + 1
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    for start, end in ((0, at), (at, len(raw))):
        connection.sendall(raw[start:end])
    return True


def a_hundred_megabytes(connection: socket.socket, stream: bool) -> bool:
    del stream
    connection.sendall(head("200 OK", "content-type: application/json", f"content-length: {HUGE_BYTES}"))
    for _ in range(HUGE_BYTES // 1_048_576):
        connection.sendall(b" " * 1_048_576)
    return True


FAULTS: dict[bytes, Callable[[socket.socket, bool], bool | None]] = {
    b"<500>": say(lambda _: answered(BROKEN, "500 Internal Server Error", "x-engine: yes"), stays=True),
    b"<429>": say(lambda _: answered(BUSY, "429 Too Many Requests", "retry-after: 1"), stays=True),
    b"<hang up>": say(stays=False),
    b"<die>": say(half, stays=False),
    b"<silent>": say(stays=None),
    b"<stall>": say(half, stays=None),
    b"<no usage>": say(lambda stream: good(stream, usage=False), stays=True),
    b"<letter>": in_the_middle_of_a_letter,
    b"<no answer>": say(lambda _: answered(b"{}"), stays=True),
    b"<huge>": a_hundred_megabytes,
}

# The house.


@dataclass
class House:
    """An `up` and its engines."""

    up: Program
    engines: dict[str, Failing]

    def phases(self) -> list[object]:
        return [row["phase"] for row in status(self.up.url("scheduler"))["runs"] for _ in range(int(str(row["count"])))]

    def is_free(self) -> bool:
        seen = status(self.up.url("scheduler"))
        return not seen["held"] and not any(each["in_flight"] for each in seen["replicas"])

    def held(self) -> int:
        return sum(int(str(row["count"])) for row in status(self.up.url("scheduler"))["held"])

    def forget(self, run: str) -> None:
        ask(self.up.url("dataplane"), start=f"DELETE /v1/runs/{run} HTTP/1.1")
        assert self.phases() == []

    def failed(self, way: Way, run: str) -> None:
        """Check what a failure leaves behind: a free slot, an idle run, and a retry that is taken like any turn."""
        assert self.is_free(), status(self.up.url("scheduler"))
        assert self.phases() == (["idle"] if way.in_run else [])
        retry = way.ask(self.up, "again", run)
        assert (retry.status, retry.headers[RUN]) == (200, run)
        assert is_whole(retry), retry
        assert self.phases() == (["idle"] if way.in_run else [])
        self.forget(run)


def declared(engines: dict[str, Failing]) -> str:
    words = []
    for name, engine in engines.items():
        kind = "single-pass" if "sorter" in name else "generative"
        spoken = '"messages", "responses"' if name in ("native", "full") else '"chat"'
        words += ["[[replicas]]", f'name = "{name}"', f'url = "{engine.url}"', f'models = ["{name}"]']
        words += [f'kind = "{kind}"', f"dialects = [{spoken}]", ""]
    return "\n".join(words)


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> Iterator[House]:
    directory = tmp_path_factory.mktemp("failures")
    engines = {name: Failing(load=(1, 1) if name.startswith("full") else None) for name in (*MODELS, *GONE)}
    config = write(directory, FREE_PORTS, declared(engines))
    with running(directory, "up", "up", "--config", config, "--set", "scheduler.probe_period=1h") as up:
        assert soon(lambda: all(each["healthy"] for each in status(up.url("scheduler"))["replicas"]))
        for name in GONE:
            engines[name].stop()
        yield House(up, engines)
    for engine in engines.values():
        engine.stop()


@pytest.fixture(autouse=True)
def nothing_is_left(request: pytest.FixtureRequest) -> Iterator[None]:
    """A test that fails must not make the next one fail."""
    yield
    if "house" in request.fixturenames:
        found: House = request.getfixturevalue("house")
        ask(found.up.url("dataplane"), start="DELETE /v1/runs/mine HTTP/1.1")


def is_whole(answer: Answer) -> bool:
    length = answer.headers.get("content-length")
    return answer.body.endswith(b"0\r\n\r\n") if length is None else len(answer.body) == int(length)


def message(way: Way, body: bytes) -> str:
    """Return the sentence of an error body, in the shape of the way's dialect."""
    told = json.loads(body)
    if way.path == "/v1/messages":
        assert told["type"] == "error"
    return str(told["error"]["message"])


# The rows.


@EVERY_WAY
def test_an_engine_that_is_out_of_reach_is_a_502_that_names_it(house: House, way: Way) -> None:
    gone = "gone-sorter" if way.model == "sorter" else "gone"
    body = way.body("x", model=gone)
    answer = ask(house.up.url("dataplane"), body, f"{RUN}: mine", start=way.start(gone))
    assert (answer.status, answer.headers[RUN]) == (502, "mine")
    assert message(way, answer.body).startswith(f"engine {gone}: connection refused by 127.0.0.1:")
    house.failed(way, "mine")


@EVERY_WAY
def test_an_engine_that_hangs_up_before_it_says_anything_is_a_502_that_names_it(house: House, way: Way) -> None:
    answer = way.ask(house.up, "<hang up>", "mine")
    assert (answer.status, answer.headers[RUN]) == (502, "mine")
    assert message(way, answer.body).startswith(f"engine {way.model}: ")
    house.failed(way, "mine")


@EVERY_WAY
@pytest.mark.parametrize(("fault", "code", "said"), [("<500>", 500, BROKEN), ("<429>", 429, BUSY)])
def test_an_engines_refusal_keeps_its_status_and_words(
    house: House, way: Way, fault: str, code: int, said: bytes
) -> None:
    answer = way.ask(house.up, fault, "mine")
    assert (answer.status, answer.headers[RUN]) == (code, "mine")
    assert answer.headers.get("retry-after") == ("1" if code == 429 else None)
    assert answer.headers.get("x-engine") == ("yes" if code == 500 else None)
    if way.passes:
        assert answer.body == said
    else:
        assert message(way, answer.body).endswith("on purpose")
    house.failed(way, "mine")


@EVERY_WAY
def test_an_engine_that_dies_in_the_middle_ends_the_answer_without_an_end(house: House, way: Way) -> None:
    answer = way.ask(house.up, "<die>", "mine")
    assert answer.headers[RUN] == "mine"
    if way.stream or way.passes:
        assert answer.status == 200
        assert answer.body, "what came is passed on"
        assert not is_whole(answer)
        assert b"[DONE]" not in answer.body
    else:
        assert answer.status == 502
        assert message(way, answer.body).startswith(f"engine {way.model}: ")
    house.failed(way, "mine")


@EVERY_WAY
@pytest.mark.parametrize("fault", ["<no usage>", "<letter>"])
def test_an_odd_answer_is_an_answer(house: House, way: Way, fault: str) -> None:
    """It tells no usage, or comes in pieces that are cut inside a letter."""
    answer = way.ask(house.up, fault, "mine")
    assert (answer.status, answer.headers[RUN]) == (200, "mine")
    assert is_whole(answer)
    assert way.labels or SAID in unchunked(answer.body).decode(), "joined again"
    house.failed(way, "mine")


@pytest.mark.parametrize("way", [way for way in WAYS if not way.passes], ids=lambda way: way.name.replace(" ", "-"))
def test_what_is_no_answer_is_a_502_where_it_would_have_to_be_said_in_other_words(house: House, way: Way) -> None:
    """Also where a stream was asked for and none came."""
    answer = way.ask(house.up, "<no answer>", "mine")
    assert (answer.status, answer.headers[RUN]) == (502, "mine")
    assert answer.headers["content-type"] == "application/json"
    assert message(way, answer.body).startswith(f"engine {way.model}: ")
    house.failed(way, "mine")


@pytest.mark.parametrize("way", [way for way in WAYS if not way.stream], ids=lambda way: way.name.replace(" ", "-"))
def test_a_hundred_megabytes_pass_or_are_refused_where_they_would_have_to_be_kept(house: House, way: Way) -> None:
    answer = way.ask(house.up, "<huge>", "mine")
    if way.passes:
        assert (answer.status, len(answer.body)) == (200, HUGE_BYTES)
    else:
        assert answer.status == 502
        assert message(way, answer.body) == f"engine {way.model}: its answer exceeds 67,108,864 bytes"
    house.failed(way, "mine")


@EVERY_WAY
def test_an_unknown_model_is_a_404_at_once_and_nothing_is_left_of_it(house: House, way: Way) -> None:
    body = way.body("x", model="nope")
    answer = ask(house.up.url("dataplane"), body, f"{RUN}: mine", start=way.start("nope"))
    assert (answer.status, answer.headers[RUN]) == (404, "mine")
    kind = "Single-pass" if way.model == "sorter" else "Generative"
    assert message(way, answer.body).startswith(f"no {kind} replica serves model 'nope': they serve '")
    assert house.is_free()
    assert house.phases() == []


# Clients that leave.


@dataclass
class Client:
    """A client that sends and can leave."""

    connection: socket.socket

    @classmethod
    def asking(cls, up: Program, way: Way, text: str, model: str = "") -> "Client":
        host, port = up.url("dataplane").removeprefix("http://").split(":")
        body = way.body(text, model)
        lines = (f"host: {host}", f"{RUN}: mine", "content-type: application/json", f"content-length: {len(body)}")
        client = cls(socket.create_connection((host, int(port)), timeout=20))
        client.connection.sendall(f"{way.start(model)}\r\n".encode() + "\r\n".join((*lines, "", "")).encode() + body)
        return client

    def leave(self) -> None:
        self.connection.close()


def arrived(engine: Failing, word: bytes) -> Callable[[], bool]:
    before = len(engine.bodies)
    return lambda: any(word in body for body in engine.bodies[before:])


@EVERY_WAY
@pytest.mark.parametrize("fault", ["<silent>", "<stall>"])
def test_a_client_that_leaves_its_engine_takes_it_along(house: House, way: Way, fault: str) -> None:
    """Before the engine's first byte, or in the middle of its answer: the engine's connection is closed too."""
    engine = house.engines[way.model]
    is_there, left = arrived(engine, fault.encode()), len(engine.left)
    client = Client.asking(house.up, way, fault)
    assert soon(is_there)
    if fault == "<stall>" and (way.stream or way.passes):
        assert client.connection.recv(1) == b"H"
    client.leave()
    assert soon(lambda: len(engine.left) == left + 1), "its engine works on for nobody"
    assert soon(house.is_free)
    house.failed(way, "mine")


@EVERY_WAY
def test_a_client_that_leaves_the_queue_was_never_there(house: House, way: Way) -> None:
    engine = house.engines[way.full_model]
    is_there = arrived(engine, b"<silent>")
    occupant = Client.asking(house.up, way, "<silent>", way.full_model)
    assert soon(is_there)
    asked = len(engine.bodies)
    waiting = Client.asking(house.up, way, "waits", way.full_model)
    assert soon(lambda: house.held() == 1)
    waiting.leave()
    assert soon(lambda: house.held() == 0)
    occupant.leave()
    assert soon(house.is_free)
    assert len(engine.bodies) == asked, "no engine was asked for it"
    house.failed(way, "mine")


@EVERY_WAY
def test_clients_that_leave_at_any_moment_leave_nothing(house: House, way: Way) -> None:
    """Some are gone before they are read, some while they are routed, some while the engine is asked."""
    for _ in range(20):
        Client.asking(house.up, way, "<silent>").leave()
    assert soon(house.is_free)
    retry = way.ask(house.up, "again", "mine")
    assert (retry.status, retry.headers[RUN]) == (200, "mine")
    house.forget("mine")


# The run, and the scheduler.


def test_a_retry_goes_home_although_a_new_run_would_go_elsewhere(tmp_path: Path) -> None:
    engines = {name: Failing() for name in ("a", "b")}
    config = write(tmp_path, FREE_PORTS, declared(engines).replace('models = ["b"]', 'models = ["a"]'))
    way = Way("chat", CHAT, "a")
    with running(tmp_path, "up", "up", "--config", config, "--set", "scheduler.probe_period=1h") as up:
        assert soon(lambda: all(each["healthy"] for each in status(up.url("scheduler"))["replicas"]))
        assert way.ask(up, "first", "mine").status == 200
        other = "b" if engines["a"].bodies else "a"
        for text in ("<500>", "<hang up>", "<die>", "again"):
            assert way.ask(up, text, "mine").status in (500, 502, 200)
        assert not engines[other].bodies
        assert way.ask(up, "new", "another").status == 200
        assert len(engines[other].bodies) == 1


def test_while_the_scheduler_is_away_every_turn_waits_and_is_answered_once_it_is_back(tmp_path: Path) -> None:
    engines = {name: Failing() for name in ("native", "plain", "sorter")}
    link, http = free_port(), free_port()
    ports = f"[scheduler]\nport = {link}\nhttp_port = {http}\n[dataplane]\nport = 0\n"
    config = write(tmp_path, declared(engines), ports)
    scheduler = launch(tmp_path, "scheduler", "scheduler", "--config", config)
    try:
        with running(tmp_path, "dataplane", "dataplane", "--config", config) as door:
            assert WAYS[0].ask(door, "hello", "before").status == 200
            scheduler.kill()
            asked = {name: len(engine.bodies) for name, engine in engines.items()}
            clients = [Client.asking(door, way, "waits") for way in WAYS]
            patient, left = clients[:-1], clients[-1]
            left.leave()
            assert {name: len(engine.bodies) for name, engine in engines.items()} == asked, "nobody placed them"
            scheduler = launch(tmp_path, "scheduler", "scheduler", "--config", config)
            for client in patient:
                assert client.connection.recv(12) == b"HTTP/1.1 200"
                client.leave()
            assert soon(lambda: not any(each["in_flight"] for each in status(scheduler.url("scheduler"))["replicas"]))
            assert status(scheduler.url("scheduler"))["held"] == []
    finally:
        scheduler.kill()
