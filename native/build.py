"""Makes extension modules of the modules that `[tool.luftpause.compiled]` in pyproject.toml names.

mypyc writes C for all of them together, so that calls between them are calls in C; the C compiler of this Python makes
one shared library of it, and a small extension module beside each source. Knows nothing of wheels.
"""

import ast
import os
import re
import shlex
import shutil
import subprocess
import sys
import sysconfig
import tomllib
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from native.training import TrainingError, train
from native.values import rewrite

OPTIMISE: Final = ("-O2", "-g0", "-DNDEBUG", "-fwrapv", "-fvisibility=hidden", "-fno-plt")
"""The last two: calls between our own modules, and to Python, go straight to where they lead."""
PROFILE: Final = ("-fprofile-generate",)
"""A first time, to be shown its work: what is compiled counts which way it goes, into files beside its objects."""
PROFILED: Final = ("-fprofile-use", "-fprofile-correction", "-Wno-missing-profile")
"""Then: what was gone through often is laid out for speed, what never was for size. Several threads counted at once."""
_VALUES_ONLY: Final = (
    "luftpause/adapters/engine_http/",
    "luftpause/adapters/http_server/known_heads.py",
    "luftpause/core/dialects/",
    "luftpause/core/model/",
    "luftpause/core/scheduling/",
    "luftpause/ports/engines.py",
    "luftpause/services/dataplane/forwarding.py",
    "luftpause/services/dataplane/headers.py",
    "luftpause/services/dataplane/turn_request.py",
    "luftpause/services/scheduler/phases.py",
)
"""Where nothing that a frozen class holds leads back to it. A call of a client does: its task holds it."""
_FAILING_IS_RARE: Final = """struct _object;
void CPy_AddTraceback(const char *, const char *, int, struct _object *) __attribute__((cold));
void CPy_TypeErrorTraceback(const char *, const char *, int, struct _object *, const char *, struct _object *)
    __attribute__((cold));
"""
"""Stands before all C that mypyc writes: what leads to a traceback, half of it, goes out of the way of the rest."""
_PLACE: Final = re.compile(r'(CPy_(?:Add|TypeError)Traceback\(")([^"]+)(", "[^"]+", )(\d+)')


class CannotCompileError(Exception):
    """Something that compiling needs is not here, or it failed. The message says what, for people."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Unit:
    """One C source: how it is compiled, and into which library its object goes."""

    library: Path
    source: Path
    object: Path
    options: tuple[str, ...]


def modules(root: Path) -> list[str]:
    """Return the paths of the modules to compile, below `src`."""
    with (root / "pyproject.toml").open("rb") as file:
        listed: list[str] = tomllib.load(file)["tool"]["luftpause"]["compiled"]["modules"]
    return [f"{module.replace('.', '/')}.py" for module in listed]


def compile_beside(package: Path, scratch: Path, listed: list[str], say: Callable[[str], None]) -> list[Path]:
    """Compile modules of a package and put each library beside its source; return the libraries.

    GCC compiles twice: in between, the copy is shown its work (`training`).

    Args:
        package: the folder that holds `luftpause`. Nothing but the libraries is written there.
        scratch: a folder for all that is made on the way.
        listed: the modules, as paths below `package`.
        say: called with a line for people where something is left out.

    Raises:
        CannotCompileError: mypyc, a C compiler or Python's headers are missing, or one of them gave up.
    """
    _check_tools()
    _check_heirs(package, listed)
    sources = scratch / "sources"
    shutil.copytree(package / "luftpause", sources / "luftpause", ignore=shutil.ignore_patterns("__pycache__", "*.so"))
    origins: dict[str, list[int]] = {}
    for path in listed:
        source = sources / path
        rewritten = rewrite(source.read_text(encoding="utf-8"), acyclic=path.startswith(_VALUES_ONLY))
        source.write_text(rewritten.text, encoding="utf-8")
        origins[path] = rewritten.origin
    units = _write_c(sources, scratch, listed, package)
    for file in (scratch / "c").rglob("*.c"):
        text = file.read_text(encoding="utf-8")
        file.write_text(_FAILING_IS_RARE + _PLACE.sub(lambda place: _placed(place, origins), text), encoding="utf-8")
    try:
        _show_work(units, package, scratch / "training")
    except TrainingError as error:
        say(f"compiled without having been shown its work, which is worth a tenth of a turn: {error}")
        return _build(units, ())
    return _build(units, PROFILED)


def _show_work(units: list[Unit], package: Path, folder: Path) -> None:
    """Let a copy that counts which way it goes do its work, in a folder that is not there yet."""
    if not _is_gcc():
        raise TrainingError("the compiler is not GCC")
    _build(units, PROFILE)
    train(package, folder)


def _build(units: list[Unit], options: tuple[str, ...]) -> list[Path]:
    """Compile all sources, with some more options, and link them; return the libraries."""
    with ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        list(pool.map(lambda unit: _compile(unit, options), units))
    libraries = sorted({unit.library for unit in units})
    for library in libraries:
        objects = [str(unit.object) for unit in units if unit.library == library]
        _run([*_tool("LDSHARED"), *options, *objects, "-o", str(library)])
    return libraries


def _check_tools() -> None:
    if not Path(sysconfig.get_path("include"), "Python.h").exists():
        raise CannotCompileError("Python's headers are missing; on Debian and Ubuntu: apt install python3-dev")
    compiler = _tool("CC")
    if not compiler or shutil.which(compiler[0]) is None:
        raise CannotCompileError("there is no C compiler; on Debian and Ubuntu: apt install gcc")


def _is_gcc() -> bool:
    """Say whether the compiler is GCC: others count in other ways."""
    answer = subprocess.run([*_tool("CC"), "--version"], capture_output=True, text=True, encoding="utf-8", check=False)
    return "Free Software Foundation" in answer.stdout


def _check_heirs(package: Path, listed: list[str]) -> None:
    """Refuse a list whose modules lack a heir of theirs: an interpreted class cannot inherit from a compiled one."""
    compiled = {path.removesuffix(".py").replace("/", ".") for path in listed}
    for file in sorted((package / "luftpause").rglob("*.py")):
        path = file.relative_to(package).as_posix()
        if path in listed:
            continue
        tree = ast.parse(file.read_text(encoding="utf-8"))
        imports = [each for each in tree.body if isinstance(each, ast.ImportFrom) and each.module in compiled]
        names = {name.asname or name.name for each in imports for name in each.names}
        for each in ast.walk(tree):
            if isinstance(each, ast.ClassDef) and names & {ast.unparse(base) for base in each.bases}:
                raise CannotCompileError(f"{path}: {each.name} inherits from a compiled class: compile it too")


def _write_c(sources: Path, scratch: Path, listed: list[str], package: Path) -> list[Unit]:
    """Let mypyc write C for the modules. In a process of its own: it belongs to one working directory."""
    program = Path(__file__).with_name("to_c.py")
    answer = subprocess.run(
        [sys.executable, str(program), str(scratch / "c"), *listed],
        cwd=sources,
        env={**os.environ, "MYPYPATH": str(sources), "MYPY_CACHE_DIR": str(scratch / "mypy")},
        capture_output=True,
        text=True,
        encoding="utf-8",
        check=False,
    )
    if answer.returncode:
        raise CannotCompileError(f"mypyc gave up: {(answer.stderr + answer.stdout).strip()[-2000:]}")
    suffix = sysconfig.get_config_var("EXT_SUFFIX")
    units: list[Unit] = []
    for line in answer.stdout.splitlines():
        if line.startswith("unit\t"):
            _, name, source, *options = line.split("\t")
            library = package / (name.replace(".", "/") + suffix)
            made = scratch / "objects" / f"{len(units)}.o"
            units.append(Unit(library=library, source=Path(source), object=made, options=tuple(options)))
    (scratch / "objects").mkdir()
    return units


def _placed(place: re.Match[str], origins: dict[str, list[int]]) -> str:
    """Return where a traceback points, in the lines of the source as people know it."""
    origin, line = origins.get(place[2], []), int(place[4])
    return f"{place[1]}{place[2]}{place[3]}{origin[line] if 0 < line < len(origin) else line}"


def _compile(unit: Unit, options: tuple[str, ...]) -> None:
    include = f"-I{sysconfig.get_path('include')}"
    command = [*_tool("CC"), *_tool("CCSHARED"), *unit.options, *OPTIMISE, *options, include, "-c", str(unit.source)]
    _run([*command, "-o", str(unit.object)])


def _run(command: list[str]) -> None:
    answer = subprocess.run(command, capture_output=True, text=True, encoding="utf-8", check=False)
    if answer.returncode:
        raise CannotCompileError(f"{command[0]} gave up: {answer.stderr.strip()[-2000:]}")


def _tool(variable: str) -> list[str]:
    """Return how this Python's own extension modules were compiled, by the name of its variable."""
    return shlex.split(os.environ.get(variable) or sysconfig.get_config_var(variable) or "")
