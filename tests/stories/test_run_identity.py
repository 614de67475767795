"""Which run a request belongs to, at a real `luftpause up`, for harnesses that send no header of ours."""

import json
import urllib.request
from collections.abc import Iterator

import pytest

from stories.programs import Program, running
from stories.set_ups import FREE_PORTS, LAUNCHER, MODEL, launched_engines, tools, write

pytestmark = pytest.mark.timeout(120)

Message = dict[str, object]
OTHER_MODEL = "other"


@pytest.fixture(scope="module")
def up(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Program]:
    directory = tmp_path_factory.mktemp("identity")
    engines = launched_engines("--speedup", "10")
    other = launched_engines("--speedup", "10", instances=1).replace(f'"{MODEL}"', f'"{OTHER_MODEL}"')
    other = other.removeprefix(LAUNCHER)
    config = write(directory, FREE_PORTS, engines, other, tools(0.05))
    with running(directory, "up", "up", "--config", config) as program:
        yield program


def ask(
    up: Program, messages: list[Message], *headers: str, stream: bool = False, model: str = MODEL
) -> tuple[str, str]:
    """Return the run and the text of an answer. Headers are lines."""
    body = json.dumps({"model": model, "messages": messages, "stream": stream}).encode()
    named = dict(header.split(": ") for header in headers)
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


def chatted(up: Program, path: str, member: str, talk: list[Message], *, stream: bool) -> tuple[str, str]:
    """Return the run and the text of an answer in Messages or Responses."""
    limit = "max_tokens" if member == "messages" else "max_output_tokens"
    body = {"model": MODEL, member: talk, "stream": stream, limit: 20}
    request = urllib.request.Request(
        up.url("dataplane") + path, json.dumps(body).encode(), {"content-type": "application/json"}
    )
    with urllib.request.urlopen(request, timeout=30) as answer:
        raw, run = answer.read(), answer.headers["x-luftpause-run-id"]
    if stream:
        events = [json.loads(line[6:]) for line in raw.split(b"\n") if line.startswith(b"data: {")]
        deltas = [event.get("delta") for event in events if "text" in event["type"] or "delta" in event["type"]]
        return run, "".join(each if isinstance(each, str) else (each or {}).get("text", "") for each in deltas)
    said = json.loads(raw)
    parts = said["content"] if member == "messages" else said["output"][0]["content"]
    return run, parts[0]["text"]


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(("path", "member"), [("/v1/messages", "messages"), ("/v1/responses", "input")])
def test_a_plain_chat_in_another_dialect_stays_one_run_too(up: Program, path: str, member: str, stream: bool) -> None:
    talk = [user(f"Tell me in {path}, {stream}.")]
    first, text = chatted(up, path, member, talk, stream=stream)
    assert text
    talk += [{"role": "assistant", "content": text}, user("And more?")]
    second, _ = chatted(up, path, member, talk, stream=stream)
    other, _ = chatted(up, path, member, [user("Something else.")], stream=stream)
    assert first == second != other


SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}}
LOOKS_UP: dict[str, Message] = {
    "/v1/chat/completions": {"type": "function", "function": {"name": "look_up", "parameters": SCHEMA}},
    "/v1/messages": {"name": "look_up", "input_schema": SCHEMA},
    "/v1/responses": {"type": "function", "name": "look_up", "parameters": SCHEMA},
}


def called(up: Program, path: str, talk: list[Message]) -> tuple[str, list[Message], list[str]]:
    """Return the run of an answer, what its client keeps of it, and the ids of its calls."""
    member = "input" if path == "/v1/responses" else "messages"
    body = {"model": MODEL, member: talk, "tools": [LOOKS_UP[path]], "max_tokens": 200}
    request = urllib.request.Request(
        up.url("dataplane") + path, json.dumps(body).encode(), {"content-type": "application/json"}
    )
    with urllib.request.urlopen(request, timeout=30) as answer:
        said, run = json.load(answer), answer.headers["x-luftpause-run-id"]
    if path == "/v1/messages":
        ids = [block["id"] for block in said["content"] if block["type"] == "tool_use"]
        return run, [{"role": "assistant", "content": said["content"]}], ids
    if path == "/v1/responses":
        return run, said["output"], [item["call_id"] for item in said["output"] if item["type"] == "function_call"]
    message = said["choices"][0]["message"]
    return run, [message], [call["id"] for call in message.get("tool_calls") or ()]


def result(path: str, call_id: str) -> Message:
    """Return what a call returned, as the next message."""
    if path == "/v1/messages":
        return {"role": "user", "content": [{"type": "tool_result", "tool_use_id": call_id, "content": "sunny"}]}
    if path == "/v1/responses":
        return {"type": "function_call_output", "call_id": call_id, "output": "sunny"}
    return {"role": "tool", "tool_call_id": call_id, "content": "sunny"}


@pytest.mark.parametrize("path", LOOKS_UP)
def test_a_client_that_makes_up_ids_of_its_own_for_calls_stays_one_run(up: Program, path: str) -> None:
    talk = [user(f"Look two things up, {path}. [tools:2] [parallel:1]")]
    runs = []
    for number in range(3):
        run, kept, ids = called(up, path, talk)
        runs.append(run)
        for call_id in ids:
            own = f"own-{path}-{number}"
            kept = [*json.loads(json.dumps(kept).replace(call_id, own)), result(path, own)]
        assert len(ids) == (number < 2)
        talk += kept
    assert len(set(runs)) == 1


def test_two_conversations_that_begin_alike_stay_apart(up: Program) -> None:
    talk = [user("The same question from two twins.")]
    runs = {text: run for run, text in (ask(up, talk), ask(up, talk))}
    if len(runs) == 2:  # replicas with seeds of their own answered: each answer tells which twin goes on
        for text, run in runs.items():
            assert ask(up, [*talk, {"role": "assistant", "content": text}, user("Who am I?")])[0] == run
    else:  # nobody can tell
        (text,) = runs
        assert ask(up, [*talk, {"role": "assistant", "content": text}, user("Who am I?")])[0] != runs[text]


def test_another_caller_with_the_same_history_is_another_run(up: Program) -> None:
    talk = [user("A shared prompt.")]
    first, text = ask(up, talk, "x-luftpause-caller: a")
    second, _ = ask(up, [*talk, {"role": "assistant", "content": text}, user("?")], "x-luftpause-caller: b")
    assert first != second


def test_a_harness_session_is_a_run_and_its_sub_agents_are_others(up: Program) -> None:
    main, agent = "x-claude-code-session-id: s-1", "x-claude-code-agent-id: a-1"
    first, _ = ask(up, [user("one")], main)
    child, _ = ask(up, [user("two")], main, agent)
    assert ask(up, [user("three")], main)[0] == first
    assert ask(up, [user("four")], main, agent)[0] == child != first


def test_codex_threads_are_told_apart_although_they_share_a_session(up: Program) -> None:
    shared = "session-id: s"
    parent, _ = ask(up, [user("one")], shared, "thread-id: t-1")
    child, _ = ask(up, [user("one")], shared, "thread-id: t-2", "x-codex-parent-thread-id: t-1")
    assert parent != child
    assert ask(up, [user("two")], shared, "thread-id: t-1")[0] == parent


def test_our_own_header_is_believed_before_the_harness(up: Program) -> None:
    assert ask(up, [user("one")], "x-session-id: ses_9", "x-luftpause-run-id: mine")[0] == "mine"
    assert ask(up, [user("two")], "x-session-id: ses_9")[0] == "mine"


def test_a_session_that_asks_another_model_besides_stays_one_run(up: Program) -> None:
    session = "x-claude-code-session-id: s-2"
    first, _ = ask(up, [user("one")], session)
    assert ask(up, [user("a title for this")], session, model=OTHER_MODEL)[0] == first
    assert ask(up, [user("two")], session)[0] == first


HEADERS = (
    "x-luftpause-run-id: ladder",
    "x-claude-code-session-id: ladder-1",
    "thread-id: ladder-2",
    "x-session-id: ladder-3",
    "session_id: ladder-4",
    "x-affinity: ladder-5",
    "x-litellm-session-id: ladder-6",
)


def test_each_key_is_believed_before_all_fainter_ones(up: Program) -> None:
    """The faintest first: a run learns every key that comes with its turns."""

    def turn(messages: list[Message], *headers: str, **more: object) -> tuple[str, Message]:
        body = json.dumps({"model": MODEL, "messages": messages, **more}).encode()
        named = dict(header.split(": ") for header in headers)
        request = urllib.request.Request(
            up.url("dataplane") + "/v1/chat/completions", body, {"content-type": "application/json", **named}
        )
        with urllib.request.urlopen(request, timeout=30) as answer:
            return answer.headers["x-luftpause-run-id"], json.loads(answer.read())["choices"][0]["message"]

    runs = [turn([user("Begin.")], header)[0] for header in HEADERS]
    calling = [user("Look. [tools:1]")]
    called, message = turn(calling, tools=[{"type": "function", "function": {"name": "look"}}])
    calls = message["tool_calls"]
    assert isinstance(calls, list)
    calling += [message, {"role": "tool", "tool_call_id": calls[0]["id"], "content": "seen"}]
    keyed, _ = turn([user("With a key.")], prompt_cache_key="ladder")
    talked, message = turn([user("Talk.")])
    talking = [user("Talk."), message, user("Go on.")]
    runs += [called, keyed, talked]
    assert len(set(runs)) == len(runs)

    assert turn(talking)[0] == talked
    assert turn(talking, prompt_cache_key="ladder")[0] == keyed
    assert turn([*calling, *talking], prompt_cache_key="ladder")[0] == called
    for at, header in reversed([*enumerate(HEADERS)]):
        assert turn([*calling, *talking], *HEADERS[at:], prompt_cache_key="ladder")[0] == runs[at], header
    assert turn([user("Nobody knows this.")])[0] not in runs
