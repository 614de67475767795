"""Odd answers of an engine must not look like a fault of ours."""

import json
from pathlib import Path

import pytest

from stories.programs import running
from stories.raw_wire import Engine, ask, chat_body, whole
from stories.set_ups import FREE_PORTS, launched_engines, replicas, write

pytestmark = pytest.mark.timeout(120)


@pytest.mark.parametrize(("line", "status"), [("304 Not Modified", 502), ("204 No Content", 204)])
def test_a_bodiless_answer_with_a_length_leaves_no_stack_trace(tmp_path: Path, line: str, status: int) -> None:
    answer_bytes = f"HTTP/1.1 {line}\r\ncontent-length: 5\r\netag: x\r\n\r\n".encode()
    with Engine(reply=lambda _: answer_bytes) as engine:
        spare = launched_engines(instances=1).replace('"fake"', '"spare"', 1)
        config = write(tmp_path, FREE_PORTS, replicas(engine.url), spare)
        with running(tmp_path, "up", "up", "--config", config) as up:
            answer = ask(up.url("dataplane"), chat_body())
            assert answer.status == status
            assert "Traceback" not in up.output.read_text()


@pytest.mark.parametrize(
    "path",
    ["/v1/chat/completions", "/v1/messages", "/v1/responses", "/v1beta/models/fake:generateContent", "/v1/embeddings"],
)
def test_an_engine_does_not_decide_which_pages_may_read_its_answer(tmp_path: Path, path: str) -> None:
    """llama-server and vLLM say so of every page; a browser reads nothing where two say so, or nobody."""
    page = "https://chat.example"
    says = whole().replace(b"\r\n", b"\r\naccess-control-allow-origin: *\r\n", 1)
    content = [{"role": "user", "content": "hi", "parts": [{"text": "hi"}]}]
    asked = {"model": "fake", "max_tokens": 9, "input": "hi", "messages": content, "contents": content}
    body = json.dumps(asked).encode()
    with Engine(reply=lambda _: says) as engine:
        declared = replicas(engine.url) + 'dialects = ["chat"]\n'
        config = write(tmp_path, FREE_PORTS.replace("port = 0", f'port = 0\nallowed_origins = ["{page}"]', 1), declared)
        with running(tmp_path, "up", "up", "--config", config) as up:
            answer = ask(up.url("dataplane"), body, f"origin: {page}", start=f"POST {path} HTTP/1.1")
    assert answer.status == 200, answer.body
    assert answer.headers["access-control-allow-origin"] == page
