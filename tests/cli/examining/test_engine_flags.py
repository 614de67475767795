import asyncio
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from cli.examining.subjects import answering, subject
from luftpause.adapters import process_table
from luftpause.cli.examining.engine_flags import flags
from luftpause.cli.examining.findings import Finding, Grade
from luftpause.core.model.ids import ModelName, ReplicaId
from luftpause.core.model.replicas import Endpoint, EngineKind, ReplicaSpec

INFO = "/get_server_info"
SERVE = (
    "import socket, sys\ns = socket.create_server(('127.0.0.1', 0))\n"
    "print(s.getsockname()[1], flush=True)\nsys.stdin.read()\n"
)


def told(folder: Path, engine: EngineKind, answers: dict[str, tuple[int, str]], url: str = "") -> list[Finding]:
    async def story() -> list[Finding]:
        async with answering(answers) as (answering_url, _), subject(folder, "") as looked_at:
            endpoint = Endpoint(url=url or answering_url)
            spec = ReplicaSpec(replica=ReplicaId("a"), endpoint=endpoint, models=(ModelName("m"),))
            return await flags(looked_at, spec, engine)

    return asyncio.run(story())


@pytest.mark.parametrize(
    ("body", "grade", "seen"),
    [
        ('{"total_slots": 4}', Grade.OK, "has 4 slots"),
        ('{"total_slots": 1}', Grade.WARNING, "has one slot"),
        ("[", Grade.NOTE, "does not tell its slots"),
    ],
)
def test_llama_cpp_tells_its_slots(tmp_path: Path, body: str, grade: Grade, seen: str) -> None:
    (found,) = told(tmp_path, EngineKind.LLAMA_CPP, {"/props": (200, body)})
    assert (found.grade, seen in found.seen) == (grade, True)


def test_sglang_tells_how_it_was_started(tmp_path: Path) -> None:
    info = {"enable_cache_report": True, "enable_priority_scheduling": True, "max_running_requests": 64}
    found = told(tmp_path, EngineKind.SGLANG, {INFO: (200, json.dumps(info))})
    assert [each.grade for each in found] == [Grade.OK] * 2
    found = told(tmp_path, EngineKind.SGLANG, {INFO: (200, "{}")})
    assert [each.mend.rpartition(" ")[2] for each in found] == ["--enable-cache-report", "--enable-priority-scheduling"]
    (found_one,) = told(tmp_path, EngineKind.SGLANG, {})
    assert "does not tell" in found_one.seen


def test_vllm_keeps_it_to_itself_and_others_are_not_asked(tmp_path: Path) -> None:
    (found,) = told(tmp_path, EngineKind.VLLM, {})
    assert "--enable-prompt-tokens-details" in found.mend
    assert told(tmp_path, EngineKind.OPENAI, {}) == []


@pytest.mark.parametrize(("value", "grade"), [("4", Grade.OK), ("1", Grade.WARNING), ("", Grade.NOTE)])
def test_ollamas_environment_is_looked_at_where_it_can_be(tmp_path: Path, value: str, grade: Grade) -> None:
    if not process_table.is_known():
        pytest.skip("only Linux tells of its processes here")
    env = {**os.environ, "OLLAMA_NUM_PARALLEL": value}
    with subprocess.Popen(
        [sys.executable, "-c", SERVE], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=env
    ) as process:
        assert process.stdout is not None
        port = int(process.stdout.readline())
        (found,) = told(tmp_path, EngineKind.OLLAMA, {}, f"http://127.0.0.1:{port}")
        process.communicate()
    assert found.grade is grade
    assert told(tmp_path, EngineKind.OLLAMA, {}, "http://10.0.0.1:11434")[0].grade is Grade.NOTE
