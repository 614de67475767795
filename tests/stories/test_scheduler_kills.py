"""The scheduler is killed again and again in a flood of runs: none of them notices more than a wait."""

import json
import random
import threading
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from stories.programs import launch, running
from stories.raw_wire import Engine, ask, soon, status, whole
from stories.set_ups import MODEL, free_port, replicas, write

AGENTS = 50
SLOTS = 8
TURN_S = 0.1
"""How long an engine takes for a turn."""
TURN_S_MAX = 60.0


def reply(body: bytes) -> bytes:
    """Ask for one more tool call, unless the last message says that it is enough."""
    last = json.loads(body)["messages"][-1]
    threading.Event().wait(TURN_S)
    message: dict[str, object] = {"role": "assistant", "content": "done"}
    if last["content"] != "enough":
        call = {"id": f"call-{last['content']}", "type": "function", "function": {"name": "look", "arguments": "{}"}}
        message = {"role": "assistant", "content": None, "tool_calls": [call]}
    finish = "tool_calls" if "tool_calls" in message else "stop"
    choices = [{"index": 0, "message": message, "finish_reason": finish}]
    return whole(json.dumps({"choices": choices}).encode())


@dataclass
class Agent:
    """One conversation without a run header: only the tool calls that it echoes tell whose turn it is."""

    number: int
    enough: threading.Event
    messages: list[dict[str, object]] = field(default_factory=list)
    runs: list[str] = field(default_factory=list)
    turns: list[str] = field(default_factory=list)
    trouble: list[object] = field(default_factory=list)

    def live(self, door: str) -> None:
        self.messages.append({"role": "user", "content": f"{self.number}.0"})
        while not self.trouble and self.messages[-1]["content"] != "enough":
            self.turn(door)
        if not self.trouble:
            self.ask(door)

    def turn(self, door: str) -> None:
        """Take a turn and do what it asks for; the tool takes no time, and the result names the next turn."""
        message = self.ask(door)
        if message is None:
            return
        self.messages.append(message)
        calls = message["tool_calls"]
        assert isinstance(calls, list)
        said = "enough" if self.enough.is_set() else f"{self.number}.{len(self.messages)}"
        self.messages.append({"role": "tool", "tool_call_id": calls[0]["id"], "content": said})

    def ask(self, door: str) -> dict[str, object] | None:
        self.turns.append(f"{self.number}: {self.messages[-1]['content']}")
        body = json.dumps({"model": MODEL, "user": str(self.number), "messages": self.messages}).encode()
        answer = ask(door, body, "x-luftpause-class: batch", within_s=TURN_S_MAX)
        self.runs.append(answer.headers.get("x-luftpause-run-id", ""))
        if answer.status != 200:
            self.trouble.append((answer.status, answer.body[:300]))
            return None
        message: dict[str, object] = json.loads(answer.body)["choices"][0]["message"]
        return message


def seen(*engines: Engine) -> Counter[str]:
    """Return how often each turn reached an engine."""
    bodies = [json.loads(body) for engine in engines for body in engine.bodies]
    return Counter(f"{body['user']}: {body['messages'][-1]['content']}" for body in bodies)


def survive(tmp_path: Path, kills: int) -> None:
    """Kill the scheduler so many times in the middle of a flood; every run must end as if nothing had happened."""
    dice = random.Random(kills)
    link, http = free_port(), free_port()
    with Engine(reply=reply, load=(SLOTS, 1)) as one, Engine(reply=reply, load=(SLOTS, 1)) as two:
        ports = f"[scheduler]\nport = {link}\nhttp_port = {http}\nprobe_period = '200ms'\n[dataplane]\nport = 0\n"
        config = write(tmp_path, replicas(one.url, two.url), ports)
        scheduler = launch(tmp_path, "scheduler", "scheduler", "--config", config)
        try:
            with running(tmp_path, "dataplane", "dataplane", "--config", config) as door:
                enough = threading.Event()
                agents = [Agent(number, enough) for number in range(AGENTS)]
                threads = [threading.Thread(target=agent.live, args=(door.url("dataplane"),)) for agent in agents]
                for thread in threads:
                    thread.start()
                for _ in range(kills):
                    goal = len(one.bodies) + len(two.bodies) + dice.randrange(1, 60)
                    assert soon(lambda goal=goal: len(one.bodies) + len(two.bodies) >= goal, TURN_S_MAX)  # type: ignore[misc]
                    scheduler.kill()
                    scheduler = launch(tmp_path, "scheduler", "scheduler", "--config", config)
                enough.set()
                for thread in threads:
                    thread.join(TURN_S_MAX)
                assert not any(thread.is_alive() for thread in threads), "a run never ended"
                assert [agent.trouble for agent in agents if agent.trouble] == []
                asked = Counter(turn for agent in agents for turn in agent.turns)
                assert seen(one, two) == asked, "a turn was lost, or run twice"
                assert set(asked.values()) == {1}
                assert [len(set(agent.runs)) for agent in agents] == [1] * AGENTS, "a run was not recognised"
                assert len({agent.runs[0] for agent in agents}) == AGENTS
                url = f"http://127.0.0.1:{http}"
                assert soon(lambda: not any(replica["in_flight"] for replica in status(url)["replicas"]))
                assert status(url)["held"] == []
        finally:
            scheduler.kill()


@pytest.mark.timeout(120)
def test_runs_survive_five_kills_of_the_scheduler(tmp_path: Path) -> None:
    survive(tmp_path, kills=5)


@pytest.mark.nightly
@pytest.mark.timeout(600)
def test_runs_survive_fifty_kills_of_the_scheduler(tmp_path: Path) -> None:
    survive(tmp_path, kills=50)
