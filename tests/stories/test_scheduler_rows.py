"""What the scheduler promises, row by row, seen from outside: affinity, classes, models, health, and what it shows."""

import json
import subprocess
import sys
import threading
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from stories.programs import Program, running
from stories.raw_wire import WAIT_S, Answer, Engine, ask, chat_body, soon, status, whole
from stories.set_ups import FREE_PORTS, write

pytestmark = pytest.mark.timeout(120)
QUICK = ("--set", "scheduler.probe_period=100ms")
ILL = b"HTTP/1.1 503 Service Unavailable\r\ncontent-length: 0\r\n\r\n"
TOOL_CALL = {"id": "call_1", "type": "function", "function": {"name": "look", "arguments": "{}"}}


def wants_a_tool() -> bytes:
    message = {"role": "assistant", "content": None, "tool_calls": [TOOL_CALL]}
    return json.dumps({"choices": [{"index": 0, "message": message, "finish_reason": "tool_calls"}]}).encode()


@dataclass
class Bench(Engine):
    """Answers "tool" with a tool call, holds what begins with "stay" until it is let go, notes what it was asked.

    Without `reports` a look at its load gets no answer yet.
    """

    seen: list[str] = field(default_factory=list)
    ill: bool = False
    gates: dict[str, threading.Event] = field(default_factory=dict)
    reports: threading.Event = field(default_factory=threading.Event)

    def __post_init__(self) -> None:
        self.reply = self._reply
        self.get = self._get
        self.reports.set()
        super().__post_init__()

    def _get(self, head: bytes) -> bytes | None:
        if b" /metrics " in head:
            self.reports.wait(30)
        return ILL if self.ill and b" /health " in head else None

    def gate(self, text: str) -> threading.Event:
        return self.gates.setdefault(text, threading.Event())

    def _reply(self, body: bytes) -> bytes:
        text = str(json.loads(body)["messages"][0]["content"])
        self.seen.append(text)
        if text.startswith("stay"):
            self.gate(text).wait(30)
        return whole(wants_a_tool()) if text.startswith("tool") else whole()


@dataclass
class Turn:
    """A request under way."""

    answers: list[Answer] = field(default_factory=list)
    thread: threading.Thread | None = None

    def answer(self) -> Answer:
        assert self.thread is not None
        self.thread.join(WAIT_S)
        [answer] = self.answers
        return answer


def send(up: Program, text: str, run: str, *lines: str, model: str = "m", within_s: float = 30.0) -> Turn:
    turn = Turn()

    def work() -> None:
        headers = (f"x-luftpause-run-id: {run}", *lines)
        turn.answers.append(ask(up.url("dataplane"), chat_body(text, model), *headers, within_s=within_s))

    turn.thread = threading.Thread(target=work)
    turn.thread.start()
    return turn


def take(up: Program, text: str, run: str, *lines: str, model: str = "m") -> Answer:
    return send(up, text, run, *lines, model=model).answer()


def declare(*engines: tuple[str, str, str]) -> str:
    return "".join(
        f'\n[[replicas]]\nname = "{name}"\nurl = "{url}"\nmodels = ["{model}"]\ndialects = ["chat"]\n'
        for name, url, model in engines
    )


def rows(up: Program, table: str) -> list[dict[str, object]]:
    return status(up.url("scheduler"))[table]


def replica(up: Program, name: str) -> dict[str, object]:
    [found] = [each for each in rows(up, "replicas") if each["name"] == name]
    return found


def all_healthy(up: Program) -> bool:
    return all(each["healthy"] for each in rows(up, "replicas"))


BATCH = "x-luftpause-class: batch"


def test_a_paused_run_goes_home_although_another_replica_has_room_and_an_idle_one_may_move(tmp_path: Path) -> None:
    engines = {"a": Bench(), "b": Bench()}
    config = write(tmp_path, FREE_PORTS, declare(*((name, engine.url, "m") for name, engine in engines.items())))
    with running(tmp_path, "up", "up", "--config", config, *QUICK) as up:
        assert soon(lambda: all_healthy(up))
        assert take(up, "tool first", "paused").status == 200
        home, other = ("a", "b") if engines["a"].seen else ("b", "a")
        assert take(up, "idle first", "idle").status == 200
        stayers = [send(up, f"stay {number}", f"busy-{number}") for number in range(2)]
        assert soon(lambda: [replica(up, name)["in_flight"] for name in "ab"] == [1, 1])
        [elsewhere] = [text for text in engines[other].seen if text.startswith("stay")]
        engines[other].gate(elsewhere).set()
        assert soon(lambda: replica(up, other)["in_flight"] == 0)

        assert take(up, "tool second", "paused").status == 200
        assert "tool second" in engines[home].seen, "it left the replica that holds its prefix"
        assert take(up, "idle second", "idle").status == 200
        assert "idle second" in engines[other].seen, "an idle run goes where fewest turns are"

        engines[home].ill = True
        assert soon(lambda: replica(up, home)["healthy"] is False)
        assert take(up, "tool third", "paused").status == 200
        assert "tool third" in engines[other].seen, "its home is ill"
        for engine in engines.values():
            for gate in engine.gates.values():
                gate.set()
        assert [turn.answer().status for turn in stayers] == [200, 200]


def test_batch_leaves_room_for_a_paused_interactive_run_and_interactive_goes_first(tmp_path: Path) -> None:
    engine = Bench(load=(0, 0))
    with engine:
        config = write(tmp_path, FREE_PORTS, declare(("a", engine.url, "m")))
        with running(tmp_path, "up", "up", "--config", config, *QUICK, "--set", "scheduler.probe_timeout=30s") as up:
            fillers = [send(up, f"stay filler {number}", f"f{number}") for number in range(3)]
            assert soon(lambda: len(engine.seen) == 3)
            engine.load = (2, 1)
            assert soon(lambda: replica(up, "a")["capacity"] == 2)
            engine.reports.clear()  # what it said of these three stands
            for number in range(3):
                engine.gate(f"stay filler {number}").set()
            assert [filler.answer().status for filler in fillers] == [200] * 3
            assert take(up, "tool", "mine", "x-luftpause-caller: me").status == 200
            assert replica(up, "a")["kept_for_paused"] == 1
            first = send(up, "stay batch 1", "b1", BATCH, "x-luftpause-caller: flood")
            assert soon(lambda: "stay batch 1" in engine.seen)
            second = send(up, "batch 2", "b2", BATCH, "x-luftpause-caller: flood")
            assert soon(lambda: len(rows(up, "held")) == 1)
            [held] = rows(up, "held")
            assert (held["class"], held["caller"], held["count"]) == ("batch", "flood", 1)
            assert held["reason"] == "room on a is kept for 1 interactive run paused on a tool"
            back = send(up, "stay mine", "mine", "x-luftpause-caller: me")
            assert soon(lambda: "stay mine" in engine.seen), "the room was kept for this one"

            late = send(up, "late", "late", "x-luftpause-caller: you")
            assert soon(lambda: len(rows(up, "held")) == 2)
            first_row, second_row = rows(up, "held")
            assert (first_row["class"], first_row["caller"]) == ("interactive", "you"), "shown as they will go out"
            assert (second_row["class"], second_row["caller"]) == ("batch", "flood")
            assert first_row["reason"] == "waiting for room: a runs 2 of 2"
            assert (replica(up, "a")["in_flight"], replica(up, "a")["state"]) == (2, "full")
            assert float(str(second_row["oldest_s"])) >= float(str(first_row["oldest_s"]))
            phases = {(row["phase"], row["class"]): row["count"] for row in rows(up, "runs")}
            assert phases[("generating", "interactive")] == 1
            assert phases[("generating", "batch")] == 1
            told = subprocess.run(
                [sys.executable, "-m", "luftpause", "status", "--url", up.url("scheduler")],
                capture_output=True,
                text=True,
                timeout=60,
                check=False,
            )
            assert told.returncode == 0, told.stderr
            for word in ("flood", "you", "batch", "interactive", "generating"):
                assert word in told.stdout, told.stdout
            assert ask(up.url("scheduler"), start="GET / HTTP/1.1").status == 200

            engine.gate("stay batch 1").set()
            assert [turn.answer().status for turn in (first, late)] == [200, 200]
            engine.gate("stay mine").set()
            assert [turn.answer().status for turn in (back, second)] == [200, 200]
            engine.reports.set()
            assert engine.seen.index("late") < engine.seen.index("batch 2")
            assert soon(lambda: rows(up, "held") == [])


def test_a_turn_goes_only_where_its_model_is_and_an_unknown_model_is_told_at_once(tmp_path: Path) -> None:
    engines = {"small": Bench(), "large": Bench()}
    config = write(tmp_path, FREE_PORTS, declare(*((name, engine.url, name) for name, engine in engines.items())))
    with running(tmp_path, "up", "up", "--config", config) as up:
        assert soon(lambda: all_healthy(up))
        for number in range(4):
            assert take(up, f"{number}", f"r{number}", model="small").status == 200
        assert (len(engines["small"].seen), engines["large"].seen) == (4, [])
        unknown = take(up, "x", "run-x", model="huge")
        assert unknown.status == 404
        assert "no Generative replica serves model 'huge'" in json.loads(unknown.body)["error"]["message"]
        assert unknown.headers["x-luftpause-run-id"] == "run-x"
        listed = json.loads(ask(up.url("dataplane"), start="GET /v1/models HTTP/1.1").body)["data"]
        assert [model["id"] for model in listed] == ["large", "small"]


def test_an_ill_replica_gets_no_turns_and_a_held_turn_goes_once_it_is_well(tmp_path: Path) -> None:
    engine = Bench()
    with engine:
        config = write(tmp_path, FREE_PORTS, declare(("a", engine.url, "m")))
        with running(tmp_path, "up", "up", "--config", config, *QUICK) as up:
            assert soon(lambda: all_healthy(up))
            engine.ill = True
            assert soon(lambda: replica(up, "a")["state"] == "down")
            assert replica(up, "a")["why"] == "HTTP 503 from /health"
            turn = send(up, "waits", "r1")
            gone = send(up, "leaves", "r2", within_s=0.5)
            assert soon(lambda: [row["count"] for row in rows(up, "held")] == [2])
            assert "HTTP 503 from /health" in str(rows(up, "held")[0]["reason"])
            assert gone.answer().status == 0
            assert soon(lambda: [row["count"] for row in rows(up, "held")] == [1]), "its client left"
            assert engine.seen == []
            engine.ill = False
            assert turn.answer().status == 200
            assert engine.seen == ["waits"]


def test_an_engine_that_went_away_is_a_502_until_the_probe_sees_it(tmp_path: Path) -> None:
    engine = Bench()
    with engine:
        config = write(tmp_path, FREE_PORTS, declare(("a", engine.url, "m")))
        with running(tmp_path, "up", "up", "--config", config, "--set", "scheduler.probe_period=1h") as up:
            assert soon(lambda: all_healthy(up))
            engine.stop()
            answer = take(up, "x", "run-x")
            assert answer.status == 502
            assert json.loads(answer.body)["error"]["message"].startswith("engine a: connection refused by 127.0.0.1:")
            assert answer.headers["x-luftpause-run-id"] == "run-x"
            assert replica(up, "a")["in_flight"] == 0
            assert {(row["phase"], row["count"]) for row in rows(up, "runs")} == {("idle", 1)}
