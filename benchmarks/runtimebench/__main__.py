"""What the runtime's journal and many runs at once cost.

    python benchmarks/runtime.py [--runs 100000] [--agents 1000] [--seconds 3] [--only PART] [--json FILE]

journal     records a second and their latency with 1, 8 and 64 writers, each waiting for its record to be durable.
replay      how long a start takes with so many finished runs, what they cost in memory, and `status` among them.
compaction  how long the event loop is held up at most while the journal is tidied up behind writers.
agents      so many sub-agents at once: real runtime, dataplane and scheduler in one process, a fake engine in another,
            tools that take one second. Time from spawn to handle, memory per run that lives, runs a second.
live        the same with a model that takes its time, so that the process is not kept busy by what it carries.
beside      how late the chunks of paced streams through the LLM door are, alone and beside 100 spawns a second.

Every part runs in a process of its own, on a disk folder of its own. `benchmarks/measurements.py` writes the stored
figures into docs/MEASUREMENTS.md, together with the door's.
"""

import argparse
import multiprocessing
import sys
from collections.abc import Sequence
from pathlib import Path

from benchmarks.runtimebench.lives import Figures
from benchmarks.runtimebench.parts import PARTS, measure
from benchmarks.runtimebench.quiet import Effort
from benchmarks.runtimebench.results import RuntimeResults, store

from luftpause.testkit.bench.machine import commit, describe_machine, now


def main(arguments: Sequence[str] | None = None) -> int:
    """Parse the command line, measure, print and store; return the exit code."""
    usual = Effort()
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--runs", type=int, default=usual.runs, help="finished runs in the journal")
    options.add_argument("--agents", type=int, default=usual.agents, help="sub-agents at once")
    options.add_argument("--seconds", type=float, default=usual.seconds, help="how long each number of writers writes")
    options.add_argument("--only", choices=list(PARTS), help="measure this part alone")
    options.add_argument("--folder", type=Path, help="where the state directories go; a real disk, not memory")
    options.add_argument("--json", type=Path, help="also store the figures here")
    chosen = options.parse_args(arguments)
    effort = Effort(runs=chosen.runs, agents=chosen.agents, seconds=chosen.seconds)
    machine, when = describe_machine(), now()
    found: dict[str, Figures] = {}
    for name in [chosen.only] if chosen.only else PARTS:
        with multiprocessing.get_context("spawn").Pool(1) as alone:
            found[name] = alone.apply(measure, (name, effort, chosen.folder))
        print(name)
        for figure, value in found[name].items():
            print(f"  {figure}: {value:,}", flush=True)
    if chosen.json is not None:
        store(RuntimeResults(when=when, commit=commit(), machine=machine, parts=found), chosen.json)
    return 0


if __name__ == "__main__":
    sys.exit(main())
