"""Stored results at a glance."""

from dataclasses import replace

from luftpause.testkit.bench.overview import at_a_glance
from luftpause.testkit.bench.results import ArmResult, WorkloadResult, arm_results
from luftpause.testkit.bench.samples import Sample
from testkit.bench.measured import result


def arms(scenario: str, **figures: dict[str, list[float]]) -> tuple[ArmResult, ...]:
    """Return arms of a scenario: of each, figures by name with a value a seed; underscores stand for hyphens."""
    samples = {
        arm.replace("_", "-"): [
            Sample(figures=dict(zip(own, seed, strict=True))) for seed in zip(*own.values(), strict=True)
        ]
        for arm, own in figures.items()
    }
    return arm_results({scenario: samples})


def flood(interactive: list[float], batch: list[float]) -> dict[str, list[float]]:
    return {"interactive_runs_per_min": interactive, "batch_runs_per_min": batch}


FOUND = replace(
    result(direct=[1.0]),
    arms=arms(
        "w1",
        sglang_router_tuned=flood([10, 10], [100, 100]),
        smg=flood([20, 20], [80, 80]),
        turn_admission=flood([90, 90], [90, 90]),
        working_set=flood([30, 40], [150, 140]),
    ),
)


def rows(*results: WorkloadResult) -> list[list[str]]:
    lines = [line for line in at_a_glance(results).splitlines() if line.startswith("| `")]
    return [[cell.strip() for cell in line.strip("| ").split(" | ")] for line in lines]


def test_a_flood_is_told_against_the_router_and_against_whoever_else_does_best() -> None:
    (row,) = rows(FOUND)
    assert row == [
        *("`w1` Flood: 48 batch and 4 interactive agents", "simulated"),
        *("3.50× (3.00–4.00)", "1.75× smg", "–", "–", "1.45× (1.40–1.50)", "1.45× sglang-router-tuned"),
    ]


def test_another_load_is_told_by_what_it_is_about() -> None:
    w3 = arms("w3-deep", sglang_router_tuned={"tree_mean_s": [20.0]}, working_set={"tree_mean_s": [10.0]})
    w4 = arms("w4-heavy", direct={"fairness": [0.8]}, working_set={"fairness": [0.99]})
    found = rows(replace(FOUND, workload="w4", arms=w4), replace(FOUND, workload="w3", arms=w3))
    assert found == [
        ["`w3-deep`", "simulated", "tree mean s", "0.50×", "0.50× sglang-router-tuned"],
        ["`w4-heavy`", "simulated", "Jain", "0.99", "0.8 direct"],
    ]


def test_engines_and_doors_stand_beside_each_other_and_nothing_stands_there_twice() -> None:
    seeds = arms("w1", sglang_router=flood([10], [100]), working_set=flood([30], [150]))
    over_mcp = replace(FOUND, workload="seed-mcp", engine="http", arms=seeds)
    found = rows(over_mcp, replace(FOUND, engine="http"), FOUND, replace(FOUND, workload="seed-flood", arms=seeds))
    assert [row[:2] for row in found] == [
        ["`w1` Flood: 48 batch and 4 interactive agents", "simulated"],
        ["`w1` Flood: 48 batch and 4 interactive agents", "HTTP, real routers"],
        ["`w1` as sub-agents over MCP", "HTTP, real routers"],
    ]
    assert found[-1][2] == "3.00× sglang-router"


def test_where_nothing_is_compared_there_is_nothing_to_see() -> None:
    faults = arms("w7-slow", direct={"broken_rules": [0.0]}, working_set={"broken_rules": [0.0]})
    assert rows(replace(FOUND, workload="w7", arms=faults)) == []
    assert at_a_glance([]) == at_a_glance([result(direct=[1.0])]) == ""
