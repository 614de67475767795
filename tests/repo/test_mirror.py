"""The tests mirror the sources: whoever opens a module knows where its tests are."""

import ast
from functools import cache
from pathlib import Path

from repo.sources import ROOT, name_of, python_files, tree_of

SOURCE = ROOT / "src/luftpause"

EXEMPT: frozenset[str] = frozenset(
    {
        "src/luftpause/adapters/clock_system.py",
        "src/luftpause/adapters/journal_file/writer.py",
        "src/luftpause/adapters/link/admissions.py",
        "src/luftpause/adapters/link/direct.py",
        "src/luftpause/adapters/link/requests.py",
        "src/luftpause/adapters/turns_http/served_models.py",
        "src/luftpause/assembly/all_in_one.py",
        "src/luftpause/assembly/split.py",
        "src/luftpause/cli/dataplane.py",
        "src/luftpause/cli/runtime.py",
        "src/luftpause/cli/scheduler.py",
        "src/luftpause/cli/up.py",
        "src/luftpause/core/scheduling/placing.py",
        "src/luftpause/core/scheduling/turns.py",
        "src/luftpause/services/runtime/waits.py",
        "src/luftpause/services/scheduler/tickets.py",
        "src/luftpause/testkit/fake_engine/wire.py",
    }
)
"""Modules with code and without a test file of their own. May only shrink."""


def has_code(path: Path) -> bool:
    """Say whether a module does something: declarations, protocols and constructors need no tests of their own."""
    return any(
        isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name != "__init__" and not is_stub(node)
        for node in ast.walk(tree_of(path))
    )


def is_stub(function: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    last = function.body[-1]
    return isinstance(last, ast.Expr) and isinstance(last.value, ast.Constant) and len(function.body) <= 2


def has_mirror(path: Path) -> bool:
    """Say whether the mirrored folder has a test file of the module's name, or one that imports the module itself."""
    folder = ROOT / "tests" / path.parent.relative_to(SOURCE)
    if any(folder.glob(f"test_{path.stem}.py")) or any(folder.glob(f"test_{path.stem}_*.py")):
        return True
    module = ".".join(path.with_suffix("").relative_to(SOURCE.parent).parts)
    return any(module in imported_by(test) for test in folder.glob("test_*.py"))


@cache
def imported_by(path: Path) -> frozenset[str]:
    """Return the modules that a file imports."""
    found = set()
    for node in ast.walk(tree_of(path)):
        if isinstance(node, ast.ImportFrom) and node.module:
            found |= {node.module, *(f"{node.module}.{each.name}" for each in node.names)}
        elif isinstance(node, ast.Import):
            found |= {each.name for each in node.names}
    return frozenset(found)


def untested() -> set[str]:
    return {name_of(path) for path in python_files("src") if has_code(path) and not has_mirror(path)}


def test_every_module_with_code_has_its_tests_in_the_same_place() -> None:
    assert sorted(untested() - EXEMPT) == []


def test_the_exemptions_only_shrink() -> None:
    assert sorted(EXEMPT - untested()) == [], "good: now take these out of EXEMPT"
