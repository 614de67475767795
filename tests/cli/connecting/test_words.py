"""Variables and commands as a shell takes them."""

import subprocess

from luftpause.cli.connecting.steps import Variables
from luftpause.cli.connecting.words import command_line, exports


def test_a_shell_reads_back_what_was_meant() -> None:
    odd = 'it\'s "$HOME" `id` \\ \n&'
    script = "\n".join([*exports(Variables(values={"A": odd}, from_env={"B": "A"})), 'printf "%s|%s" "$A" "$B"'])
    assert subprocess.run(["sh", "-c", script], capture_output=True, text=True, check=True).stdout == f"{odd}|{odd}"


def test_a_variable_in_a_command_stays_one_word() -> None:
    script = f"K='a b'; {command_line(('printf', '%s.', '$K', 'c d'))}"
    assert subprocess.run(["sh", "-c", script], capture_output=True, text=True, check=True).stdout == "a b.c d."
