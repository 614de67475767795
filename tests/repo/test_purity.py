"""Cores decide by values alone: what would let a clock, a file, a global or the order of hashes decide is not there.

The import contracts in pyproject.toml forbid modules by name; here is what else a core could reach.
"""

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from repo.sources import name_of, python_files, tree_of

CORE = python_files("src/luftpause/core")
PROOFS = {"invariants", "soundness"}
SCHEDULING = tuple(
    path for path in CORE if path.parent.name in {"scheduling", "residency", "working_set"} and path.stem not in PROOFS
)

MODULES = {
    "abc",
    "binascii",
    "bisect",
    "collections",
    "collections.abc",
    "dataclasses",
    "enum",
    "functools",
    "hashlib",
    "heapq",
    "immutables",
    "itertools",
    "json",
    "math",
    "msgspec",
    "msgspec.structs",
    "operator",
    "re",
    "string",
    "types",
    "typing",
}
"""All that a core may import besides `luftpause.core`: nothing of it knows a clock, a file or chance."""

NAMES = {
    "__builtins__",
    "__import__",
    "breakpoint",
    "cache",
    "cached_property",
    "compile",
    "delattr",
    "eval",
    "exec",
    "globals",
    "hash",
    "id",
    "input",
    "locals",
    "lru_cache",
    "open",
    "print",
    "setattr",
    "vars",
}
"""Ways out of a value: to the world, to a module's insides, to a place in memory, to what was computed before."""

ATTRIBUTES = {"__builtins__", "__code__", "__dict__", "__globals__", "__import__", "__loader__", "__subclasses__"}

CACHES = {"functools.cache", "functools.cached_property", "functools.lru_cache"}

WRITES = {"add", "append", "appendleft", "clear", "discard", "extend", "insert", "pop", "popitem", "setdefault"}

UNORDERED = {"all", "any", "frozenset", "len", "max", "min", "set", "sorted", "sum"}
"""Whoever gets things one by one and gives the same whatever their order, unless a key makes equals of them."""

REASONED = {
    "caller_view.py: standings.of.items()": "ranked by how many turns each has, and by name",
    "draft.py: self._stirred.items()": "a dict, in the order in which they were stirred first",
    "joining.py: declared.values()": "a dict, in the order of the catalogue",
    "joining.py: draft.held.values()": "they are counted, and stand in order of arrival",
    "joining.py: draft.residency.models.values()": "sorted by whoever gets the list",
    "joining.py: draft.runs.values()": "they are counted",
    "joining.py: event.devices": "a tuple",
    "joining.py: strays.values()": "a dict, in the order in which the launcher told them",
    "lanes.py: held.items()": "sorted by name, or the least is taken",
    "lanes.py: turns.items()": "sorted by name, or the least is taken",
    "parking.py: held.items()": "a dict, in the order of the slots",
    "reports.py: draft.residency.models.values()": "each is marked for itself",
    "review.py: holds.items()": "a dict of models in order of declaration",
    "review.py: holds.values()": "the least is taken",
    "review.py: residency.models.values()": "sorted by when they were declared",
    "room.py: residency.models.values()": "they are summed up, sorted, or the least is taken",
    "services.py: residency.models.items()": "a set is made of them",
    "services.py: residency.models.values()": "sorted by when they were declared",
    "view.py: residency.models.values()": "they are summed up",
    "view.py: state.residency.models.values()": "sorted by when they were declared",
    "fairness.py: self._openings.items()": "a dict of two classes, in fair order",
    "tool_history.py: of_tool.items()": "they are added up by bucket, as whole numbers",
    "tool_history.py: self.out.items()": "a dict of tools; who shows them ranks them, by name at last",
    "tool_history.py: self.out.get(tool, _NOBODY).items()": "sorted by steps, of which each is there once",
    "view.py: lanes.items()": "they are counted, and the least is taken",
    "view.py: state.lanes.values()": "they are counted, and the least is taken",
    "view.py: state.replicas.values()": "sorted by when they were declared, and no two were at once",
    "view.py: state.queue_bits.items()": "they are counted, and the least is taken",
}
"""Where the scheduling core goes through a map one by one, and why the order in which it does cannot matter."""

MAPS_WALKED = {"items", "keys", "values"}


def impure_imports(tree: ast.Module) -> Iterator[ast.stmt]:
    for node in ast.walk(tree):
        names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        if isinstance(node, ast.ImportFrom):
            names = [node.module or ""]
        for name in names:
            if name not in MODULES and not name.startswith("luftpause.core"):
                assert isinstance(node, ast.stmt)
                yield node


def ways_out(tree: ast.Module) -> Iterator[ast.expr | ast.stmt]:
    for node in ast.walk(tree):
        match node:
            case ast.Name(id=name, ctx=ast.Load()) if name in NAMES:
                yield node
            case ast.Attribute(attr=name) if name in ATTRIBUTES or ast.unparse(node) in CACHES:
                yield node
            case ast.ImportFrom(names=names) if any(alias.name in NAMES for alias in names):
                yield node
            case _:
                pass


def writes_to_globals(tree: ast.Module) -> Iterator[ast.expr]:
    """Yield where a function changes what a module holds."""
    held = {target.id for node in tree.body for target in _targets(node) if isinstance(target, ast.Name)}
    functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.Lambda)]
    for node in (inner for function in functions for inner in ast.walk(function)):
        match node:
            case ast.Subscript(value=ast.Name(id=name), ctx=ast.Store() | ast.Del()) if name in held:
                yield node
            case ast.Attribute(value=ast.Name(id=name), ctx=ast.Store() | ast.Del()) if name in held:
                yield node
            case ast.Attribute(value=ast.Name(id=name), attr=attribute) if name in held and attribute in WRITES:
                yield node
            case ast.Call(func=ast.Name(id="next"), args=[ast.Name(id=name), *_]) if name in held:
                yield node
            case _:
                pass


def _targets(node: ast.stmt) -> list[ast.expr]:
    if isinstance(node, ast.Assign):
        return node.targets
    return [node.target] if isinstance(node, ast.AnnAssign) else []


@cache
def map_fields() -> frozenset[str]:
    """Return the names of all fields of the scheduling core that hold a map."""
    return frozenset(
        node.target.id
        for path in SCHEDULING
        for node in ast.walk(tree_of(path))
        if isinstance(node, ast.AnnAssign)
        and isinstance(node.target, ast.Name)
        and ast.unparse(node.annotation).startswith("Map[")
    )


def walks_in_any_order(tree: ast.Module) -> Iterator[ast.expr]:
    """Yield what is gone through one by one in an order that hashes decide, unless whoever gets it does not care."""
    safe = {
        argument
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and ast.unparse(node.func) in UNORDERED and not node.keywords
        for argument in node.args
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.For):
            walked: list[ast.expr] = [node.iter]
        elif isinstance(node, ast.ListComp | ast.GeneratorExp | ast.DictComp) and node not in safe:
            walked = [generator.iter for generator in node.generators]
        elif isinstance(node, ast.Starred):
            walked = [node.value]
        elif isinstance(node, ast.Call) and ast.unparse(node.func) not in UNORDERED:
            walked = [argument for argument in node.args if _is_walk(argument)]
        elif isinstance(node, ast.Call) and node.keywords:
            walked = node.args
        else:
            continue
        yield from (each for each in walked if _is_walk(each) or _is_map(each) or _is_set(each))


def _is_walk(node: ast.expr) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in MAPS_WALKED


def _is_map(node: ast.expr) -> bool:
    return isinstance(node, ast.Attribute) and node.attr in map_fields() and ast.unparse(node) not in NO_MAPS


def _is_set(node: ast.expr) -> bool:
    return isinstance(node, ast.Set | ast.SetComp) or (
        isinstance(node, ast.Call) and ast.unparse(node.func) in ("set", "frozenset")
    )


NO_MAPS = {"event.turns", "event.runs", "run.turns", "run.held"}
"""Fields that are named like a map of the state, and are tuples."""


@pytest.mark.parametrize("path", CORE, ids=name_of)
def test_a_core_reaches_nothing_but_values(path: Path) -> None:
    tree = tree_of(path)
    found = [*impure_imports(tree), *ways_out(tree), *writes_to_globals(tree)]
    assert [f"{name_of(path)}:{node.lineno} {ast.unparse(node)}" for node in found] == []


def test_the_order_of_hashes_decides_nothing() -> None:
    found = {f"{path.name}: {ast.unparse(node)}" for path in SCHEDULING for node in walks_in_any_order(tree_of(path))}
    assert sorted(found - REASONED.keys()) == [], "sort it, or say in REASONED why its order cannot matter"
    assert sorted(REASONED.keys() - found) == [], "gone: take these out of REASONED"


@pytest.mark.parametrize(
    "source",
    [
        "import time",
        "from os import environ",
        "import importlib",
        "from random import choice",
        "import sys",
        "from functools import lru_cache",
        "import functools\n@functools.cache\ndef f(): ...",
        "def f(): return open('x')",
        "def f(): print(1)",
        "def f(a): return id(a)",
        "def f(a): return sorted(a, key=hash)",
        "def f(): return __import__('time').time()",
        "def f(a): return a.__globals__",
        "SEEN = {}\ndef f(a): SEEN[a] = 1",
        "SEEN: list[int] = []\ndef f(a): SEEN.append(a)",
        "NUMBERS = count()\ndef f(): return next(NUMBERS)",
    ],
)
def test_what_is_impure_is_found(source: str) -> None:
    tree = ast.parse(source)
    assert [*impure_imports(tree), *ways_out(tree), *writes_to_globals(tree)]


@pytest.mark.parametrize(
    "source",
    [
        "for run in state.runs: ...",
        "for run in state.runs.values(): ...",
        "for name in {1, 2}: ...",
        "for name in set(names): ...",
        "first = next(iter(state.held.values()))",
        "names = [name for name in state.held]",
        "names = tuple(state.runs.keys())",
        "least = min(state.held.values(), key=place)",
        "names = (*state.replicas,)",
    ],
)
def test_a_walk_in_the_order_of_hashes_is_found(source: str) -> None:
    assert list(walks_in_any_order(ast.parse(source)))


@pytest.mark.parametrize(
    "source",
    ["names = sorted(state.runs)", "least = min(state.held)", "all_of = sorted(a for a in state.held.values())"],
)
def test_whoever_does_not_care_for_the_order_may_walk(source: str) -> None:
    assert not list(walks_in_any_order(ast.parse(source)))
