"""docs/CONNECT.md, made from the recipes, so that it says what the command does."""

from collections.abc import Iterable

from luftpause.cli.connecting.clients import CLIENTS, Client
from luftpause.cli.connecting.merging import shown
from luftpause.cli.connecting.steps import Addresses, Advice, Command, Door, Fragment, Recipe, Step, Variables
from luftpause.cli.connecting.words import command_line, exports

_INTRODUCTION = """\
# Connect a client

<!-- Made by scripts/docs.py from src/luftpause/cli/connecting; do not edit. -->

`luftpause connect CLIENT` prints what is below with your own addresses and model. With `--write` it merges what belongs
into files into them, all or none: comments and other keys stay, a value of the same key is exchanged, and the old text
is kept in a `.bak`. Run it again when addresses, model or token change.

`--door llm` is for a client's own model calls, `--door mcp` gives it `spawn` and `await` as tools. No client has to
send a header: runs are recognised by what clients send anyway. `x-luftpause-caller` only tells whose work it is when
several share the engines.

With `LUFTPAUSE_TOKEN` set, the recipes refer to that variable; no secret is ever written into a file.

| client | model calls | spawn and await |
| --- | --- | --- |
"""
_DOCUMENTED = "by its documentation"


def _at(name: str) -> Addresses:
    return Addresses(llm="http://127.0.0.1:8080", mcp="http://127.0.0.1:7000/mcp", model="smollm2", caller=name)


def connect_page() -> str:
    """Return the page."""
    rows = [_row(name, client) for name, client in CLIENTS.items()]
    sections = [_section(name, client) for name, client in CLIENTS.items()]
    return _INTRODUCTION + "".join(rows) + "".join(sections)


def _row(name: str, client: Client) -> str:
    by_door = {recipe.door: recipe for recipe in client.recipes(_at(name))}
    cells = [_cell(by_door.get(door), client) for door in Door]
    return f"| [{client.title}](#{name}) | {cells[0]} | {cells[1]} |\n"


def _cell(recipe: Recipe | None, client: Client) -> str:
    if recipe is None:
        return f"no: {client.without}"
    return f"run with {recipe.tried}" if recipe.tried else _DOCUMENTED


def _section(name: str, client: Client) -> str:
    parts = [f"\n## {name}\n"]
    for recipe in client.recipes(_at(name)):
        what = "Model calls" if recipe.door is Door.LLM else "Spawn and await as tools"
        parts.append(f"\n{what}:\n")
        parts.extend(f"\n{block}" for step in recipe.steps for block in _blocks(step))
    return "".join(parts)


def _blocks(step: Step) -> Iterable[str]:
    match step:
        case Variables():
            yield "```sh\n" + "\n".join(exports(step)) + "\n```\n"
        case Command(argv=argv):
            yield f"```sh\n{command_line(argv)}\n```\n"
        case Fragment(path=path, format=format, content=content):
            yield f"`{path}`:\n\n```{format.value}\n{shown(content, format)}\n```\n"
        case Advice(text=text):
            yield f"{text[0].upper()}{text[1:]}.\n"
