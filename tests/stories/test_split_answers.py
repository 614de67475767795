"""An engine whose header could make a client see two answers, or a header that nobody sent, is not believed."""

from collections.abc import Iterator

import pytest

from stories.programs import Program, running
from stories.raw_wire import ANSWER, Engine, ask, chat_body
from stories.set_ups import FREE_PORTS, replicas, write

pytestmark = pytest.mark.timeout(120)
OK = b"HTTP/1.1 200 OK\r\n"
TWO = b"HTTP/1.1 200 OK\r\nx-evil: 1\r\ncontent-length: 0\r\n\r\n"
SPLIT = {
    "a bare carriage return": OK + b"x: a\rx-evil: 1\r\ncontent-length: 0\r\n\r\n",
    "a bare line feed": OK + b"x: a\nx-evil: 1\r\ncontent-length: 0\r\n\r\n",
    "a folded value": OK + b"x: a\r\n x-evil: 1\r\ncontent-length: 0\r\n\r\n",
    "NUL": OK + b"x: a\0x-evil: 1\r\ncontent-length: 0\r\n\r\n",
    "a control": OK + b"x: a\x01x-evil: 1\r\ncontent-length: 0\r\n\r\n",
    "delete": OK + b"x: a\x7fx-evil: 1\r\ncontent-length: 0\r\n\r\n",
    "a control in a name": OK + b"x\x01x-evil: 1\r\ncontent-length: 0\r\n\r\n",
    "a blank before the colon": OK + b"x-evil : 1\r\ncontent-length: 0\r\n\r\n",
    "a line feed in the status": b"HTTP/1.1 200 OK\nx-evil: 1\r\ncontent-length: 0\r\n\r\n",
    "two lengths": OK + b"x-evil: 1\r\ncontent-length: 0\r\ncontent-length: 99\r\n\r\n",
    "a length and chunks": OK + b"x-evil: 1\r\ncontent-length: 99\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n",
}


@pytest.fixture(scope="module")
def engine() -> Iterator[Engine]:
    with Engine() as engine:
        yield engine


@pytest.fixture(scope="module")
def up(engine: Engine, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Program]:
    directory = tmp_path_factory.mktemp("split")
    with running(directory, "up", "up", "--config", write(directory, FREE_PORTS, replicas(engine.url))) as program:
        yield program


@pytest.mark.parametrize("raw", SPLIT.values(), ids=SPLIT.keys())
def test_a_header_that_could_be_split_makes_the_engine_fail_the_turn(up: Program, engine: Engine, raw: bytes) -> None:
    engine.reply = lambda _: raw
    answer = ask(up.url("dataplane"), chat_body())

    assert answer.status == 502
    assert "x-evil" not in answer.headers
    assert b"not valid HTTP" in answer.body
    assert "Traceback" not in up.output.read_text()


def test_a_second_answer_that_nobody_asked_for_reaches_nobody(up: Program, engine: Engine) -> None:
    engine.reply = lambda _: OK + b"content-length: %d\r\n\r\n" % len(ANSWER) + ANSWER + TWO
    for _ in range(3):
        answer = ask(up.url("dataplane"), chat_body())
        assert (answer.status, answer.body) == (200, ANSWER)
        assert "x-evil" not in answer.headers


@pytest.mark.parametrize("run", ["a b", "x" * 128, "~!", "\u00fc", "x" * 129, "a\tb"])
def test_a_run_id_comes_back_as_it_went_in_or_not_at_all(up: Program, engine: Engine, run: str) -> None:
    engine.reply = lambda _: OK + b"content-length: %d\r\n\r\n" % len(ANSWER) + ANSWER
    answer = ask(up.url("dataplane"), chat_body(), f"x-luftpause-run-id: {run}")

    sound = run.isascii() and run.isprintable() and len(run) <= 128
    assert answer.status == (200 if sound else 400)
    assert (answer.headers["x-luftpause-run-id"] == run) is sound


@pytest.mark.parametrize(
    "path", ["/v1/%0d%0ax-evil:%201", "/v1/runs/a%0d%0ax-evil:%201", "/v1/messages/%00", "/v1/%ff"]
)
def test_a_path_cannot_write_a_header(up: Program, path: str) -> None:
    answer = ask(up.url("dataplane"), start=f"DELETE {path} HTTP/1.1")

    assert answer.status == 404
    assert "x-evil" not in answer.headers
    assert b"\r\n" not in answer.body
