"""`luftpause models`, against a real HTTP server with made-up answers."""

import http.server
import json
import threading
from collections.abc import Iterator
from typing import ClassVar

import pytest
from click.testing import CliRunner, Result

from luftpause.cli.main import main

MODEL = {
    "name": "m\x1b[2J",
    "launcher": "box",
    "state": "up",
    "memory": 2**30,
    "memory_measured": True,
    "parked": {"runs": 2, "bytes": 3 << 20},
    "pinned": True,
}


class _Answers(http.server.BaseHTTPRequestHandler):
    answers: ClassVar[dict[str, tuple[int, bytes]]] = {}
    seen: ClassVar[list[str]] = []

    def do_GET(self) -> None:
        type(self).seen.append(f"{self.command} {self.path}")
        status, body = self.answers.get(self.path.partition("?")[0], (404, b"{}"))
        self.send_response(status)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    do_POST = do_GET

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""


@pytest.fixture
def url() -> Iterator[str]:
    _Answers.seen = []
    _Answers.answers = {
        "/models": (200, json.dumps({"models": [MODEL, {"name": "n", "state": "loading", "eta_s": 3.2}]}).encode()),
        "/models/a%2Fb/load": (200, json.dumps({"name": "a/b", "state": "loading", "why": "asked"}).encode()),
        "/models/m/unload": (200, b'{"name":"m","state":"draining"}'),
        "/models/m/pin": (200, b'{"name":"m","state":"up","pinned":true}'),
        "/models/m/unpin": (200, b'{"name":"m","state":"up"}'),
        "/models/m/logs": (200, b'{"lines":["one","two\\u001b[2J"],"next":2}'),
        "/models/f/logs": (200, b'data: {"line":"one"}\n\n: still here\n\ndata: {"line":"two"}\n\n'),
        "/models/z/load": (404, b'{"error":{"message":"no launcher serves model \'z\'"}}'),
        "/models/odd/load": (200, b"<html>"),
    }
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), _Answers)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_address[1]}"
    server.shutdown()
    thread.join()
    server.server_close()


def models(url: str, *arguments: str) -> Result:
    return CliRunner().invoke(main, ["models", *arguments, "--url", url])


def test_the_list_is_a_table_or_json(url: str) -> None:
    table = models(url, "list").output
    assert "\x1b" not in table
    assert "1.0 GiB" in table
    wide = CliRunner().invoke(main, ["models", "list", "--url", url], env={"COLUMNS": "200"}).output
    assert "2 (3 MiB)" in wide
    assert json.loads(models(url, "list", "--json").output)["models"][1]["name"] == "n"


def test_wishes_are_posted_and_answered_in_a_line(url: str) -> None:
    assert models(url, "load", "a/b").output == "a/b: loading (asked)\n"
    assert models(url, "unload", "m", "--force", "--keep-waiting").output == "m: draining\n"
    assert models(url, "pin", "m").output == "m: up, pinned\n"
    assert models(url, "unpin", "m").output == "m: up\n"
    assert _Answers.seen == [
        "POST /models/a%2Fb/load",
        "POST /models/m/unload?force=true&keep_waiting=true",
        "POST /models/m/pin",
        "POST /models/m/unpin",
    ]


def test_logs_are_printed_and_followed(url: str) -> None:
    answer = models(url, "logs", "m", "-n", "2").output
    assert answer.splitlines()[0] == "one"
    assert "\x1b" not in answer
    assert models(url, "logs", "f", "-f").output == "one\ntwo\n"
    assert _Answers.seen == ["GET /models/m/logs?lines=2", "GET /models/f/logs?lines=200&follow=true"]


def test_what_went_wrong_is_said_in_the_schedulers_words(url: str) -> None:
    answer = models(url, "load", "z")
    assert (answer.exit_code, answer.stderr) == (1, "error: no launcher serves model 'z'\n")
    assert "answered something that is no scheduler's" in models(url, "load", "odd").stderr
    assert "is no scheduler: it answered 404" in models(url, "load", "nowhere").stderr
    assert "no scheduler answers at" in models("http://127.0.0.1:1", "list").stderr
