"""Every command takes a file that cannot be for a mistake, at once and by its name."""

from collections.abc import Iterator
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from luftpause.cli.failures import CommandFailedError
from luftpause.cli.files import OutputFile, write
from luftpause.cli.main import main

NEEDED = {
    "bench": ("w1",),
    "config import": ("llama-swap", "x"),
    "models load": ("m",),
    "models logs": ("m",),
    "models pin": ("m",),
    "models unload": ("m",),
    "models unpin": ("m",),
    "connect": ("codex",),
    "replay": (__file__, "--policy", "working-set"),
    "loadgen": ("--agents", "1"),
    "completion": ("bash",),
}
"""What a command wants besides."""


def commands(group: click.Command = main, path: str = "") -> Iterator[tuple[str, click.Command]]:
    if not isinstance(group, click.Group):
        yield path.strip(), group
        return
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None
        yield from commands(command, f"{path} {name}")


FILE_OPTIONS = [
    (path, option)
    for path, command in commands()
    for option in command.params
    if isinstance(option, click.Option)
    and not option.is_flag
    and (isinstance(option.type, click.Path | OutputFile) or option.metavar in ("FILE", "PATH"))
]
OUTPUTS = [(path, option) for path, option in FILE_OPTIONS if isinstance(option.type, OutputFile)]


def names(cases: list[tuple[str, click.Option]]) -> list[str]:
    return [f"{path} {option.opts[0]}" for path, option in cases]


def refused(path: str, option: click.Option, value: str) -> str:
    """Run a command with a file that cannot be, and return what it said of it."""
    answer = CliRunner().invoke(main, [*path.split(), *NEEDED.get(path, ()), option.opts[-1], value])
    assert answer.exit_code == 2, answer.output
    return answer.output


@pytest.mark.parametrize(("path", "option"), FILE_OPTIONS, ids=names(FILE_OPTIONS))
def test_an_empty_name_is_no_file(path: str, option: click.Option) -> None:
    said = refused(path, option, "")
    assert f"'{option.opts[-1]}': it is empty" in said or "no such scenario" in said


@pytest.mark.parametrize(("path", "option"), OUTPUTS, ids=names(OUTPUTS))
@pytest.mark.parametrize("value", [".", "nowhere/file", "/dev/null/file"])
def test_where_nothing_can_be_written_no_work_begins(path: str, option: click.Option, value: str) -> None:
    said = refused(path, option, value)
    assert f"cannot write '{value}'" in said or f"'{value}' is a directory" in said


def test_there_are_such_commands() -> None:
    assert {path for path, _ in OUTPUTS} == {"bench", "sim", "replay", "loadgen", "trace export"}


def test_trying_a_file_changes_nothing(tmp_path: Path) -> None:
    old, new = tmp_path / "old", tmp_path / "new"
    old.write_text("kept", encoding="utf-8")
    for file in (old, new):
        assert OutputFile().convert(str(file), None, None) == str(file)
    assert old.read_text(encoding="utf-8") == "kept"
    assert not new.exists()


def test_a_disk_that_is_full_is_named() -> None:
    with pytest.raises(CommandFailedError, match="/dev/full: cannot write it: No space left on device"):
        write(b"x" * 100_000, "/dev/full")
