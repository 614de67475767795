"""How much faster than real time the simulator is, on one core.

    python benchmarks/sim.py [--scenario w1] [--minutes 8] [--rounds 3]

Every arm simulates the scenario so many times; told are simulated seconds per second of processor time, best and
median. The arm `turn-admission` spends most of its time in the real scheduling core, the others none.
"""

import argparse
import gc
import statistics
import time

import msgspec

from luftpause.testkit.sim.arms import ARMS
from luftpause.testkit.sim.scenario import load_scenario
from luftpause.testkit.sim.simulate import simulate

WANTED = 200


def main() -> None:
    parser = argparse.ArgumentParser(description="Time the simulator.")
    parser.add_argument("--scenario", default="w1", help="a shipped scenario or a TOML file")
    parser.add_argument("--minutes", type=float, default=8.0, help="counted time of each round")
    parser.add_argument("--rounds", type=int, default=3, help="seeds to simulate")
    options = parser.parse_args()
    scenario = msgspec.structs.replace(load_scenario(options.scenario), minutes=options.minutes)
    print(f"{scenario.name}: simulated seconds per second of processor time; wanted of turn-admission: {WANTED}")
    print(f"{'arm':20}{'median':>10}{'best':>10}{'worst':>10}")
    for arm in ARMS:
        speeds = []
        for seed in range(1, options.rounds + 1):
            gc.collect()
            began = time.thread_time()
            result = simulate(scenario, arm, seed)
            speeds.append(result.simulated_s / (time.thread_time() - began))
        print(f"{arm:20}{statistics.median(speeds):>10.0f}{max(speeds):>10.0f}{min(speeds):>10.0f}")


if __name__ == "__main__":
    main()
