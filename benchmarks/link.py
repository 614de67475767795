"""What one admit over the link costs: two processes, a desk that places at once.

    python benchmarks/link.py [--seconds 3] [--json FILE]

Prints the round trip from the offer to the placement with one turn outstanding (p50, p99, µs), and placements a
second with 128 outstanding, where each turn also makes its three reports, as a real one does.
"""

import argparse
import asyncio
import contextlib
import json
import statistics
import subprocess
import sys
import time
from collections.abc import Coroutine, Sequence
from pathlib import Path
from typing import Any

import uvloop

from luftpause.adapters.link.client import RemoteLink
from luftpause.adapters.link.server import LinkServer
from luftpause.core.model.ids import CallerId, ModelName, PeerId, PrincipalId, ReplicaId, RunId, TurnId
from luftpause.core.model.replicas import Endpoint, Placement, ReplicaKind, ReplicaSpec
from luftpause.core.model.turns import IdentityKeys, ServiceClass, TurnOffer
from luftpause.core.scheduling.events import FirstTokenSeen, PeerResynced, TurnFinished, TurnReport
from luftpause.ports.scheduler import Recall, Ticket

PEER = PeerId("bench")
OUTSTANDING = 128


class InstantDesk:
    """A scheduler that costs nothing: every turn has the same place at once."""

    def __init__(self) -> None:
        self._runs = 0
        self._place = Placement(
            replica=ReplicaId("replica-1"), endpoint=Endpoint(url="http://127.0.0.1:30000"), why="it is the only one"
        )

    def admit(self, offer: TurnOffer) -> Ticket:
        """Mint a run and place the turn."""
        self._runs += 1
        placement: asyncio.Future[Placement] = asyncio.get_running_loop().create_future()
        placement.set_result(self._place)
        return Ticket(RunId(f"run-{self._runs:026d}"), placement)

    def lacks_word(self, offer: TurnOffer) -> bool:
        """Whoever comes is known."""
        return False

    def report(self, report: TurnReport) -> None:
        """Change nothing."""

    def attend(self, peer: PeerId, recall: Recall) -> None:
        """Nothing is recalled."""

    def end_run(self, principal: PrincipalId, run: RunId) -> bool:
        """There is no such run."""
        return False

    def models(self) -> Sequence[ModelName]:
        """There are none."""
        return ()

    def resync(self, report: PeerResynced) -> None:
        """Change nothing."""

    def peer_lost(self, peer: PeerId) -> None:
        """Change nothing."""

    def add_replica(self, spec: ReplicaSpec) -> None:
        """Change nothing."""

    def remove_replica(self, replica: ReplicaId) -> None:
        """Change nothing."""


async def serve() -> None:
    server = LinkServer(InstantDesk())
    await server.start()
    print(server.port, flush=True)
    await asyncio.Event().wait()


def offer(number: int) -> TurnOffer:
    return TurnOffer(
        turn=TurnId(f"{PEER}.{number}"),
        peer=PEER,
        model=ModelName("llama-3.2-1b"),
        kind=ReplicaKind.GENERATIVE,
        service_class=ServiceClass.INTERACTIVE,
        caller=CallerId("anonymous"),
        principal=PrincipalId("anonymous"),
        keys=IdentityKeys(),
        prompt_bytes=2048,
    )


async def one_turn(link: RemoteLink, number: int) -> None:
    ticket = await link.admit(offer(number))
    await ticket.placement
    turn = TurnId(f"{PEER}.{number}")
    link.report(FirstTokenSeen(turn=turn))
    link.report(TurnFinished(turn=turn, finish="stop"))


async def measure(port: int, seconds: float) -> dict[str, float]:
    link = RemoteLink("127.0.0.1", port, peer=PEER)
    await link.start()
    async with asyncio.timeout(10):
        await link.ready()
    number = 0
    trips: list[float] = []
    until = time.perf_counter() + seconds
    while time.perf_counter() < until:
        number += 1
        began = time.perf_counter()
        await (await link.admit(offer(number))).placement
        trips.append(time.perf_counter() - began)
        link.report(TurnFinished(turn=TurnId(f"{PEER}.{number}")))
    turns = number

    async def keep_going() -> None:
        nonlocal turns
        while time.perf_counter() < until:
            turns += 1
            await one_turn(link, turns)

    began, before, cpu = time.perf_counter(), turns, time.process_time()
    until = began + seconds
    async with asyncio.TaskGroup() as group:
        for _ in range(OUTSTANDING):
            group.create_task(keep_going())
    lasted, done = time.perf_counter() - began, turns - before
    cpu = time.process_time() - cpu
    await link.close()
    cuts = statistics.quantiles(trips, n=100)
    return {
        "p50_us": round(cuts[49] * 1e6, 1),
        "p99_us": round(cuts[98] * 1e6, 1),
        "turns_per_s": round(done / lasted),
        "client_cpu_us_per_turn": round(cpu / done * 1e6, 1),
    }


def run(program: Coroutine[Any, Any, dict[str, float]]) -> dict[str, float]:
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(program)


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--seconds", type=float, default=3.0, help="how long each of the two parts runs")
    options.add_argument("--json", type=Path, help="also write the figures here")
    options.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    chosen = options.parse_args()
    if chosen.serve:
        with contextlib.suppress(KeyboardInterrupt), asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            runner.run(serve())
        return
    command = [sys.executable, __file__, "--serve"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        try:
            assert server.stdout is not None
            figures = run(measure(int(server.stdout.readline()), chosen.seconds))
        finally:
            server.terminate()
    print(f"one outstanding: p50 {figures['p50_us']} µs, p99 {figures['p99_us']} µs")
    print(
        f"{OUTSTANDING} outstanding, 3 reports each: {figures['turns_per_s']:,.0f} turns/s, "
        f"{figures['client_cpu_us_per_turn']} µs of the client's CPU per turn"
    )
    if chosen.json is not None:
        chosen.json.write_text(json.dumps(figures, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
