"""Bad input at the real LLM door: each gets a clear error, and the door goes on serving."""

import json
import socket
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from stories.programs import Program, running
from stories.set_ups import FREE_PORTS, MODEL, launched_engines, write

pytestmark = pytest.mark.timeout(120)
GOOD_BODY = json.dumps({"model": MODEL, "messages": [{"role": "user", "content": "hi"}]}).encode()
JSON = "content-type: application/json"


@pytest.fixture(scope="module")
def up(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Program]:
    directory = tmp_path_factory.mktemp("bad")
    config = write(directory, FREE_PORTS, launched_engines("--ttft-ms", "1", "--token-ms", "1", instances=1))
    with running(directory, "up", "up", "--config", config) as program:
        yield program


@dataclass(frozen=True)
class Answer:
    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def message(self) -> str:
        return str(json.loads(self.body)["error"]["message"])


def exchange(url: str, *lines: str, body: bytes = b"", hang_up: bool = False) -> Answer:
    """Send raw lines and a body, and return the answer."""
    host, port = url.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port)), timeout=20) as connection:
        head = "\r\n".join((lines[0], f"host: {host}:{port}", "connection: close", *lines[1:], "", ""))
        connection.sendall(head.encode("latin-1") + body)
        if hang_up:
            connection.shutdown(socket.SHUT_WR)
        received = b""
        while piece := connection.recv(65536):
            received += piece
    start, _, rest = received.partition(b"\r\n\r\n")
    status, *headers = start.decode("latin-1").split("\r\n")
    pairs = dict(line.lower().split(": ", 1) for line in headers if ": " in line)
    return Answer(int(status.split()[1]), pairs, rest)


def post(up: Program, body: bytes, *lines: str) -> Answer:
    return exchange(
        up.url("dataplane"),
        "POST /v1/chat/completions HTTP/1.1",
        f"content-length: {len(body)}",
        *(lines or (JSON,)),
        body=body,
    )


def good(up: Program) -> None:
    """The door still serves, and no turn is left behind."""
    assert post(up, GOOD_BODY).status == 200
    with urllib.request.urlopen(up.url("scheduler") + "/status", timeout=10) as response:
        status = json.load(response)
    assert status["held"] == []
    assert [replica["in_flight"] for replica in status["replicas"]] == [0]


@pytest.mark.parametrize(
    ("body", "says"),
    [
        (b"{not json", "JSON"),
        (b"", "JSON"),
        (b"[1, 2]", "object"),
        (b'{"messages": []}', "model"),
        (b'{"model": "", "messages": []}', "model"),
        (b'{"model": 42, "messages": []}', "model"),
        (b'{"model": null, "messages": []}', "model"),
        (b'{"model": "fake", "stream": "yes", "messages": []}', "stream"),
        (b'{"model": "fake", "messages": "hi"}', "messages"),
        (b"\xff\xfe\x00{", "JSON"),
        (b"[" * 100_000, "object"),
    ],
    ids=[
        "no json",
        "empty",
        "array",
        "no model",
        "empty model",
        "int model",
        "null model",
        "stream",
        "messages",
        "utf",
        "deep",
    ],
)
def test_a_body_that_makes_no_sense_is_a_400_that_names_what_is_wrong(up: Program, body: bytes, says: str) -> None:
    answer = post(up, body)
    assert answer.status == 400, answer
    assert says in answer.message
    assert answer.headers["x-luftpause-run-id"]
    good(up)


def test_an_unknown_class_is_a_400_that_names_both_classes(up: Program) -> None:
    answer = post(up, GOOD_BODY, JSON, "x-luftpause-class: urgent")
    assert answer.status == 400
    assert "interactive" in answer.message
    assert "batch" in answer.message
    good(up)


def test_an_unknown_model_is_a_404_with_the_model_in_it(up: Program) -> None:
    answer = post(up, b'{"model": "gpt-9", "messages": []}')
    assert answer.status == 404
    assert answer.message.startswith("no Generative replica serves model 'gpt-9': they serve '")
    good(up)


def test_a_body_of_40_mb_is_a_413_before_it_was_all_read(up: Program) -> None:
    answer = exchange(
        up.url("dataplane"), "POST /v1/chat/completions HTTP/1.1", f"content-length: {40 * 1024 * 1024}", JSON
    )
    assert answer.status == 413
    assert "32" in answer.message
    good(up)


def test_another_content_type_is_a_415(up: Program) -> None:
    answer = post(up, GOOD_BODY, "content-type: text/plain")
    assert answer.status == 415
    assert "application/json" in answer.message
    good(up)


@pytest.mark.parametrize(
    "lines",
    [
        ("x-odd: a\x00b",),
        ("x-luftpause-run-id: a\x00b",),
        ("content-length: -5",),
        ("content-length: 7", "content-length: 8"),
        ("content-length: 7", "transfer-encoding: chunked"),
        ("content-length: 1e3",),
        ("x-big: " + "y" * 100_000,),
    ],
    ids=["nul", "nul in ours", "negative", "two lengths", "length and chunked", "no number", "huge header"],
)
def test_a_request_that_is_no_http_is_refused_in_words(up: Program, lines: tuple[str, ...]) -> None:
    answer = exchange(up.url("dataplane"), "POST /v1/chat/completions HTTP/1.1", JSON, *lines, body=b"{}     ")
    assert 400 <= answer.status < 500
    assert answer.message
    good(up)


def test_a_body_shorter_than_its_length_ends_with_its_client(up: Program) -> None:
    host, port = up.url("dataplane").removeprefix("http://").split(":")
    with socket.create_connection((host, int(port)), timeout=20) as connection:
        head = f"POST /v1/chat/completions HTTP/1.1\r\nhost: {host}:{port}\r\n{JSON}\r\ncontent-length: 5000\r\n\r\n"
        connection.sendall(head.encode() + GOOD_BODY)
    good(up)


def test_an_unknown_path_and_a_wrong_method_are_named(up: Program) -> None:
    unknown = exchange(up.url("dataplane"), "GET /v1/nothing HTTP/1.1")
    assert unknown.status == 404
    assert "/v1/nothing" in unknown.message
    wrong = exchange(up.url("dataplane"), "PUT /v1/chat/completions HTTP/1.1", "content-length: 0")
    assert wrong.status == 405
    good(up)
