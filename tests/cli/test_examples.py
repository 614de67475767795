"""Each command's help: every line of it whole, and examples that the command itself understands."""

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from luftpause.cli.main import main


def commands(group: click.Group, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    ctx = click.Context(group)
    for name in group.list_commands(ctx):
        command = group.get_command(ctx, name)
        assert command is not None
        if isinstance(command, click.Group):
            yield from commands(command, (*path, name))
        elif not command.hidden:
            yield (*path, name)


ALL = list(commands(main))


def found(path: tuple[str, ...]) -> click.Command:
    command: click.Command | None = main
    for name in path:
        assert isinstance(command, click.Group)
        command = command.get_command(click.Context(command), name)
    assert command is not None
    return command


def helped(path: tuple[str, ...]) -> str:
    parent: click.Context | None = None
    for end in range(len(path) + 1):
        parent = click.Context(found(path[:end]), info_name=path[end - 1] if end else "luftpause", parent=parent)
    assert parent is not None
    return parent.get_help()


@pytest.mark.parametrize("path", ALL, ids=" ".join)
def test_its_examples_are_taken_by_its_own_parser(
    path: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("ev.log", "config.yaml", "my.toml", "luftpause.toml"):
        (tmp_path / name).touch()
    typed = re.findall(r"luftpause (?:\S| (?! ))+", helped(path).partition("Examples:\n")[2])
    assert typed, "help without an example"
    for line in typed:
        words = shlex.split(re.split(r"\)| > | \| ", line)[0])[1:]
        assert tuple(words[: len(path)]) == path, line
        found(path).make_context(path[-1], words[len(path) :])


@pytest.mark.parametrize(
    "path", dict.fromkeys([(), *(path[:1] for path in ALL), *ALL]), ids=lambda path: "-".join(path) or "all"
)
def test_each_line_is_whole_and_fits_a_terminal(path: tuple[str, ...]) -> None:
    said = helped(path)
    assert [
        line
        for line in said.splitlines()
        if len(line) > 80 or (line.endswith("...") and not line.startswith("Usage:")) or "\\b" in line
    ] == []
