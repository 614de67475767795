"""`luftpause completion`."""

import pytest
from click.testing import CliRunner

from luftpause.cli.main import main


@pytest.mark.parametrize(
    ("shell", "expected"),
    [
        ("bash", "complete -o nosort"),
        ("zsh", "#compdef luftpause"),
        ("fish", "complete --no-files --command luftpause"),
    ],
)
def test_the_script_of_each_shell_is_printed(shell: str, expected: str) -> None:
    answer = CliRunner().invoke(main, ["completion", shell])
    assert answer.exit_code == 0, answer.output
    assert expected in answer.output
    assert "_LUFTPAUSE_COMPLETE" in answer.output


def test_another_shell_is_refused() -> None:
    answer = CliRunner().invoke(main, ["completion", "csh"])
    assert answer.exit_code == 2
    assert "'csh' is not one of 'bash', 'zsh', 'fish'" in answer.output
