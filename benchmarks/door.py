"""Light load on the LLM door: direct, luftpause and, when installed, its peers, in one interleaved run.

This file only starts `benchmarks.doorbench`, so that both `python benchmarks/door.py` and `python -m benchmarks.door`
work from a checkout. `scripts/bench` installs the peers first; `--help` lists the options.
"""

import runpy
import sys
from pathlib import Path

if __name__ == "__main__":
    sys.path[0] = str(Path(__file__).resolve().parent.parent)
    runpy.run_module("benchmarks.doorbench", run_name="__main__")
