"""Makes a compiled copy of the package in a folder: `python -m native FOLDER STAMP`.

`python FOLDER up` runs luftpause from it. FOLDER/stamp says which sources it was made of, in whatever words the caller
has for them; it is written last, so a copy without it is not whole. FOLDER/commit says of which commit it is, for
results that are measured with it when the sources are others already.
"""

import os
import shutil
import sys
import tempfile
import time
from pathlib import Path

from luftpause.testkit.bench.machine import commit
from native.build import CannotCompileError, compile_beside, modules

ROOT = Path(__file__).resolve().parent.parent
MAIN = '''"""Runs luftpause from the compiled copy of it that lies beside this file."""

import os
import sys
from pathlib import Path

# What it starts of itself, workers for one, is to be of this copy too.
others = os.environ.get("PYTHONPATH")
os.environ["PYTHONPATH"] = os.pathsep.join([sys.path[0], others] if others else [sys.path[0]])
sys.argv[0] = str(Path(sys.executable).with_name("luftpause"))

from luftpause.__main__ import run  # noqa: E402

run()
'''


def main() -> int:
    """Do what stands above and return the exit code."""
    folder, stamp = Path(sys.argv[1]).resolve(), sys.argv[2]
    listed = modules(ROOT)
    _say(f"compiling {len(listed)} modules (some minutes on two cores, once)")
    began = time.monotonic()
    folder.parent.mkdir(parents=True, exist_ok=True)
    made_of = commit()
    with tempfile.TemporaryDirectory(prefix="luftpause-", dir=folder.parent) as temporary:
        fresh = Path(temporary, "copy")
        shutil.copytree(ROOT / "src", fresh, ignore=shutil.ignore_patterns("__pycache__"))
        try:
            compile_beside(fresh, Path(temporary, "scratch"), listed, _say)
        except CannotCompileError as error:
            print(f"error: not compiled: {error}", file=sys.stderr)
            return 1
        (fresh / "__main__.py").write_text(MAIN, encoding="utf-8")
        (fresh / "commit").write_text(made_of, encoding="utf-8")
        (fresh / "stamp").write_text(stamp, encoding="utf-8")
        shutil.rmtree(folder, ignore_errors=True)
        os.replace(fresh, folder)
    _say(f"compiled in {time.monotonic() - began:.0f} s")
    return 0


def _say(line: str) -> None:
    print(f"luftpause: {line}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
