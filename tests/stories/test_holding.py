"""Who waits, and for how long, at an engine that is busy or says it is."""

import json
import threading
from pathlib import Path

import pytest

from stories.programs import Program, running
from stories.raw_wire import Engine, ask, chat_body, soon, status, whole
from stories.set_ups import FREE_PORTS, launched_engines, replicas, write

pytestmark = pytest.mark.timeout(120)
SPARE = launched_engines(instances=1).replace('"fake"', '"spare"', 1)


def loads(up: Program) -> list[object]:
    return [replica["load"] for replica in status(up.url("scheduler"))["replicas"]]


def held(up: Program) -> int:
    return sum(int(str(entry["count"])) for entry in status(up.url("scheduler"))["held"])


def test_at_an_engine_of_one_slot_a_caller_does_not_wait_for_the_whole_flood_of_another(tmp_path: Path) -> None:
    """Seed 003: one caller's flood cannot starve another's."""
    first_may_end, order = threading.Event(), []

    def reply(body: bytes) -> bytes:
        caller = str(json.loads(body)["messages"][0]["content"])
        order.append(caller)
        if caller == "first":
            first_may_end.wait(30)
        return whole()

    with Engine(reply=reply, load=(1, 1)) as engine:
        config = write(tmp_path, FREE_PORTS, replicas(engine.url), SPARE)
        with running(tmp_path, "up", "up", "--config", config) as up:
            assert soon(lambda: {"running": 1, "waiting": 1} in loads(up))
            threads = []

            def start(caller: str) -> None:
                turn = threading.Thread(
                    target=ask,
                    args=(up.url("dataplane"), chat_body(caller), f"x-luftpause-caller: {caller}"),
                    kwargs={"within_s": 30.0},
                )
                turn.start()
                threads.append(turn)

            start("first")
            assert soon(lambda: order == ["first"])
            for _ in range(10):
                start("flood")
            assert soon(lambda: held(up) == 10)
            start("other")
            assert soon(lambda: held(up) == 11)
            first_may_end.set()
            for thread in threads:
                thread.join(30)
    assert order.index("other") <= 3, order


def test_an_engine_that_runs_nothing_gets_a_turn_although_it_reports_a_queue(tmp_path: Path) -> None:
    """A cap of none would hold turns for ever, and the sample may have caught one request on its way in."""
    with Engine(load=(0, 1)) as engine:
        config = write(tmp_path, FREE_PORTS, replicas(engine.url), SPARE)
        with running(tmp_path, "up", "up", "--config", config) as up:
            assert soon(lambda: {"running": 0, "waiting": 1} in loads(up))
            answer = ask(up.url("dataplane"), chat_body(), within_s=8.0)
            assert answer.status == 200, "the turn was held, though the engine runs nothing"
