"""Says a module's value classes in words that mypyc makes fast, before it is compiled. The sources stay as they are.

mypyc leaves the constructor, comparison and hash of a dataclass to the standard library, in Python, and named tuples
and structs to their metaclasses. Here each becomes a plain class whose methods are written out, line by line:

| in the source                  | compiled                                                                          |
| ------------------------------ | --------------------------------------------------------------------------------- |
| `@dataclass(...)`              | methods written out; still a dataclass to `fields`, `replace` and msgspec          |
| a generic dataclass            | the same                                                                           |
| `class X(NamedTuple)`          | methods written out; no tuple any more: it unpacks, but has no index and no order  |
| `class X(Struct, frozen=True)` | methods written out; a dataclass to `fields`, `replace` and msgspec                |
| `class X(Struct)`              | left to msgspec, which reads its annotations as they were written                  |

Of each of these classes, and of others with slots, one object that is gone is kept to become the next: allocating and
freeing one costs more than filling it.

Whatever is in none of these forms is an error, so nothing changes its meaning unnoticed. Inserted lines come with a
table of where each line of the source went, for tracebacks.
"""

import ast
import io
import re
import tokenize
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

_IMPORTS = (
    "from collections.abc import Iterator as _Iterator; "
    "from typing import TYPE_CHECKING as _CHECKING, Any as _Any, Final as _Final, cast as _cast"
)
_PRELUDE = (
    "if _CHECKING:\n",
    "    from mypy_extensions import mypyc_attr as _mypyc_attr\n",
    "_KEPT: _Final = object()\n",
    "_dataclasses: _Any = __import__('dataclasses')\n",  # not as mypy sees it: there `field` returns a default
)


_PLACE = re.compile(r"\{[^{}]*\}")
"""A place in a formatted string that is filled in."""


class UnfitSourceError(Exception):
    """A class is in a form that nobody has thought about here. The message names it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Field:
    """One member of a value class, in the words of the source. `default` and `factory` are empty without one."""

    name: str
    type: str
    default: str
    factory: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ValueClass:
    """What a class's head says. `kept` is the decorator that stays, empty for none."""

    node: ast.ClassDef
    frozen: bool
    kw_only: bool
    unpacks: bool
    kept: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Rewritten:
    """A module for mypyc. `origin[n]` is the line of the source that line `n` belongs to; both count from 1."""

    text: str
    origin: list[int]


def rewrite(source: str, *, acyclic: bool) -> Rewritten:
    """Return a module with its value classes written out.

    Args:
        source: the module.
        acyclic: whether nothing that its frozen classes hold leads back to them, so that no cycle of references goes
            through them and the collector need not look at them.

    Raises:
        UnfitSourceError: it has a value class that cannot be written out as things stand.
    """
    source = _with_own_names(source)
    tree = ast.parse(source)
    pieces: list[list[str]] = [[line] for line in source.splitlines(keepends=True)]
    found = False
    for node in tree.body:
        if isinstance(node, ast.ClassDef):
            value = _value_class(node)
            if value is not None:
                found = True
                _write_out(pieces, value, acyclic=acyclic)
            elif _bases(node) == ["Struct"] or _bases(node) == ["msgspec.Struct"]:
                _keep_annotations(pieces, node)
            elif _is_made_often(node):
                found = True
                pieces[node.lineno - 1].insert(0, "@_mypyc_attr(free_list_len=1)\n")
    if found:
        first = next(each for each in tree.body if isinstance(each, ast.Import | ast.ImportFrom))
        at = (first.end_lineno or first.lineno) - 1
        pieces[at] = [pieces[at][0].rstrip("\n") + f"; {_IMPORTS}\n", *_PRELUDE]
    lines = [(line, number) for number, piece in enumerate(pieces, 1) for line in piece]
    return Rewritten(text="".join(line for line, _ in lines), origin=[0, *(number for _, number in lines)])


def _with_own_names(source: str) -> str:
    """Return a module in which no two handlers of exceptions share a name: to mypyc it has one type for all of them."""
    handlers = [each for each in ast.walk(ast.parse(source)) if isinstance(each, ast.ExceptHandler) and each.name]
    lines = source.splitlines(keepends=True)
    tokens = list(tokenize.generate_tokens(io.StringIO(source).readline))
    changes: dict[tuple[int, int, int], str] = {}
    for number, handler in enumerate(sorted(handlers, key=lambda each: each.lineno)):
        name, last = str(handler.name), handler.end_lineno or handler.lineno
        for before, token, after in zip(tokens, tokens[1:], tokens[2:], strict=False):
            if not handler.lineno <= token.start[0] <= last:
                continue
            place = token.start[0], token.start[1], token.end[1]
            if token.type == tokenize.NAME and token.string == name and before.string != "." and after.string != "=":
                changes[place] = f"{name}_{number}"
            elif token.type == tokenize.STRING and "f" in token.string.partition('"')[0].lower():
                changes[place] = _PLACE.sub(partial(_renamed, name, f"{name}_{number}"), token.string)
    for (line, start, end), text in sorted(changes.items(), reverse=True):
        lines[line - 1] = lines[line - 1][:start] + text + lines[line - 1][end:]
    return "".join(lines)


def _renamed(old: str, new: str, place: re.Match[str]) -> str:
    return re.sub(rf"\b{old}\b", new, place[0])


def _value_class(node: ast.ClassDef) -> ValueClass | None:
    bases = _bases(node)
    decorators = [each for each in node.decorator_list if _name(each) == "dataclass"]
    if decorators:
        flags = _flags(node, decorators[0].keywords if isinstance(decorators[0], ast.Call) else [])
        if any(not base.startswith("Generic[") for base in bases) or len(node.decorator_list) > 1:
            raise UnfitSourceError(f"dataclass {node.name} has bases or other decorators")
        kept = ["frozen=True"] * flags["frozen"] + ["kw_only=True"] * flags["kw_only"]
        return ValueClass(
            node=node,
            frozen=flags["frozen"],
            kw_only=flags["kw_only"],
            unpacks=False,
            kept="" if bases else f"@dataclass({', '.join(['init=False', *kept])})",
        )
    if bases == ["NamedTuple"]:
        return ValueClass(node=node, frozen=True, kw_only=False, unpacks=True, kept="")
    if bases in (["Struct"], ["msgspec.Struct"]) and node.keywords:
        flags = _flags(node, node.keywords)
        if not flags["frozen"]:
            raise UnfitSourceError(f"struct {node.name} has keywords and is not frozen")
        return ValueClass(node=node, frozen=True, kw_only=flags["kw_only"], unpacks=False, kept="")
    return None


def _flags(node: ast.ClassDef, keywords: list[ast.keyword]) -> dict[str, bool]:
    flags = {"frozen": False, "kw_only": False, "slots": True}
    for keyword in keywords:
        if keyword.arg not in flags or not isinstance(keyword.value, ast.Constant):
            raise UnfitSourceError(f"{node.name} has the keyword {keyword.arg!r}")
        flags[keyword.arg] = bool(keyword.value.value)
    return flags


def _fields(node: ast.ClassDef) -> Iterator[Field]:
    for each in node.body:
        if isinstance(each, ast.AnnAssign) and isinstance(each.target, ast.Name):
            default = factory = ""
            if isinstance(each.value, ast.Call) and _name(each.value) == "field":
                given = {keyword.arg: ast.unparse(keyword.value) for keyword in each.value.keywords}
                default, factory = given.get("default", ""), given.get("default_factory", "")
            elif each.value is not None:
                default = ast.unparse(each.value)
            yield Field(name=each.target.id, type=ast.unparse(each.annotation), default=default, factory=factory)


def _write_out(pieces: list[list[str]], value: ValueClass, *, acyclic: bool) -> None:
    node, fields = value.node, list(_fields(value.node))
    head = [f"{value.kept}\n"] if value.kept else []
    if not _generic(node):
        head.append(f"@_mypyc_attr(free_list_len=1{', acyclic=True' if acyclic and value.frozen else ''})\n")
    for decorator in node.decorator_list:
        pieces[decorator.lineno - 1] = []
    base = next((f"({base})" for base in _bases(node) if base.startswith("Generic[")), "")
    pieces[node.lineno - 1] = [*head, f"class {node.name}{base}:\n"]
    if not value.kept:
        for each in node.body:
            if isinstance(each, ast.AnnAssign) and each.value is not None:
                lines = slice(each.lineno - 1, each.end_lineno)
                written = f"    {ast.unparse(each.target)}: {ast.unparse(each.annotation)}\n"
                pieces[lines] = [[written], *([[]] * (lines.stop - lines.start - 1))]
    own = {each.name for each in node.body if isinstance(each, ast.FunctionDef)}
    made = [*_init(value, fields)]
    if not value.kept and "__eq__" not in own:
        made += _eq(node.name, fields)
    if value.unpacks:
        made += _unpacking(node.name, fields)
    if not value.kept:
        made += _repr(node.name, fields)
    after = [_annotations(node)] if value.kept or value.unpacks else [_members_as_dataclass(value, fields)]
    if value.unpacks:
        after.append(f"setattr({node.name}, '_fields', {tuple(field.name for field in fields)!r})\n")
    pieces[(node.end_lineno or node.lineno) - 1] += [*(f"    {line}\n" for line in made), *after]


def _init(value: ValueClass, fields: list[Field]) -> Iterator[str]:
    def parameter(field: Field) -> str:
        if field.factory:
            return f"{field.name}: ({field.type}) | None = None"
        return f"{field.name}: {field.type}" + (f" = {field.default}" if field.default else "")

    star = ["*"] if value.kw_only and fields else []
    yield f"def __init__({', '.join(['self', *star, *map(parameter, fields)])}) -> None:"
    for field in fields:
        made = f"{field.factory}() if {field.name} is None else {field.name}" if field.factory else field.name
        yield f"    self.{field.name} = {made}  # type: ignore"
    if not fields:
        yield "    pass"


def _eq(name: str, fields: list[Field]) -> Iterator[str]:
    """Compare as tuples do: of members that are one object nothing more is asked."""
    others = "".join(f"other.{field.name}, " for field in fields)
    yield "def __eq__(self, other: object) -> bool:"
    yield f"    if not isinstance(other, {name}):"
    yield "        return NotImplemented"
    yield f"    mine: _Any = ({_members(fields)})"
    yield f"    theirs: _Any = ({others})"
    yield "    return bool(mine == theirs)"
    yield "def __hash__(self) -> int:"
    yield f"    return hash(({_members(fields)}))"


def _unpacking(name: str, fields: list[Field]) -> Iterator[str]:
    changed = (
        f"self.{field.name} if {field.name} is _KEPT else _cast({field.type!r}, {field.name})" for field in fields
    )
    yield f"def _replace(self, *, {', '.join(f'{field.name}: object = _KEPT' for field in fields)}) -> '{name}':"
    yield f"    return {name}({', '.join(changed)})"
    yield "def __iter__(self) -> '_Iterator[_Any]':"
    yield f"    return iter(({_members(fields)}))"


def _repr(name: str, fields: list[Field]) -> Iterator[str]:
    yield "def __repr__(self) -> str:"
    yield f"    members = [f'{{name}}={{getattr(self, name)!r}}' for name in {[field.name for field in fields]!r}]"
    yield f"    return f\"{name}({{', '.join(members)}})\""


def _members(fields: list[Field]) -> str:
    return "".join(f"self.{field.name}, " for field in fields)


def _keep_annotations(pieces: list[list[str]], node: ast.ClassDef) -> None:
    """Let a struct be made of its names alone, then tell it its types: mypyc knows how to pass on the simplest only."""
    for each in node.body:
        if isinstance(each, ast.AnnAssign):
            if each.lineno != each.end_lineno:
                raise UnfitSourceError(f"a member of {node.name} is longer than a line")
            value = "" if each.value is None else f" = {ast.unparse(each.value)}"
            target, annotation = ast.unparse(each.target), ast.unparse(each.annotation)
            pieces[each.lineno - 1] = [f"    {target}: {annotation!r}{value}\n"]
    pieces[(node.end_lineno or node.lineno) - 1].append(_annotations(node))


def _annotations(node: ast.ClassDef) -> str:
    told = ", ".join(f"{field.name!r}: {field.type!r}" for field in _fields(node))
    return f"setattr({node.name}, '__annotations__', {{{told}}})\n"


def _members_as_dataclass(value: ValueClass, fields: list[Field]) -> str:
    """Return a line that tells of the members of a class as a dataclass would: `fields` and msgspec read it."""

    def told(field: Field) -> str:
        default = f"default_factory={field.factory.partition('[')[0]}" if field.factory else f"default={field.default}"
        return (
            f"({field.name!r}, {field.type!r}, _dataclasses.field({default if field.factory or field.default else ''}))"
        )

    made = f"_dataclasses.make_dataclass('_', [{', '.join(map(told, fields))}], kw_only=True)"
    name = value.node.name
    return (
        f"setattr({name}, '__dataclass_fields__', getattr({made}, '__dataclass_fields__')); {_annotations(value.node)}"
    )


def _generic(node: ast.ClassDef) -> bool:
    return any(base.startswith("Generic[") for base in _bases(node))


def _is_made_often(node: ast.ClassDef) -> bool:
    """Say whether a class has slots, as those have of which many objects are made, and no base that is not ours."""
    slots = any(isinstance(each, ast.Assign) and ast.unparse(each.targets[0]) == "__slots__" for each in node.body)
    return slots and all(base.isidentifier() for base in _bases(node)) and not node.decorator_list


def _bases(node: ast.ClassDef) -> list[str]:
    return [ast.unparse(base) for base in node.bases]


def _name(node: ast.expr) -> str:
    called = node.func if isinstance(node, ast.Call) else node
    return called.id if isinstance(called, ast.Name) else ""
