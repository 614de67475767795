import json

from clients.case import MODEL
from clients.plans import Plan

Call = tuple[str, dict[str, object]]
TOOLS = ["mcp__lp__spawn", "mcp__lp__await", "mcp__lp__run", "spawn_agent"]
HANDLES = [f"run_{letter * 22}" for letter in "ba"]


def said(plan: Plan, *messages: dict[str, object], tools: list[str] = TOOLS) -> list[Call]:
    """Return the calls of an answer."""
    offered = [{"type": "function", "function": {"name": name}} for name in tools]
    body = json.dumps({"model": "planner", "messages": messages, "tools": offered}).encode()
    chunks = [json.loads(line[6:]) for line in plan.reply(body).split(b"\n") if line.startswith(b"data: {")]
    calls = chunks[0]["choices"][0]["delta"].get("tool_calls") or []
    return [(call["function"]["name"], json.loads(call["function"]["arguments"])) for call in calls]


def called(*results: str) -> list[dict[str, object]]:
    told: list[dict[str, object]] = [{"role": "tool", "content": each} for each in results]
    return [{"role": "assistant", "tool_calls": [{}]}, *told]


def test_at_once_it_spawns_all_and_awaits_them_together() -> None:
    plan = Plan(2, at_once=True)
    spawned = said(plan)
    assert [name for name, _ in spawned] == ["mcp__lp__spawn"] * 2
    assert [arguments["model"] for _, arguments in spawned] == [MODEL] * 2
    told = called(*(json.dumps({"handle": handle}) for handle in HANDLES))
    assert said(plan, *told) == [("mcp__lp__await", {"handles": sorted(HANDLES), "timeout": 60})]
    assert said(plan, *told, *called("done")) == []
    assert len(plan.asked_at) == 3


def test_one_after_another_it_runs_each() -> None:
    plan = Plan(2, at_once=False)
    first, second = said(plan), said(plan, *called("one"))
    assert [name for name, _ in first + second] == ["mcp__lp__run"] * 2
    assert first != second
    assert said(plan, *called("one"), *called("two")) == []


def test_a_side_question_is_no_part_of_the_plan() -> None:
    plan = Plan(2, at_once=True)
    assert said(plan, tools=[]) == []
    assert plan.asked_at == []
