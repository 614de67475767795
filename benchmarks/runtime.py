"""What the runtime's journal and many runs at once cost; `--help` says what is measured.

This file only starts `benchmarks.runtimebench`, so that both `python benchmarks/runtime.py` and
`python -m benchmarks.runtimebench` work from a checkout.
"""

import runpy
import sys
from pathlib import Path

if __name__ == "__main__":
    sys.path[0] = str(Path(__file__).resolve().parent.parent)
    runpy.run_module("benchmarks.runtimebench", run_name="__main__")
