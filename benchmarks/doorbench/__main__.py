"""The command line of the door benchmark: start the arms, measure, print, store."""

import argparse
import json
import resource
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from benchmarks.doorbench.behaviour import Behaviour, answers, observe
from benchmarks.doorbench.measure import FULL, KEYS, QUICK, Effort, run_rounds
from benchmarks.doorbench.peers import PEERS, Peer, PeerUnavailable
from benchmarks.doorbench.processes import python_module
from benchmarks.doorbench.report import terminal_report
from benchmarks.doorbench.results import Results, store_results

from luftpause.testkit.bench.machine import commit, describe_machine, now
from luftpause.testkit.bench.over_http.children import Child

_MANY_FILES = 16384
FULL_ONLY = frozenset({"one-worker", "two-workers", "litellm"})
"""Arms that a quick run has no time for, unless they are named."""


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


def _allow_many_sockets() -> None:
    """Raise the soft limit of open files for us and our children; a thousand streams need two sockets each."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = _MANY_FILES if hard == resource.RLIM_INFINITY else min(_MANY_FILES, hard)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


def _start_arms(
    names: Sequence[str], engines: Sequence[int], effort: Effort, folder: Path, absent: dict[str, str]
) -> tuple[list[Peer], dict[str, Behaviour]]:
    """Start each arm and observe its behaviour; what cannot be had is named in `absent`."""
    peers: list[Peer] = []
    behaviour: dict[str, Behaviour] = {}
    for name in names:
        try:
            peer = PEERS[name](engines, folder)
        except PeerUnavailable as unavailable:
            absent[name] = str(unavailable)
            _say(f"{name}: absent: {unavailable}")
            continue
        peers.append(peer)
        if peer.shapes is not None or not effort.observes:
            _say(f"{name}: started")
            continue
        _say(f"{name}: started, observing idle streams, leaving clients, a slow reader")
        try:
            behaviour[name] = observe(peer, engines, effort, folder)
        except (OSError, TimeoutError, EOFError) as error:
            _say(f"{name}: behaviour not measured: {error!r}")
        if not answers(peer):
            absent[name] = "stopped answering while its behaviour was measured"
            _say(f"{name}: {absent[name]}")
            peers.pop().stop()
    return peers, behaviour


def run(names: Sequence[str], effort: Effort, mode: str) -> Results:
    """Measure the named arms.

    Raises:
        TimeoutError: a process of the benchmark itself did not answer.
        RuntimeError: the engine does not serve.
    """
    began = time.monotonic()
    machine = describe_machine()
    absent: dict[str, str] = {}
    peers: list[Peer] = []
    with tempfile.TemporaryDirectory(prefix="doorbench-") as temporary:
        folder = Path(temporary)
        engine = Child(python_module("benchmarks.doorbench.engine"), log=folder / "engine.log", lines=True)
        load = Child(python_module("benchmarks.doorbench.load"), log=folder / "load.log", lines=True)
        try:
            engines = json.loads(engine.read_line(20))["ports"]
            peers, behaviour = _start_arms(names, engines, effort, folder, absent)
            if "direct" in absent:
                raise RuntimeError(f"the engine itself does not answer: {engine.tail()}")
            shapes = run_rounds(load, peers, effort, until=began + effort.budget_s, say=_say)
        finally:
            for peer in peers:
                peer.stop()
            load.stop()
            engine.stop()
    return Results(
        when=now(),
        commit=commit(),
        mode=mode,
        seconds=time.monotonic() - began,
        machine=machine,
        arms={peer.name: peer.version for peer in peers},
        absent=absent,
        shapes=shapes,
        behaviour=behaviour,
    )


def main(arguments: Sequence[str] | None = None) -> int:
    """Parse the command line and do what it says; return the exit code."""
    parser = argparse.ArgumentParser(prog="door.py", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="under a minute instead of under seven")
    parser.add_argument("--json", type=Path, metavar="FILE", help="store the run")
    parser.add_argument("--shapes", nargs="+", choices=sorted(KEYS), help="only these kinds of load, and no behaviour")
    parser.add_argument("--arms", nargs="+", choices=list(PEERS), help="leave arms out; a quick run leaves out some")
    options = parser.parse_args(arguments)
    _allow_many_sockets()
    wanted = options.arms or [arm for arm in PEERS if not (options.quick and arm in FULL_ONLY)]
    arms = ["direct", *(arm for arm in wanted if arm != "direct")]
    effort = QUICK if options.quick else FULL
    if options.shapes:
        effort = replace(effort, skip=KEYS - set(options.shapes), observes=False)
    try:
        results = run(arms, effort, "quick" if options.quick else "full")
    except (EOFError, TimeoutError, RuntimeError) as error:
        _say(f"door.py: the run broke off: {error}")
        return 1
    print(terminal_report(results))
    if options.json:
        store_results(results, options.json)
    return 0


if __name__ == "__main__":
    sys.exit(main())
