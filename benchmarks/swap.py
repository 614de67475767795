"""Engines on demand with a real model: five phases, two models that take turns, and what the launcher's way costs.

This file only starts `benchmarks.swapbench`, so that both `python benchmarks/swap.py` and `python -m benchmarks.swap`
work from a checkout. Run by scripts/swap; `--json FILE` stores the figures.
"""

import runpy
import sys
from pathlib import Path

if __name__ == "__main__":
    sys.path[0] = str(Path(__file__).resolve().parent.parent)
    runpy.run_module("benchmarks.swapbench", run_name="__main__")
