"""Imports go down only; the contracts stand in pyproject.toml."""

import subprocess
import sys
from pathlib import Path

from repo.sources import ROOT


def test_every_import_contract_is_kept() -> None:
    program = Path(sys.executable).parent / "lint-imports"
    answer = subprocess.run(
        [str(program), "--no-cache"], cwd=ROOT, capture_output=True, text=True, timeout=50, check=False
    )
    assert answer.returncode == 0, answer.stdout + answer.stderr
