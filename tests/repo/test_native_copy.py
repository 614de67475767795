"""A compiled copy runs as one, and what it is made of fits together in the compiler's eyes."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest
from native.__main__ import MAIN
from native.__main__ import main as make_copy
from native.build import modules
from native.values import rewrite

from luftpause.testkit.bench.machine import commit

ROOT = Path(__file__).resolve().parent.parent.parent
STARTS_A_CHILD = """
import subprocess, sys

def run():
    raise SystemExit(subprocess.call([sys.executable, "-m", "luftpause.child"]))
"""
WAIT_S = 30
CHECK_S = 240
"""mypy without a cache, on a busy machine."""


def test_what_a_compiled_copy_starts_is_of_the_same_copy(tmp_path: Path) -> None:
    package = tmp_path / "copy" / "luftpause"
    package.mkdir(parents=True)
    (package / "__init__.py").touch()
    (package / "__main__.py").write_text(STARTS_A_CHILD, encoding="utf-8")
    (package / "child.py").write_text("print(__file__)", encoding="utf-8")
    (tmp_path / "copy" / "__main__.py").write_text(MAIN, encoding="utf-8")
    command = [sys.executable, str(tmp_path / "copy")]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=WAIT_S, check=True, cwd=tmp_path)
    assert ran.stdout.strip() == str(package / "child.py")


def test_a_copy_says_of_which_commit_it_was_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("native.__main__.compile_beside", lambda *_: None)
    monkeypatch.setattr(sys, "argv", ["native", str(tmp_path / "copy"), "these sources"])
    assert make_copy() == 0
    assert (tmp_path / "copy" / "commit").read_text(encoding="utf-8") == commit()
    assert (tmp_path / "copy" / "stamp").read_text(encoding="utf-8") == "these sources"
    assert (tmp_path / "copy" / "luftpause" / "__main__.py").exists()


FEW = {
    "luftpause/core/dialects/observe.py": "tool calls of one answer, which are bounded",
    "luftpause/core/dialects/request.py": "members of a request that is refused",
    "luftpause/services/dataplane/routes.py": "dialects",
}
"""Where all are listed although the first would do, and why they are few."""


def listed_for_the_first(tree: ast.Module) -> list[str]:
    """Return what a compiled module makes whole lists of although it, or its caller, may want the first only."""
    asked = [node.args[0] for node in ast.walk(tree) if isinstance(node, ast.Call) and ast.unparse(node.func) == "next"]
    handed = [node.value for node in ast.walk(tree) if isinstance(node, ast.Return)]
    return [ast.unparse(node) for node in asked + handed if isinstance(node, ast.GeneratorExp)]


def test_what_is_compiled_lists_nothing_for_the_first_of_it() -> None:
    # A generator expression is a list there: the first of many costs as much as all of them.
    found = {path: listed_for_the_first(ast.parse((ROOT / "src" / path).read_text("utf-8"))) for path in modules(ROOT)}
    assert {path for path, listed in found.items() if listed} == set(FEW)


def class_variables_for_members(tree: ast.Module, protocols: set[str]) -> list[str]:
    """Return the class variables of classes that name a Protocol as their base."""
    heirs = [
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.ClassDef) and protocols & {ast.unparse(base).rpartition(".")[2] for base in node.bases}
    ]
    fields = [(heir, field) for heir in heirs for field in heir.body if isinstance(field, ast.AnnAssign)]
    return [
        f"{heir.name}.{ast.unparse(field.target)}"
        for heir, field in fields
        if ast.unparse(field.annotation).startswith("ClassVar")
    ]


def test_what_is_compiled_has_no_class_variable_where_a_protocol_may_look_for_it() -> None:
    # The compiler writes a look-up that leads nowhere, and the process dies at it (0024).
    trees = [ast.parse(source.read_text("utf-8")) for source in sorted((ROOT / "src").rglob("*.py"))]
    classes = [node for tree in trees for node in ast.walk(tree) if isinstance(node, ast.ClassDef)]
    protocols = {each.name for each in classes if {"Protocol"} & {ast.unparse(base) for base in each.bases}}
    assert "Dialect" in protocols
    seen = ast.parse("class Ours(ports.Dialect):\n    name: ClassVar[str] = 'ours'\n")
    assert class_variables_for_members(seen, protocols) == ["Ours.name"]
    paths = modules(ROOT)
    found = [
        (path, class_variables_for_members(ast.parse((ROOT / "src" / path).read_text("utf-8")), protocols))
        for path in paths
    ]
    assert [(path, variables) for path, variables in found if variables] == []


@pytest.mark.slow
@pytest.mark.timeout(CHECK_S + 30)
def test_the_sources_fit_together_as_they_are_written_out_for_the_compiler(tmp_path: Path) -> None:
    # A frozen struct is no struct there and a named tuple no tuple: what relies on either passes the usual checks.
    listed = modules(ROOT)
    for source in (ROOT / "src").rglob("*.py"):
        path = source.relative_to(ROOT / "src")
        text = source.read_text(encoding="utf-8")
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        written = rewrite(text, acyclic=False).text if path.as_posix() in listed else text
        (tmp_path / path).write_text(written, encoding="utf-8")
    command = [sys.executable, "-m", "mypy", "--config-file=", "--cache-dir=.cache", *listed]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=CHECK_S, check=False, cwd=tmp_path)
    assert ran.returncode == 0, ran.stdout
