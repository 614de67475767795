"""Real processes: groups, signals, output, environment and ports."""

import asyncio
import os
import socket
import sys
from collections.abc import AsyncIterator, Coroutine, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TypeVar

import pytest

from luftpause.adapters import process_table
from luftpause.adapters.process_host.host import LocalProcess, LocalProcessHost
from luftpause.core.processes.actions import StopSignal
from luftpause.ports.processes import CouldNotStartError, Launch, ProcessEnd
from services.launcher.launcher_world import is_alive, poll

T = TypeVar("T")

SLEEPS = "import time; print('up', flush=True); time.sleep(60)"
IGNORES_TERM = "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); " + SLEEPS
FORKS = (
    "import os, time\n"
    "if os.fork() == 0:\n"
    "    print('child', os.getpid(), flush=True)\n"
    "    time.sleep(60)\n"
    "else:\n"
    "    time.sleep(60)\n"
)
LEAVES_A_CHILD = (
    "import os, time\n"
    "heard, said = os.pipe()\n"
    "if os.fork() == 0:\n"
    "    print('child', os.getpid(), flush=True)\n"
    "    os.write(said, b'.')\n"
    "    time.sleep(60)\n"
    "os.read(heard, 1)\n"
)
ESCAPES = LEAVES_A_CHILD.replace("print(", "os.setsid(); print(")


def run(work: Coroutine[None, None, T]) -> T:
    async def bounded() -> T:
        async with asyncio.timeout(20):
            return await work

    return asyncio.run(bounded())


@asynccontextmanager
async def running(code: str, *, env: Mapping[str, str] | None = None) -> AsyncIterator[LocalProcess]:
    host = LocalProcessHost(os.environ)
    process = host.start(Launch(name="engine", argv=(sys.executable, "-c", code), env=env or {}))
    try:
        yield process
    finally:
        process.signal(StopSignal.KILL)
        await process.ended()


async def wrote(process: LocalProcess, word: str) -> str:
    """Return the line that begins with the word, once it is there."""
    await poll(lambda: any(line.startswith(word) for line in process.tail()))
    return next(line for line in process.tail() if line.startswith(word))


async def gone(pid: int) -> None:
    """Return once no process has that id, or only a zombie that waits for its parent."""
    await poll(lambda: not is_alive(pid))


def test_a_process_ends_at_the_friendly_signal() -> None:
    async def story() -> ProcessEnd:
        async with running(SLEEPS) as process:
            await wrote(process, "up")
            assert process.alive
            process.signal(StopSignal.TERM)
            end = await process.ended()
            assert not process.alive
            return end

    assert run(story()) == ProcessEnd(code=-15, tail=("up",))


def test_a_process_that_ignores_the_friendly_signal_ends_at_the_other() -> None:
    async def story() -> int | None:
        async with running(IGNORES_TERM) as process:
            await wrote(process, "up")
            process.signal(StopSignal.TERM)
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.3):
                    await process.ended()
            process.signal(StopSignal.KILL)
            return (await process.ended()).code

    assert run(story()) == -9


def test_a_signal_reaches_the_children_too() -> None:
    async def story() -> None:
        async with running(FORKS) as process:
            child = int((await wrote(process, "child")).split()[1])
            process.signal(StopSignal.TERM)
            await process.ended()
            await gone(child)

    run(story())


def test_a_child_that_outlives_its_parent_is_ended_with_it() -> None:
    async def story() -> None:
        async with running(LEAVES_A_CHILD) as process:
            child = int((await wrote(process, "child")).split()[1])
            assert (await process.ended()).code == 0
            await gone(child)

    run(story())


@pytest.mark.skipif(not process_table.is_known(), reason="only Linux tells of its processes here")
def test_a_child_that_left_the_group_is_ended_with_it() -> None:
    async def story() -> None:
        async with running(ESCAPES) as process:
            child = int((await wrote(process, "child")).split()[1])
            assert (await process.ended()).code == 0
            assert not is_alive(child)

    run(story())


def test_an_end_says_its_status_and_what_was_written_last_on_either_output() -> None:
    async def story() -> ProcessEnd:
        code = "import sys; print('loading'); sys.stdout.flush(); sys.exit('bad model')"
        async with running(code) as process:
            return await process.ended()

    assert run(story()) == ProcessEnd(code=1, tail=("loading", "bad model"))


def test_signalling_what_has_ended_does_nothing_and_its_end_can_be_asked_again() -> None:
    async def story() -> None:
        async with running("pass") as process:
            first = await process.ended()
            process.signal(StopSignal.TERM)
            process.signal(StopSignal.KILL)
            assert await process.ended() == first

    run(story())


def test_giving_up_waiting_for_an_end_does_not_lose_it() -> None:
    async def story() -> None:
        async with running(SLEEPS) as process:
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.05):
                    await process.ended()
            process.signal(StopSignal.KILL)
            assert (await process.ended()).code == -9

    run(story())


def test_a_process_sees_few_variables_no_input_and_a_session_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LUFTPAUSE_TOKEN", "secret")
    monkeypatch.setenv("RUNPOD_KEY", "secret")
    monkeypatch.setenv("LC_TIME", "C")
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    code = (
        "import os, sys; "
        "print('names', *sorted(os.environ)); "
        "print('input', repr(sys.stdin.read())); "
        "print('session', os.getsid(0) == os.getpid())"
    )

    async def story() -> tuple[str, ...]:
        async with running(code, env={"MODEL_CACHE": "/models"}) as process:
            return (await process.ended()).tail

    names, given, session = run(story())
    seen = set(names.split()[1:])
    assert {"PATH", "LC_TIME", "OMP_NUM_THREADS", "MODEL_CACHE"} <= seen
    assert not {"LUFTPAUSE_TOKEN", "RUNPOD_KEY", "PYTEST_CURRENT_TEST"} & seen
    assert (given, session) == ("input ''", "session True")


def test_no_shell_reads_the_arguments() -> None:
    async def story() -> tuple[str, ...]:
        host = LocalProcessHost(os.environ)
        argv = (sys.executable, "-c", "import sys; print(sys.argv[1])", "$(id); `id` ${port} *")
        return (await host.start(Launch(name="engine", argv=argv)).ended()).tail

    assert run(story()) == ("$(id); `id` ${port} *",)


@pytest.mark.parametrize(
    ("program", "why"),
    [
        ("/no/such/engine", "no such program"),
        ("no-such-engine", "no such program"),
        ("bad\0name", "no such program"),
        ("/", "it may not be executed"),
        (__file__, "it may not be executed"),
    ],
)
def test_a_program_that_cannot_be_run_is_an_error_that_names_it_and_why(program: str, why: str) -> None:
    async def story() -> None:
        LocalProcessHost(os.environ).start(Launch(name="engine", argv=(program,)))

    with pytest.raises(CouldNotStartError, match="cannot run") as raised:
        run(story())
    assert str(raised.value) == f"cannot run {program!r}: {why}"


@pytest.mark.parametrize("address", ["127.0.0.1", "0.0.0.0"])
def test_a_port_that_somebody_listens_on_is_refused_before_anything_starts(address: str) -> None:
    async def story(port: int) -> None:
        argv = (sys.executable, "-c", "pass")
        LocalProcessHost(os.environ).start(Launch(name="engine", argv=argv, port=port))

    with socket.create_server((address, 0)) as squatter:
        port = squatter.getsockname()[1]
        with pytest.raises(CouldNotStartError, match=f"port {port} on 127.0.0.1 is taken"):
            run(story(port))


def test_a_free_port_can_be_listened_on() -> None:
    port = LocalProcessHost(os.environ).free_port("127.0.0.1")
    with socket.create_server(("127.0.0.1", port)):
        pass


def test_the_output_is_kept_in_a_file_when_there_is_a_folder_for_it(tmp_path: Path) -> None:
    async def story() -> None:
        host = LocalProcessHost(os.environ, log_dir=tmp_path / "logs")
        argv = (sys.executable, "-c", "print('hello')")
        await host.start(Launch(name="smollm2-1", argv=argv)).ended()

    run(story())
    assert (tmp_path / "logs" / "smollm2-1.log").read_text(encoding="utf-8") == "hello\n"


def test_a_folder_for_logs_that_cannot_be_made_is_an_error_that_names_it(tmp_path: Path) -> None:
    (tmp_path / "file").touch()

    async def story() -> None:
        host = LocalProcessHost(os.environ, log_dir=tmp_path / "file" / "logs")
        host.start(Launch(name="engine", argv=(sys.executable, "-c", "pass")))

    with pytest.raises(CouldNotStartError, match="cannot keep its log"):
        run(story())


def test_a_megabyte_of_output_blocks_nothing() -> None:
    async def story() -> int | None:
        async with running("for _ in range(20000): print('x' * 70)") as process:
            return (await process.ended()).code

    assert run(story()) == 0
