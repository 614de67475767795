"""The options that make the scheduler write down what it decides, with real processes."""

import json
from pathlib import Path

import pytest

from adapters.event_log.logs import event_log, write
from luftpause.adapters.event_log.replaying import replay
from stories.programs import running
from stories.raw_wire import Engine, ask, chat_body, soon, status
from stories.set_ups import FREE_PORTS, MODEL, free_port
from stories.set_ups import replicas as declared
from stories.set_ups import write as configured
from testkit.commands import finished

pytestmark = pytest.mark.slow


def test_a_scheduler_of_its_own_logs_what_it_decides_and_proves_it(tmp_path: Path) -> None:
    log = tmp_path / "events.log"
    write(event_log(log), seed=1, length=0)
    with Engine() as engine:
        ports = f"[scheduler]\nport = {free_port()}\nhttp_port = 0\n[dataplane]\nport = 0\n"
        config = configured(tmp_path, declared(engine.url), ports)
        options = ("--config", config, "--event-log", str(log), "--validate")
        with (
            running(tmp_path, "scheduler", "scheduler", *options) as scheduler,
            running(tmp_path, "dataplane", "dataplane", "--config", config) as door,
        ):
            assert ask(door.url("dataplane"), chat_body("a secret prompt")).status == 200
            url = scheduler.url("scheduler")
            assert soon(lambda: not any(each["in_flight"] for each in status(url)["replicas"])), (
                "the door says so later"
            )
            assert scheduler.interrupt() == 0
            assert "state_unsound" not in scheduler.output.read_text()
    with log.open("rb") as lines:
        seen = replay(lines)
    assert (seen.segments, seen.open, seen.placed, seen.torn) == (2, 0, 1, 0)
    assert b"secret prompt" not in log.read_bytes()
    assert json.loads(log.read_bytes().splitlines()[-1])["line"] == "end"


def test_a_log_that_cannot_be_written_is_one_line_and_exit_code_1(tmp_path: Path) -> None:
    free = ("--port", "0", "--http-port", "0")
    ended = finished("scheduler", *free, "--event-log", str(tmp_path / "no" / "log"))
    assert ended.returncode == 1
    assert "error: --event-log: cannot write" in ended.stderr
    assert "Traceback" not in ended.stderr


def test_a_real_log_says_what_another_policy_would_have_done(tmp_path: Path) -> None:
    log = tmp_path / "events.log"
    engine_options = ("--port", "0", "--model", MODEL, "--speedup", "5")
    with running(tmp_path, "engine", "fake-engine", *engine_options) as engine:
        config = configured(tmp_path, declared(engine.url("engine")), FREE_PORTS)
        with running(tmp_path, "up", "up", "--config", config, "--event-log", str(log)) as up:
            load = ("--agents", "6", "--runs", "12", "--tool-s", "0.05", "--base-url", f"{up.url('dataplane')}/v1")
            assert finished("loadgen", *load).returncode == 0
            assert up.interrupt() == 0
    told = finished("replay", str(log), "--policy", "sglang-router", "--json", "-")
    assert told.returncode == 0, told.stderr
    report = json.loads(told.stdout)
    assert (report["trace"]["whole_runs"], report["trace"]["estimated_turns"]) == (12, 0)
    assert {"step_s", "prefill_tps"} <= set(report["engines"][0]["fitted"])
    assert report["run_time_error"] is not None
    assert report["columns"]["what-if"]["unfinished_runs"] == 0
