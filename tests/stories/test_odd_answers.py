"""Odd answers of an engine must not look like a fault of ours."""

from pathlib import Path

import pytest

from stories.programs import running
from stories.raw_wire import Engine, ask, chat_body
from stories.set_ups import FREE_PORTS, launched_engines, replicas, write

pytestmark = pytest.mark.timeout(120)


@pytest.mark.parametrize("line", ["304 Not Modified", "204 No Content"])
def test_a_bodiless_answer_with_a_length_is_passed_on_without_a_stack_trace(tmp_path: Path, line: str) -> None:
    answer_bytes = f"HTTP/1.1 {line}\r\ncontent-length: 5\r\netag: x\r\n\r\n".encode()
    with Engine(reply=lambda _: answer_bytes) as engine:
        spare = launched_engines(instances=1).replace('"fake"', '"spare"', 1)
        config = write(tmp_path, FREE_PORTS, replicas(engine.url), spare)
        with running(tmp_path, "up", "up", "--config", config) as up:
            answer = ask(up.url("dataplane"), chat_body())
            assert answer.status == int(line[:3])
            assert "Traceback" not in up.output.read_text()
