"""A pipe that outlives whoever reads it."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from luftpause.adapters.process_host.log import ProcessLog
from luftpause.adapters.process_host.output import output_of_another, output_pipe, read_all

SAYS = "import sys; sys.stdin.read(1); print('said', flush=True); sys.stdin.read(1); print('said more', flush=True)"


def read(output: int) -> tuple[str, ...]:
    log = ProcessLog(None, "m-1")
    read_all(output, log)
    return log.tail()


@pytest.mark.parametrize("named", [False, True])
def test_what_is_written_is_read_until_the_writer_is_gone(tmp_path: Path, named: bool) -> None:
    path = tmp_path / "m.out" if named else None
    if path is not None:
        os.mkfifo(path)
    output, given = output_pipe(path)
    child = subprocess.Popen([sys.executable, "-c", "print('said')"], stdout=given)
    os.close(given)
    assert read(output) == ("said",)
    assert child.wait(10) == 0


def test_a_writer_lives_on_without_a_reader_and_the_next_one_has_what_it_wrote(tmp_path: Path) -> None:
    path = tmp_path / "m.out"
    os.mkfifo(path)
    output, given = output_pipe(path)
    child = subprocess.Popen([sys.executable, "-c", SAYS], stdin=subprocess.PIPE, stdout=given)
    os.close(given)
    os.close(output)
    assert child.stdin is not None
    child.stdin.write(b"x")
    child.stdin.flush()
    next_one = output_of_another(path)
    child.stdin.write(b"x")
    child.stdin.close()
    assert read(next_one) == ("said", "said more")
    assert child.wait(10) == 0


def test_a_pipe_whose_writer_is_gone_holds_up_nobody(tmp_path: Path) -> None:
    path = tmp_path / "m.out"
    os.mkfifo(path)
    assert read(output_of_another(path)) == ()
    with pytest.raises(FileNotFoundError):
        output_pipe(tmp_path / "none")
