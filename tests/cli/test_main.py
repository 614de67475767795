"""The `luftpause` command and its table of subcommands."""

import subprocess
import sys
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from cli.program import run
from luftpause.cli.main import COMMANDS, LazyGroup, main
from luftpause.config.problems import ConfigError, Problem


def test_help_names_every_command_and_imports_none_of_them() -> None:
    script = (
        "import sys\n"
        "from luftpause.cli.main import main\n"
        "try: main(['--help'])\n"
        "except SystemExit: pass\n"
        "heavy = {'mcp', 'uvicorn', 'starlette', 'msgspec', 'rich', 'pydantic', 'asyncio', 'luftpause.cli.status'}\n"
        "print('imported:', *sorted(heavy & set(sys.modules)))\n"
    )
    answer = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=30, check=True)
    assert answer.stdout.splitlines()[-1] == "imported:"
    for name, said in COMMANDS.items():
        assert f"  {name} " in answer.stdout
        assert said in answer.stdout


@pytest.mark.parametrize("name", COMMANDS)
def test_every_name_of_the_table_is_a_command_with_help(name: str) -> None:
    answer = CliRunner().invoke(main, [name, "--help"])
    assert answer.exit_code == 0, answer.output
    assert answer.output.startswith(f"Usage: main {name}")


def test_the_version_is_told() -> None:
    answer = CliRunner().invoke(main, ["--version"], prog_name="luftpause")
    assert answer.output == "luftpause 0.1.0\n"


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("statsu", "No such command 'statsu'. Did you mean 'status'?"),
        ("fake_engine", "No such command 'fake_engine'. Did you mean 'fake-engine'?"),
        ("xyzzy", "No such command 'xyzzy'. There are: up, dataplane,"),
    ],
)
def test_a_mistyped_command_is_told_what_it_probably_meant(name: str, expected: str) -> None:
    answer = CliRunner().invoke(main, [name])
    assert answer.exit_code == 2
    assert expected in answer.output


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (("luftpause", "fake-"), ["fake-engine", "fake-mcp"]),
        (("luftpause", "--v"), ["--version"]),
        (("luftpause", "status", "--wa"), ["--watch"]),
    ],
)
def test_completion_knows_commands_and_options(words: tuple[str, ...], expected: list[str]) -> None:
    env = {"_LUFTPAUSE_COMPLETE": "bash_complete", "COMP_WORDS": " ".join(words), "COMP_CWORD": str(len(words) - 1)}
    answer = CliRunner().invoke(main, [], prog_name="luftpause", env=env, complete_var="_LUFTPAUSE_COMPLETE")
    assert [line.partition(",")[2] for line in answer.output.splitlines()] == expected


def test_completion_of_a_command_imports_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(LazyGroup, "get_command", None)
    found = main.shell_complete(click.Context(main), "s")
    assert [(item.value, item.help) for item in found] == [
        (name, COMMANDS[name]) for name in ("scheduler", "status", "sim")
    ]


def failing(error: BaseException) -> click.Command:
    @click.group(cls=LazyGroup, invoke_without_command=True)
    def group() -> None:
        raise error

    return group


def test_what_a_person_can_mend_becomes_one_line_and_an_exit_code() -> None:
    answer = CliRunner().invoke(failing(ConfigError(Problem(where="f.toml:1", what="bad\x1b"))), [])
    assert answer.exit_code == 2
    assert answer.stderr == "error: f.toml:1: bad\\u001b\n"


def test_an_interrupt_that_no_command_heeds_ends_it_quietly() -> None:
    answer = CliRunner().invoke(failing(KeyboardInterrupt()), [])
    assert (answer.exit_code, answer.output) == (130, "")


def test_a_bug_keeps_its_stack_trace() -> None:
    bug = ZeroDivisionError("bug")
    assert CliRunner().invoke(failing(bug), []).exception is bug


@pytest.mark.parametrize(
    ("arguments", "code", "expected"),
    [
        (["--version"], 0, ""),
        (["config", "check"], 0, ""),
        (["nonsense"], 2, "No such command 'nonsense'"),
        (["config", "check", "--config", "absent.toml"], 2, "error: absent.toml: cannot read it: No such file"),
        (["config", "check", "--set", "dataplane.prt=1"], 2, "error: command line: unknown key 'dataplane.prt'"),
        (["config", "check", "--set", "dataplane.port"], 2, "is not KEY=VALUE"),
        (["status", "--url", "http://127.0.0.1:1"], 1, "error: no scheduler answers at http://127.0.0.1:1"),
    ],
)
def test_the_real_program_exits_with_0_1_or_2_and_without_a_stack_trace(
    tmp_path: Path, arguments: list[str], code: int, expected: str
) -> None:
    answer = run(*arguments, cwd=tmp_path)
    assert answer.returncode == code, answer.stderr
    assert expected in answer.stderr
    assert "Traceback" not in answer.stderr


def test_a_reader_that_leaves_early_is_no_error(tmp_path: Path) -> None:
    pipe = subprocess.run(
        f"{sys.executable} -m luftpause config schema | head -n 1",
        shell=True,
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=30,
        check=True,
    )
    assert pipe.stdout == "{\n"
    assert pipe.stderr == ""
