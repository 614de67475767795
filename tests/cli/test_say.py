"""Saying something to nobody."""

import os
import subprocess
import sys


def test_it_goes_on_and_ends_well_when_its_reader_has_left() -> None:
    reader, writer = os.pipe()
    os.close(reader)
    source = (
        "import sys; from luftpause.cli.say import say; [say('x' * 5000) for _ in range(9)]; sys.stderr.write('on')"
    )
    ended = subprocess.run(
        [sys.executable, "-c", source], stdout=writer, stderr=subprocess.PIPE, text=True, timeout=30, check=False
    )
    os.close(writer)
    assert (ended.returncode, ended.stderr) == (0, "on")
