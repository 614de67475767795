"""`luftpause trace export`, of a real log and of a real timeline."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

import luftpause
from cli.test_status import answering
from cli.test_trace_events import check_legal
from luftpause.adapters.event_log.writer import EventLog
from luftpause.cli.main import main
from luftpause.core.model.ids import ToolCallId, TurnId
from luftpause.core.scheduling.events import FirstTokenSeen, TurnFinished
from luftpause.services.scheduler.service import SchedulerService
from luftpause.services.scheduler.settings import SchedulerSettings
from services.scheduler.running import offer, probed, spec


@pytest.fixture(autouse=True)
def nothing_configured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("LUFTPAUSE_TOKEN", raising=False)


def export(*arguments: str) -> Result:
    return CliRunner().invoke(main, ["trace", "export", *arguments])


def recorded(path: Path, *runs: str) -> Path:
    """Have a scheduler write a log of some runs; the last one is still open when it ends."""

    async def story() -> None:
        log = EventLog(path, version=luftpause.__version__, policy="turn-admission")
        service = SchedulerService(SchedulerSettings(), (log,))
        log.start(service.state, service.now())
        service.start()
        service.add_replica(spec("a"))
        service.probed(probed("a"))
        for run in runs:
            service.admit(offer(f"turn-{run}", run=run))
            service.report(FirstTokenSeen(turn=TurnId(f"turn-{run}")))
            if run != runs[-1]:
                service.report(TurnFinished(turn=TurnId(f"turn-{run}"), tool_calls=(ToolCallId("c"),)))
        log.close()

    asyncio.run(story())
    return path


def spans(trace: dict[str, Any]) -> list[tuple[str, str]]:
    return [(event["args"]["run"], event["name"]) for event in trace["traceEvents"] if event["ph"] != "M"]


def test_a_log_becomes_a_trace_also_over_a_restart(tmp_path: Path) -> None:
    log = recorded(tmp_path / "log", "one", "two")
    recorded(log, "three", "four")
    answer = export(str(log))
    assert answer.exit_code == 0, answer.output
    trace = json.loads(answer.output)
    check_legal(trace)
    assert sorted(spans(trace)) == [
        ("four", "decode"),
        ("four", "prefill"),
        ("one", "decode"),
        ("one", "prefill"),
        ("one", "tool"),
        ("three", "decode"),
        ("three", "prefill"),
        ("three", "tool"),
        ("two", "decode"),
        ("two", "failed"),
        ("two", "prefill"),
    ], "what was open at the restart has ended there"


def test_a_running_scheduler_is_asked_for_its_timeline_and_a_file_is_written() -> None:
    told = {
        "now_ms": 900,
        "lanes": [[1, "r", "run", "interactive", "me", "m", None]],
        "changes": [[1, "prefill", 100, "a"], [1, "decode", 300, "a"]],
    }
    with answering(json.dumps(told).encode()) as (url, answers):
        answer = export("--url", url, "-o", "trace.json", "--last", "0.7")
    assert answer.exit_code == 0, answer.output
    assert answers.seen == [("/timeline", None)]
    assert "trace.json: 1 rows, 2 changes" in answer.stderr
    trace = json.loads(Path("trace.json").read_text("utf-8"))
    check_legal(trace)
    assert [(event["ts"], event["dur"]) for event in trace["traceEvents"] if event["ph"] == "X"] == [
        (0, 100_000),
        (100_000, 600_000),
    ]


@pytest.mark.parametrize(
    ("body", "code", "said"),
    [
        (b"{}", 200, "no timeline"),
        (b"[", 200, "no timeline"),
        (b"", 404, "is no scheduler: GET /timeline answered 404"),
    ],
)
def test_an_odd_answer_is_one_clear_line(body: bytes, code: int, said: str) -> None:
    with answering(body, code) as (url, _):
        answer = export("--url", url)
    assert (answer.exit_code, answer.stderr.count("\n"), said in answer.stderr) == (1, 1, True)


def test_a_file_that_is_no_log_is_one_clear_line(tmp_path: Path) -> None:
    odd = tmp_path / "odd"
    odd.write_text("{}\n")
    answer = export(str(odd))
    assert (answer.exit_code, answer.stderr.count("\n"), "odd: " in answer.stderr) == (1, 1, True)
