"""Starting and ending: signals, ready files, and outputs that nobody reads."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from stories.programs import END_S_MAX, launch
from stories.raw_wire import Engine, ask, chat_body, soon
from stories.set_ups import FREE_PORTS, launched_engines, replicas, write

pytestmark = pytest.mark.timeout(120)
LUFTPAUSE = (sys.executable, "-m", "luftpause")
SPARE = launched_engines(instances=1).replace('"fake"', '"spare"', 1)


def test_services_go_on_when_nobody_reads_their_output(tmp_path: Path) -> None:
    """As behind `luftpause up | head -1`."""
    ready = tmp_path / "ready.json"
    reader, writer = os.pipe()
    os.close(reader)
    with Engine() as engine:
        config = write(tmp_path, FREE_PORTS, replicas(engine.url), SPARE)
        with (tmp_path / "errors").open("wb") as errors:
            process = subprocess.Popen(
                [*LUFTPAUSE, "up", "--config", config, "--ready-file", str(ready)],
                cwd=tmp_path,
                stdin=subprocess.DEVNULL,
                stdout=writer,
                stderr=errors,
            )
        os.close(writer)
        try:
            assert soon(lambda: ready.exists() or process.poll() is not None, 40.0)
            assert process.poll() is None, (tmp_path / "errors").read_text()[-600:]
            assert ask(json.loads(ready.read_text())["dataplane"], chat_body()).status == 200
            process.send_signal(signal.SIGINT)
            assert process.wait(END_S_MAX) == 0
        finally:
            process.kill()
            process.wait(END_S_MAX)


def test_a_ready_file_of_an_earlier_run_is_gone_when_a_start_fails(tmp_path: Path) -> None:
    """A script that waits for the file must not take the old one for the new one."""
    ready = tmp_path / "ready.json"
    ready.write_text('{"dataplane": "http://127.0.0.1:1", "pid": 1}\n')
    with Engine() as engine:
        config = write(tmp_path, FREE_PORTS, replicas(engine.url), SPARE)
        taken = engine.url.rsplit(":", 1)[1]
        ended = subprocess.run(
            [*LUFTPAUSE, "up", "--config", config, "--ready-file", str(ready), "--dataplane-port", taken],
            cwd=tmp_path,
            capture_output=True,
            timeout=90,
            check=False,
        )
    assert ended.returncode == 1
    assert not ready.exists()


def test_a_ready_file_that_cannot_be_written_is_named_as_it_was_given_and_at_once(tmp_path: Path) -> None:
    ready = tmp_path / "no" / "such" / "ready.json"
    with Engine() as engine:
        ended = subprocess.run(
            [*LUFTPAUSE, "up", "--config", write(tmp_path, FREE_PORTS, replicas(engine.url)), "--ready-file", ready],
            cwd=tmp_path,
            capture_output=True,
            timeout=90,
            check=False,
        )
    assert ended.returncode in (1, 2)
    assert str(ready) in ended.stderr.decode()
    assert ended.stdout == b"", "no door was open before"


def test_engines_do_not_outlive_an_up_whose_terminal_closes(tmp_path: Path) -> None:
    mark = tmp_path / "engine.json"
    declared = launched_engines("--ready-file", str(mark), instances=1)
    up = launch(tmp_path, "up", "up", "--config", write(tmp_path, FREE_PORTS, declared))
    assert soon(mark.exists, 20.0)
    pids = subprocess.run(
        ["ps", "-o", "pid=", "--ppid", str(up.process.pid)], capture_output=True, text=True, check=True
    ).stdout.split()
    try:
        up.process.send_signal(signal.SIGHUP)
        up.process.wait(END_S_MAX)
        assert soon(lambda: not any(Path(f"/proc/{pid}").exists() for pid in pids))
    finally:
        for pid in pids:
            if Path(f"/proc/{pid}").exists():
                os.kill(int(pid), signal.SIGKILL)


def test_config_explain_says_nothing_when_its_reader_leaves(tmp_path: Path) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    process = subprocess.Popen(
        [*LUFTPAUSE, "config", "explain"], cwd=tmp_path, stdout=writer, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL
    )
    os.close(writer)
    _, errors = process.communicate(timeout=20)
    assert errors == b""
