"""The program from its first module on."""

import os
import subprocess
import sys


def test_an_interrupt_while_modules_load_ends_the_program_quietly() -> None:
    script = (
        "import os, runpy, signal, sys\n"
        "class Finder:\n"
        "    def find_spec(self, name, path, target=None):\n"
        "        if name == 'click':\n"
        "            os.kill(os.getpid(), signal.SIGINT)\n"
        "sys.meta_path.insert(0, Finder())\n"
        "runpy.run_module('luftpause', run_name='__main__')\n"
    )
    ended = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=30, check=False)
    assert (ended.returncode, ended.stdout, ended.stderr) == (130, "", "")


def test_output_that_takes_no_such_characters_has_others_instead_and_no_trace() -> None:
    command = [sys.executable, "-m", "luftpause", "bench"]
    env = {**os.environ, "PYTHONIOENCODING": "ascii", "COLUMNS": "200"}
    ended = subprocess.run(command, env=env, capture_output=True, timeout=30, check=False)
    assert (ended.returncode, ended.stderr) == (0, b"")
    assert b"interactive ? 2.5? tuned router" in ended.stdout
