"""The scheduler's HTTP door."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from luftpause import __version__
from luftpause.core.model.ids import PeerId, ReplicaId, ToolCallId, ToolName, TurnId
from luftpause.core.model.replicas import EngineKind, Load, ReplicaKind
from luftpause.core.scheduling.events import ReplicaProbed, TurnFailed, TurnFinished
from luftpause.core.scheduling.view import TOOLS_SHOWN
from luftpause.ports.scheduler import PeerSeen
from luftpause.services.scheduler.http import SchedulerHttp
from luftpause.services.scheduler.live_http import Surroundings
from luftpause.services.scheduler.service import SchedulerService
from services.scheduler.asking import Answer, ask
from services.scheduler.running import crowd, offer, run, spec, started

HOSTILE = ToolName('mcp__<b>"\n__\x1b[2J</script>')
SCHEMA = Path(__file__).parents[3] / "docs" / "status.schema.json"


def busy() -> SchedulerService:
    """A scheduler with a replica of each state, held turns and runs in every phase."""
    service = started(spec("a", "m", "n"), spec("c", "labels", kind=ReplicaKind.SINGLE_PASS))
    service.add_replica(spec("starting", "other"))
    service.admit(offer("t1", run="r1"))
    service.report(TurnFinished(turn=TurnId("t1"), tool_calls=(ToolCallId("c1"),), tools=(HOSTILE,)))
    service.admit(offer("t2", run="r2"))
    service.admit(offer("t3", run="r3"))
    service.report(TurnFinished(turn=TurnId("t3")))
    load = Load(running=1, waiting=2)
    service.probed(ReplicaProbed(replica=ReplicaId("a"), healthy=True, load=load, engine=EngineKind.VLLM))
    service.admit(offer("t4", run="r4"))
    return service


def asked(
    path: str,
    *,
    method: str = "GET",
    headers: dict[str, str] | None = None,
    make: Callable[[], SchedulerService] = busy,
) -> Answer:
    async def story() -> Answer:
        return await ask(SchedulerHttp(make()).app(), path, method=method, headers=headers)

    return run(story)


def validate(body: object) -> None:
    schema: dict[str, Any] = json.loads(SCHEMA.read_text(encoding="utf-8"))
    jsonschema.Draft202012Validator.check_schema(schema)
    jsonschema.Draft202012Validator(schema).validate(body)


def test_the_status_tells_replicas_held_turns_and_runs() -> None:
    answer = asked("/status")
    assert (answer.status, answer.headers["content-type"]) == (200, "application/json")
    assert answer.headers["cache-control"] == "no-store"
    body = answer.json()
    assert (body["version"], body["policy"]) == (__version__, "turn-admission")
    assert body["replicas"][0] == {
        "name": "a",
        "kind": "generative",
        "models": ["m", "n"],
        "engine": "vllm",
        "healthy": True,
        "state": "full",
        "in_flight": 1,
        "capacity": 1,
        "window": None,
        "kept_for_paused": 1,
        "turns_placed": 3,
        "why": "",
        "load": {"running": 1, "waiting": 2},
        "foreign": 0,
        "tokens": None,
    }
    assert [replica["state"] for replica in body["replicas"]] == ["full", "ready", "starting"]
    (held,) = body["held"]
    assert held.pop("oldest_s") >= 0
    assert held == {
        "class": "interactive",
        "caller": "anonymous",
        "count": 1,
        "expected_s": None,
        "reason": "waiting for room: a runs 1 of 1",
    }
    (caller,) = body["callers"]
    assert caller == {"principal": "anonymous", "caller": "anonymous", "in_flight": 1, "held": 1}
    assert {(row["phase"], row["count"]) for row in body["runs"]} == {("generating", 1), ("paused", 1), ("idle", 2)}
    (tool,) = body["tools"]
    assert tool.pop("p50_s") == pytest.approx(2.0, abs=0.1)
    assert 0 < tool.pop("p90_s") < tool.pop("expected_return_s") < 30
    assert tool == {"server": '<b>"\n', "tool": "\x1b[2J</script>", "returned": 0, "running": 1}


def test_a_status_is_what_its_schema_says_busy_or_empty() -> None:
    validate(asked("/status").json())
    validate(asked("/status", make=started).json())


def test_the_status_tells_who_holds_the_link_and_what_they_have_open() -> None:
    seen = (PeerSeen(peer=PeerId("p"), is_connected=True), PeerSeen(peer=PeerId("dp_gone"), is_connected=False))

    async def story() -> Answer:
        return await ask(SchedulerHttp(busy(), Surroundings(peers=lambda: seen)).app(), "/status")

    body = run(story).json()
    validate(body)
    assert body["peers"] == [
        {"name": "p", "connected": True, "open_turns": 2},
        {"name": "dp_gone", "connected": False, "open_turns": 0},
    ]


def back_and_refusing() -> SchedulerService:
    """A scheduler with a replica that came back from an outage, and one that refused a turn."""
    service = started(spec("a"), spec("b"))
    turns = [TurnId(f"t{number}") for number in range(4)]
    for turn in turns:
        service.admit(offer(turn))
    service.report(TurnFailed(turn=turns[1], cause="HTTP 429", retry_after_s=60.0))
    service.probed(ReplicaProbed(replica=ReplicaId("a"), healthy=False))
    service.probed(ReplicaProbed(replica=ReplicaId("a"), healthy=True))
    return service


def test_windows_are_told_with_what_they_came_after() -> None:
    body = asked("/status", make=back_and_refusing).json()
    validate(body)
    assert [(replica["name"], replica["capacity"], replica["window"]) for replica in body["replicas"]] == [
        ("a", 4, {"turns": 4, "after": "outage"}),
        ("b", 1, {"turns": 1, "after": "refusal"}),
    ]


def test_the_schema_is_strict_enough_to_notice_a_missing_field() -> None:
    body = asked("/status").json()
    del body["replicas"][0]["capacity"]
    with pytest.raises(jsonschema.ValidationError):
        validate(body)


def test_metrics_are_prometheus_text() -> None:
    answer = asked("/metrics")
    assert answer.headers["content-type"].startswith("text/plain; version=0.0.4")
    assert b'luftpause_in_flight_turns{replica="a"} 1.0' in answer.body


def test_tools_in_metrics_are_the_busiest_and_their_names_do_no_harm() -> None:
    def many() -> SchedulerService:
        service = busy()
        service.probed(ReplicaProbed(replica=ReplicaId("a"), healthy=True))
        for number in range(TOOLS_SHOWN + 3):
            service.admit(offer(f"n{number}", run=f"n{number}"))
            tool = ToolName(f"t{number:02}" if number else "other")
            service.report(TurnFinished(turn=TurnId(f"n{number}"), tool_calls=(ToolCallId("c"),), tools=(tool,)))
        return service

    lines = asked("/metrics", make=many).body.decode().splitlines()
    out = [line for line in lines if line.startswith("luftpause_tool_paused_runs{")]
    pauses = [line for line in lines if line.startswith("luftpause_tool_pause_seconds{")]
    assert len(out) == TOOLS_SHOWN
    assert 'luftpause_tool_paused_runs{server="",tool="t01"} 1.0' in out
    assert 'luftpause_tool_paused_runs{server="",tool="other"} 5.0' in out
    assert len(pauses) == 2 * (TOOLS_SHOWN - 1)
    hostile = [line for line in asked("/metrics").body.decode().splitlines() if "script" in line]
    assert hostile[0] == 'luftpause_tool_paused_runs{server="<b>\\"\\n",tool="\x1b[2J</script>"} 1.0'


def test_health_needs_nothing() -> None:
    assert asked("/health").json() == {"status": "ok"}


def test_unknown_paths_and_methods_are_json_errors() -> None:
    missing = asked("/nothing/<b>here")
    assert (missing.status, missing.json()["error"]["code"]) == (404, "not_found")
    assert "this is the scheduler" in missing.json()["error"]["message"]
    wrong = asked("/status", method="POST")
    assert (wrong.status, wrong.json()["error"]["code"]) == (405, "method_not_allowed")
    assert "GET" in wrong.headers["allow"]


def test_routes_of_others_stand_beside_ours() -> None:
    async def page(_: Request) -> Response:
        return PlainTextResponse("page")

    async def story() -> list[int]:
        app = SchedulerHttp(started()).app([Route("/", page)])
        return [(await ask(app, "/")).status, (await ask(app, "/status")).status]

    assert run(story) == [200, 200]


def test_the_status_of_a_thousand_held_turns_is_one_row_for_each_caller() -> None:
    def crowded() -> SchedulerService:
        service = started(spec("a"))
        crowd(service)
        for number in range(1000):
            service.admit(offer(f"t{number}"))
        return service

    body = asked("/status", make=crowded).json()
    assert [row["count"] for row in body["held"]] == [1000]
    validate(body)
