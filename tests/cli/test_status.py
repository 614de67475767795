"""`luftpause status`, against a real HTTP server with made-up answers."""

import contextlib
import http.server
import json
import re
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import ClassVar

import pytest
from click.testing import CliRunner, Result

from luftpause.cli import status
from luftpause.cli.main import main

STATUS = {
    "replicas": [
        {
            "name": "a",
            "kind": "generative",
            "models": ["m1", "m2"],
            "healthy": True,
            "in_flight": 3,
            "capacity": 8,
            "foreign": 2,
        },
        {"name": "b", "models": [], "healthy": False, "in_flight": 0, "capacity": None},
        {
            "name": "evil\x1b[2J[bold]x",
            "models": ["m"],
            "healthy": True,
            "state": "full",
            "in_flight": 1,
            "capacity": 1,
        },
    ],
    "held": [
        {"class": "batch", "caller": "c[red]1", "count": 4, "oldest_s": 1.26, "expected_s": 9.4, "reason": "no room"}
    ],
    "callers": [{"principal": "anonymous", "caller": "c[red]1", "in_flight": 3, "held": 4}],
    "families": [
        {
            "run": "run_[bold]1",
            "phase": "paused",
            "class": "interactive",
            "at_work": 7,
            "own": {"turns": 1},
            "subtree": {"turns": 12, "prompt_tokens": 45678, "completion_tokens": 90},
            "children": [{"run": f"child-{n}", "phase": None, "class": None, "own": {"turns": 2}} for n in range(6)],
            "omitted": 3,
        }
    ],
    "models": [
        {"name": "big\x1b[2J", "launcher": "box", "state": "loading", "eta_s": 12.3, "memory": 1 << 30, "why": "asked"}
    ],
    "devices": [{"launcher": "box", "device": "ram", "budget": 4 << 30, "taken": 1 << 30}],
    "runs": [{"phase": "paused", "class": "interactive", "count": 7}],
    "tools": [
        {
            "server": "wiki\x1b[2J",
            "tool": "[red]look",
            "returned": 9,
            "running": 2,
            "p50_s": 1.26,
            "p90_s": 61,
            "expected_return_s": 0.5,
        }
    ],
    "peers": [{"name": "dp1_\x1b[2J", "connected": True, "open_turns": 3}, {"name": "dp2_x", "connected": False}],
    "future": {"ignored": True},
}


EVENT = {
    "about": {"ignored": True},
    "tables": {
        "trees": {
            "order": ["run_2", "run_1"],
            "rows": {
                "run_1": {
                    "handle": "run_1",
                    "task": "tidy\x1b[2J up",
                    "status": "AwaitingApproval",
                    "approvals": [
                        {
                            "call": "c",
                            "tool": "[red]drop",
                            "arguments": '{"n": 1}',
                            "reason": "it may destroy",
                        }
                    ],
                    "subtree": {"turns": 3, "tool_calls": 2, "prompt_tokens": 4567, "completion_tokens": 8},
                },
                "run_2": {"handle": "run_2", "task": "t" * 200, "status": "Running"},
            },
        }
    },
    "runtime": {"url": "http://127.0.0.1:7000", "away": "", "omitted": 5},
}


class _Answers(http.server.BaseHTTPRequestHandler):
    status = 200
    body = b""
    event = b"data: {}\n\n"
    seen: ClassVar[list[tuple[str, str | None]]] = []

    def do_GET(self) -> None:
        type(self).seen.append((self.path, self.headers.get("authorization")))
        body = type(self).event if self.path == "/events" else type(self).body
        self.send_response(type(self).status)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Stay silent."""


@contextlib.contextmanager
def answering(body: bytes, code: int = 200) -> Iterator[tuple[str, type[_Answers]]]:
    answers = type("Answers", (_Answers,), {"body": body, "status": code, "seen": []})
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), answers)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}", answers
    finally:
        server.shutdown()
        thread.join(timeout=10)
        server.server_close()


@pytest.fixture(autouse=True)
def nothing_configured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("LUFTPAUSE_TOKEN", raising=False)
    monkeypatch.setenv("COLUMNS", "120")


def ask(*arguments: str) -> Result:
    return CliRunner().invoke(main, ["status", *arguments])


def rows(output: str) -> list[list[str]]:
    """Return the cells of each line; those without text are none."""
    return [re.split(r" {2,}", line.strip()) for line in output.splitlines()]


def test_all_that_the_scheduler_shows_is_tables() -> None:
    with answering(json.dumps(STATUS).encode()) as (url, answers):
        answers.event = b"data: " + json.dumps(EVENT).encode() + b"\n\n"
        answer = ask("--url", url)
    assert answer.exit_code == 0, answer.output
    assert answers.seen == [("/status", None), ("/events", None)]
    expected = [
        ["Waiting for you"],
        ["[red]drop", '{"n": 1}', "it may destroy", r"tidy\u001b[2J up"],
        [f"answer on the page: {url}"],
        ["Held turns"],
        ["batch", "c[red]1", "4", "1.3 s", "9 s", "no room"],
        ["paused", "interactive", "7"],
        ["anonymous", "c[red]1", "3", "4"],
        ["run_[bold]1", "paused", "interactive", "12", "45,678", "90"],
        *([f"child-{number}", "not known", "2", "0", "0"] for number in range(5)),
        ["and 4 more"],
        [r"wiki\u001b[2J", "[red]look", "2", "9", "1.3 s", "61.0 s", "0.5 s"],
        [r"big\u001b[2J", "box", "loading, ready in 12 s", "0", "0", "0", "~1.0 GiB", "asked"],
        ["box ram: 1.0 GiB of 4.0 GiB"],
        ["a", "m1, m2", "healthy", "3/8", "2"],
        ["b", "unhealthy", "0"],
        [r"evil\u001b[2J[bold]x", "m", "full", "1/1"],
        [r"dp1_\u001b[2J", "up", "3"],
        ["dp2_x", "lost, in its grace", "0"],
        ["run_2", f"{'t' * 39}…", "Running", "0", "0", "0", "0"],
        ["run_1", r"tidy\u001b[2J up", "AwaitingApproval", "3", "2", "4,567", "8"],
        ["and 5 more"],
    ]
    shown = rows(answer.output)
    assert [row for row in shown if row in expected] == expected, answer.output


def test_what_is_held_is_legible_on_a_narrow_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    with answering(json.dumps(STATUS).encode()) as (url, _):
        answer = ask("--url", url)
    assert max(map(len, answer.output.splitlines())) <= 60
    assert "…" not in answer.output
    assert "no room" in answer.output


def test_whoever_reads_through_a_pipe_gets_every_line_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("COLUMNS")
    long = "waiting for its home, where its prefix is cached, and " + "so on " * 10
    held = [{"class": "batch", "caller": "c", "count": 1, "oldest_s": 1, "reason": long.strip()}]
    with answering(json.dumps({"replicas": [], "held": held}).encode()) as (url, _):
        answer = ask("--url", url)
    assert long.strip() in answer.output
    assert "\x1b" not in answer.output


@pytest.mark.parametrize(("seconds", "said"), [(None, ""), (0, "soon"), (0.2, "< 1 s"), (9.4, "9 s")])
def test_a_guess_that_ran_out_is_not_told_as_a_time(seconds: float | None, said: str) -> None:
    held = [{"class": "batch", "caller": "c", "count": 1, "oldest_s": 1, "expected_s": seconds, "reason": "why"}]
    models = [{"name": "m", "state": "loading", "eta_s": seconds}]
    with answering(json.dumps({"replicas": [], "held": held, "models": models}).encode()) as (url, _):
        output = ask("--url", url).output
    assert [cell for cell in ["batch", "c", "1", "1.0 s", said, "why"] if cell] in rows(output)
    assert "ready in 0 s" not in output


def test_where_sub_agents_are_not_told_all_else_is() -> None:
    with answering(json.dumps(STATUS).encode()) as (url, answers):
        answers.event = b"nothing"
        answer = ask("--url", url)
    assert answer.exit_code == 0
    assert "sub-agents are not told: GET /events answered 200" in answer.output
    assert "no room" in answer.output


def test_nothing_held_and_no_runs_is_said() -> None:
    with answering(b'{"replicas": []}') as (url, _):
        answer = ask("--url", f"{url}/")
    assert "no held turns" in answer.output
    assert "no runs" in answer.output


def test_json_is_the_schedulers_own_on_one_line() -> None:
    with answering(json.dumps(STATUS, indent=2).encode()) as (url, _):
        answer = ask("--url", url, "--json")
    assert answer.output.count("\n") == 1
    assert json.loads(answer.output) == STATUS


def test_the_token_of_the_environment_is_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LUFTPAUSE_TOKEN", "hunter2\n")
    with answering(b'{"replicas": []}') as (url, answers):
        ask("--url", url)
    assert answers.seen == [("/status", "Bearer hunter2"), ("/events", "Bearer hunter2")]


def test_a_wrong_token_is_not_called_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LUFTPAUSE_TOKEN", "hunter2")
    with answering(b"", 401) as (url, _):
        answer = ask("--url", url)
    assert (answer.exit_code, answer.stderr) == (1, f"error: {url} refuses the token that LUFTPAUSE_TOKEN holds\n")


def test_the_address_comes_from_the_configuration() -> None:
    with answering(b'{"replicas": []}') as (url, answers):
        port = url.rpartition(":")[2]
        Path("luftpause.toml").write_text(f"[scheduler]\nhost = '0.0.0.0'\nhttp_port = {port}\n", "utf-8")
        answer = ask()
    assert answer.exit_code == 0, answer.output
    assert len(answers.seen) == 2


def test_a_port_that_was_picked_at_the_start_must_be_named() -> None:
    Path("luftpause.toml").write_text("[scheduler]\nhttp_port = 0\n", "utf-8")
    answer = ask()
    assert answer.exit_code == 1
    assert "scheduler.http_port is 0" in answer.stderr
    assert "--url" in answer.stderr


def test_the_address_of_the_status_itself_does_too() -> None:
    with answering(b'{"replicas": []}') as (url, answers):
        assert ask("--url", f"{url}/status").exit_code == 0
    assert [path for path, _ in answers.seen] == ["/status", "/events"]


@pytest.mark.parametrize(
    ("body", "code", "expected"),
    [
        (b"", 401, "wants a token; set LUFTPAUSE_TOKEN"),
        (b"", 404, "is no scheduler: GET /status answered 404"),
        (b"<html>", 200, "answered something that is no scheduler's status"),
        (b'{"replicas": 5}', 200, "answered something that is no scheduler's status"),
        (b"[" * 100_000, 200, "answered something that is no scheduler's status"),
        (b'{"replicas": [{"name": "\xff"}]}', 200, "answered something that is no scheduler's status"),
    ],
)
def test_an_odd_answer_is_one_clear_line(body: bytes, code: int, expected: str) -> None:
    for options in ([], ["--json"]):
        with answering(body, code) as (url, _):
            answer = ask("--url", url, *options)
        assert answer.exit_code == 1
        assert answer.stderr.startswith(f"error: {url} {expected}")
        assert answer.stderr.count("\n") == 1


def test_an_endless_answer_is_cut_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(status, "ANSWER_BYTES_MAX", 100)
    with answering(b" " * 101) as (url, _):
        answer = ask("--url", url)
    assert "is no scheduler" in answer.stderr


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("http://127.0.0.1:1", "error: no scheduler answers at http://127.0.0.1:1 ([Errno "),
        ("127.0.0.1:5001", "error: 127.0.0.1:5001 is no url; write it like http://127.0.0.1:5001"),
        ("http://127.0.0.1:99999", "error: http://127.0.0.1:99999 is no url: Port out of range"),
        ("ftp://127.0.0.1", "error: ftp://127.0.0.1 is no url; write it like http"),
        ("http://127.0.0.1\n:1", r"error: no scheduler answers at http://127.0.0.1\u000a:1"),
    ],
)
def test_an_address_where_nothing_answers_is_one_clear_line(url: str, expected: str) -> None:
    answer = ask("--url", url)
    assert answer.exit_code == 1
    assert answer.stderr.startswith(expected)
    assert answer.stderr.count("\n") == 1


class _Sleeper:
    """Counts waits and ends the watch at the third."""

    def __init__(self) -> None:
        self.waits: list[float] = []

    def __call__(self, seconds: float) -> None:
        self.waits.append(seconds)
        if len(self.waits) == 3:
            raise KeyboardInterrupt


def test_watching_goes_on_until_it_is_interrupted(monkeypatch: pytest.MonkeyPatch) -> None:
    sleeper = _Sleeper()
    monkeypatch.setattr(time, "sleep", sleeper)
    with answering(b'{"replicas": []}') as (url, answers):
        answer = ask("--url", url, "--json", "--watch", "--interval", "7")
    assert answer.exit_code == 0
    assert answer.output == '{"replicas":[]}\n' * 3 + "\n"
    assert sleeper.waits == [7, 7, 7]
    assert len(answers.seen) == 3


def test_watching_through_a_pipe_tells_each_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(time, "sleep", _Sleeper())
    with answering(b'{"replicas": []}') as (url, _):
        answer = ask("--url", url, "--watch")
    assert answer.output.count("no held turns") == 3


def test_watching_survives_a_scheduler_that_is_away(monkeypatch: pytest.MonkeyPatch) -> None:
    sleeper = _Sleeper()
    monkeypatch.setattr(time, "sleep", sleeper)
    answer = ask("--url", "http://127.0.0.1:1", "--watch")
    assert answer.exit_code == 0
    assert len(sleeper.waits) == 3
    assert "no scheduler answers" in answer.output
