"""A service runs until a signal stops it."""

import asyncio
import gc
import os
import signal
import subprocess
import sys
import textwrap

import pytest

from luftpause.cli.failures import CommandFailedError
from luftpause.cli.serve import run_service

WAIT_S = 20

SERVICE = """
import asyncio, sys
from luftpause.cli.serve import run_service

async def main(stop: asyncio.Event) -> None:
    print("loop", type(asyncio.get_running_loop()).__module__, flush=True)
    await stop.wait()
    print("draining", flush=True)
    {drain}
    print("drained", flush=True)

sys.exit(run_service(main))
"""


def start(drain: str) -> subprocess.Popen[str]:
    source = textwrap.dedent(SERVICE).format(drain=drain)
    return subprocess.Popen(
        [sys.executable, "-c", source], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, bufsize=1
    )


def line(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline().strip()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_the_first_signal_asks_it_to_drain(number: signal.Signals) -> None:
    with start("await asyncio.sleep(0)") as process:
        assert line(process).startswith("loop ")
        process.send_signal(number)
        out, err = process.communicate(timeout=WAIT_S)
    assert (process.returncode, out, err) == (0, "draining\ndrained\n", "stopping; once more to abort\n")


def test_under_nohup_a_closed_terminal_changes_nothing() -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)  # inherited by the child, as from nohup
    try:
        with start("await asyncio.sleep(0)") as process:
            line(process)
            process.send_signal(signal.SIGHUP)
            process.send_signal(signal.SIGTERM)
            _, err = process.communicate(timeout=WAIT_S)
    finally:
        signal.signal(signal.SIGHUP, before)
    assert (process.returncode, err) == (0, "stopping; once more to abort\n")


def test_a_signal_ends_it_although_nobody_reads_its_errors_any_more() -> None:
    with start("await asyncio.sleep(0)") as process:
        line(process)
        assert process.stderr is not None
        process.stderr.close()
        process.send_signal(signal.SIGTERM)
        assert process.wait(WAIT_S) == 0


def test_the_second_signal_aborts() -> None:
    with start("await asyncio.Event().wait()") as process:
        line(process)
        process.send_signal(signal.SIGINT)
        assert line(process) == "draining"
        process.send_signal(signal.SIGTERM)
        out, err = process.communicate(timeout=WAIT_S)
    assert (process.returncode, out) == (1, "")
    assert err.endswith("error: stopped before everything had drained\n")


def test_the_third_signal_kills_what_does_not_even_abort() -> None:
    stubborn = """
    while True:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            print("stubborn", flush=True)
    """
    with start(stubborn.strip()) as process:
        line(process)
        process.send_signal(signal.SIGTERM)
        assert line(process) == "draining"
        process.send_signal(signal.SIGTERM)
        assert line(process) == "stubborn"
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=WAIT_S)
    assert process.returncode == -signal.SIGTERM


def test_it_runs_on_uvloop_where_that_exists() -> None:
    pytest.importorskip("uvloop")
    with start("pass") as process:
        assert line(process) == "loop uvloop"
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=WAIT_S)


def test_it_runs_on_the_standard_loop_elsewhere(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[str] = []

    async def main(_: asyncio.Event) -> None:
        seen.append(type(asyncio.get_running_loop()).__module__.partition(".")[0])

    monkeypatch.setitem(sys.modules, "uvloop", None)
    assert run_service(main) == 0
    assert seen == ["asyncio"]


def test_a_service_that_ends_by_itself_is_fine_and_leaves_signals_as_they_were() -> None:
    before = [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)]

    async def main(_: asyncio.Event) -> None:
        await asyncio.sleep(0)

    assert run_service(main) == 0
    assert [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)] == before


def test_what_a_person_can_mend_is_one_line_and_an_exit_code(capsys: pytest.CaptureFixture[str]) -> None:
    async def main(_: asyncio.Event) -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(fail())

    async def fail() -> None:
        raise CommandFailedError("the disk is full")

    assert run_service(main) == 1
    assert capsys.readouterr().err == "error: the disk is full\n"


@pytest.mark.skipif(sys.version_info >= (3, 14), reason="collects in small steps by itself")
def test_collecting_what_is_young_never_looks_at_so_much_that_the_loop_stands_still() -> None:
    looked_at: list[int] = []

    def look(phase: str, told: dict[str, int]) -> None:
        if phase == "start" and told["generation"] < 2:
            looked_at.append(sum(len(gc.get_objects(young)) for young in range(told["generation"] + 1)))

    async def main(_stop: asyncio.Event) -> None:
        gc.collect()
        gc.callbacks.append(look)
        kept = [[number] for number in range(500_000)]
        gc.callbacks.remove(look)
        assert len(kept) == 500_000

    usual = gc.get_threshold()
    try:
        assert run_service(main) == 0
    finally:
        gc.set_threshold(*usual)
    assert len(looked_at) > 20
    assert max(looked_at) <= 45_000


def test_a_bug_is_raised() -> None:
    async def main(_: asyncio.Event) -> None:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        run_service(main)


def test_a_cancellation_that_nobody_asked_for_is_not_taken_for_an_end() -> None:
    async def main(_: asyncio.Event) -> None:
        raise asyncio.CancelledError

    with pytest.raises(asyncio.CancelledError):
        run_service(main)


def test_a_signal_in_this_very_process_stops_it(capsys: pytest.CaptureFixture[str]) -> None:
    async def main(stop: asyncio.Event) -> None:
        os.kill(os.getpid(), signal.SIGTERM)
        async with asyncio.timeout(WAIT_S):
            await stop.wait()

    assert run_service(main) == 0
    assert "stopping" in capsys.readouterr().err
