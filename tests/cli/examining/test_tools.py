from pathlib import Path

from cli.examining.subjects import graded, told
from luftpause.cli.examining import tools
from luftpause.cli.examining.findings import Grade
from stories.set_ups import TOOLS

SOUND = TOOLS.replace("DELAY", "0")
DEAD = '[[tools]]\nname = "dead"\ncommand = ["${python}", "-c", "raise SystemExit(3)"]\n'
ABSENT = '[[tools]]\nname = "absent"\ncommand = ["no-such-program", "--flag"]\n'
AWAY = '[[tools]]\nname = "away"\nurl = "http://127.0.0.1:1/mcp"\n'
SILENT = '[[tools]]\nname = "silent"\ncommand = ["sleep", "60"]\n'


def test_a_server_that_lists_its_tools_is_fine_whatever_the_others_do(tmp_path: Path) -> None:
    found = told(tmp_path, SOUND + DEAD + ABSENT + AWAY, tools.examined)
    assert [each.seen for each in graded(found, Grade.OK)] == ["fake lists lookup, deep_search"]
    errors = graded(found, Grade.ERROR)
    assert [each.seen.partition(":")[0] for each in errors] == ["dead", "absent", "away"]
    assert errors[1].mend.startswith("run it by hand: no-such-program --flag;")
    assert "http://127.0.0.1:1/mcp" in errors[2].mend


def test_a_slow_one_is_not_waited_for(tmp_path: Path) -> None:
    (found,) = told(tmp_path, SILENT, tools.examined, look_s=0.3)
    assert found.grade is Grade.WARNING
    assert "did not answer in time (0.3 s; the MCP door gives it 30 s)" in found.seen


def test_without_any_it_says_so(tmp_path: Path) -> None:
    (found,) = told(tmp_path, "", tools.examined)
    assert found.grade is Grade.NOTE
