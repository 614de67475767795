"""Which run a request belongs to, at a real `luftpause up`, for harnesses that send no header of ours."""

import json
import urllib.request
from collections.abc import Iterator

import pytest

from stories.programs import Program, running
from stories.set_ups import FREE_PORTS, MODEL, launched_engines, tools, write

pytestmark = pytest.mark.timeout(120)

Message = dict[str, object]


@pytest.fixture(scope="module")
def up(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Program]:
    directory = tmp_path_factory.mktemp("identity")
    config = write(directory, FREE_PORTS, launched_engines("--speedup", "10"), tools(0.05))
    with running(directory, "up", "up", "--config", config) as program:
        yield program


def ask(up: Program, messages: list[Message], *, stream: bool = False, **headers: str) -> tuple[str, str]:
    """Return the run and the text of an answer. Underscores in names of headers stand for hyphens."""
    body = json.dumps({"model": MODEL, "messages": messages, "stream": stream}).encode()
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    request = urllib.request.Request(
        up.url("dataplane") + "/v1/chat/completions", body, {"content-type": "application/json", **named}
    )
    with urllib.request.urlopen(request, timeout=30) as answer:
        raw = answer.read()
        run = answer.headers["x-luftpause-run-id"]
    if not stream:
        return run, json.loads(raw)["choices"][0]["message"]["content"]
    chunks = [json.loads(line[6:]) for line in raw.split(b"\n") if line.startswith(b"data: {")]
    return run, "".join(
        choice["delta"].get("content") or "" for chunk in chunks for choice in chunk["choices"] if choice.get("delta")
    )


def user(text: str) -> Message:
    return {"role": "user", "content": text}


@pytest.mark.parametrize("stream", [False, True])
def test_a_chat_without_tools_or_headers_stays_one_run(up: Program, stream: bool) -> None:
    talk = [user(f"Tell me something, {stream}.")]
    first, text = ask(up, talk, stream=stream)
    talk += [{"role": "assistant", "content": text}, user("And more?")]
    second, more = ask(up, talk, stream=stream)
    parts: Message = {"role": "assistant", "content": [{"type": "text", "text": more}]}
    third, _ = ask(up, [*talk, parts, user("Go on.")], stream=stream)
    assert first == second == third


def test_two_conversations_that_begin_alike_stay_apart(up: Program) -> None:
    talk = [user("The same question from two twins.")]
    first, text = ask(up, talk)
    second, again = ask(up, talk)
    assert first != second
    assert text != again, "two replicas with seeds of their own answered"
    assert ask(up, [*talk, {"role": "assistant", "content": text}, user("Who am I?")])[0] == first
    assert ask(up, [*talk, {"role": "assistant", "content": again}, user("Who am I?")])[0] == second


def test_another_caller_with_the_same_history_is_another_run(up: Program) -> None:
    talk = [user("A shared prompt.")]
    first, text = ask(up, talk, x_luftpause_caller="a")
    second, _ = ask(up, [*talk, {"role": "assistant", "content": text}, user("?")], x_luftpause_caller="b")
    assert first != second


def test_a_harness_session_is_a_run_and_its_sub_agents_are_others(up: Program) -> None:
    main = {"x_claude_code_session_id": "s-1"}
    first, _ = ask(up, [user("one")], **main)
    child, _ = ask(up, [user("two")], **main, x_claude_code_agent_id="a-1")
    assert ask(up, [user("three")], **main)[0] == first
    assert ask(up, [user("four")], **main, x_claude_code_agent_id="a-1")[0] == child != first


def test_codex_threads_are_told_apart_although_they_share_session_and_cache_key(up: Program) -> None:
    shared = {"session_id": "s", "x_codex_window_id": "w"}
    parent, _ = ask(up, [user("one")], **shared, thread_id="t-1")
    child, _ = ask(up, [user("one")], **shared, thread_id="t-2", x_codex_parent_thread_id="t-1")
    assert parent != child
    assert ask(up, [user("two")], **shared, thread_id="t-1")[0] == parent


def test_our_own_header_is_believed_before_the_harness(up: Program) -> None:
    assert ask(up, [user("one")], x_session_id="ses_9", x_luftpause_run_id="mine")[0] == "mine"
    assert ask(up, [user("two")], x_session_id="ses_9")[0] == "mine"
