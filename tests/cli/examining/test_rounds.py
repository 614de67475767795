from pathlib import Path

import pytest

from cli.examining.subjects import graded, told
from luftpause.cli.examining import journal
from luftpause.cli.examining.findings import Finding, Grade
from luftpause.cli.examining.rounds import LOOKS_MAX, rounds
from luftpause.cli.examining.subject import Subject
from stories.set_ups import FREE_PORTS

STUCK = '[[tools]]\nname = "stuck"\ncommand = ["sh", "-c", "trap : TERM; while :; do sleep 1; done"]\n'


def test_every_look_is_made(tmp_path: Path) -> None:
    found = told(tmp_path, FREE_PORTS + f'state_dir = "{tmp_path}"\n', rounds)
    assert list(dict.fromkeys(each.check for each in found)) == [
        *("ports", "access", "services", "engines", "tools", "journal", "launcher", "compiled")
    ]
    assert graded(found, Grade.ERROR) == []


def test_a_look_that_is_not_allowed_says_so_and_holds_up_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def forbidden(_: Subject) -> list[Finding]:
        raise PermissionError(13, "Permission denied", "/locked/x")

    monkeypatch.setattr(journal, "examined", forbidden)
    found = told(tmp_path, FREE_PORTS, rounds)
    (finding,) = [each for each in found if each.check == "journal"]
    assert finding.grade is Grade.ERROR
    assert "/locked/x" in finding.seen
    assert {"engines", "launcher"} <= {each.check for each in found}


def test_a_look_that_takes_too_long_holds_up_no_other(tmp_path: Path) -> None:
    found = told(tmp_path, FREE_PORTS + STUCK, rounds, look_s=0.3)
    (tools,) = [each for each in found if each.check == "tools"]
    assert tools.grade is Grade.WARNING
    assert f"not done within {LOOKS_MAX * 0.3:g} s" in tools.seen or "did not answer in time" in tools.seen
