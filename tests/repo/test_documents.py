"""What the documents refer to is there: files, headings, and commands that the program takes."""

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from luftpause.cli.main import COMMANDS, main

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted(
    str(path.relative_to(ROOT))
    for path in (
        *ROOT.glob("*.md"),
        *ROOT.glob("docs/*.md"),
        *ROOT.glob("docs/reference/*.md"),
        *ROOT.glob("examples/*.md"),
    )
)
WORDS = re.compile(r"luftpause ((?:[a-z][a-z-]*)(?: [^`\n#|;]*)?)")
OURS = ("ev.log", "FILE", "my.toml", "luftpause.toml", "config.yaml")


def headings(page: Path) -> set[str]:
    """Return the anchors of a page, as GitHub makes them."""
    lines = re.findall(r"^#+ (.*)$", page.read_text("utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", line.lower()).replace(" ", "-") for line in lines}


def commands(text: str) -> Iterator[str]:
    """Yield the commands of ours that a page tells to type: in blocks for a shell and in code within a line."""
    for block in re.findall(r"```sh\n(.*?)```", text, re.DOTALL):
        yield from (line for line in block.replace("\\\n", " ").splitlines() if "luftpause " in line)
    yield from re.findall(r"`((?:[\w./]+/)?luftpause [a-z][^`\n]*)`", text)


@pytest.mark.parametrize("name", PAGES)
def test_each_link_leads_somewhere(name: str) -> None:
    page = ROOT / name
    text = page.read_text("utf-8")
    found = [*re.findall(r"\]\(([^)\s]+)\)", text), *re.findall(r'(?:src|srcset|href)="([^"]+)"', text)]
    broken = []
    for link in found:
        path, _, anchor = link.partition("#")
        if re.match(r"[a-z]+:", path):
            continue
        target = (page.parent / path).resolve() if path else page
        if not target.exists() or (anchor and target.suffix == ".md" and anchor not in headings(target)):
            broken.append(link)
    assert broken == []


@pytest.mark.parametrize("name", PAGES)
def test_each_command_is_one_that_the_program_takes(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for file in OURS:
        (tmp_path / file).touch()
    wrong = []
    for typed in commands((ROOT / name).read_text("utf-8")):
        found = WORDS.search(typed)
        if found is None or found[1].split()[0] not in COMMANDS:
            continue  # a container, a folder or a sentence
        words = shlex.split(re.split(r" > | && ", re.sub(r"[][]", "", found[1]).replace("CLIENT", "claude-code"))[0])
        try:
            taken(words)
        except click.MissingParameter:
            if len(words) > 2:  # else it is only named
                wrong.append((typed, "something is missing"))
        except (click.ClickException, click.exceptions.Exit, ValueError) as problem:
            wrong.append((typed, str(problem)))
    assert wrong == []


def taken(words: list[str]) -> None:
    """Have the program's own parsers take a command."""
    command: click.Command | None = main
    while isinstance(command, click.Group) and words:
        command = command.get_command(click.Context(command), words.pop(0))
    assert command is not None, "no such command"
    if not isinstance(command, click.Group):
        command.make_context(command.name or "luftpause", words)
