"""What a policy is worth piece by piece."""

from dataclasses import replace

from luftpause.testkit.bench.pieces import SHOWN, pieces_table
from luftpause.testkit.bench.results import WorkloadResult, arm_results
from luftpause.testkit.bench.samples import Sample
from luftpause.testkit.bench.tables import NONE
from testkit.bench.measured import result


def measured(figure: str, whole: list[float], without: list[float]) -> WorkloadResult:
    arms = {"working-set": whole, "working-set-without-gate": without}
    samples = {name: [Sample(figures={figure: value}) for value in values] for name, values in arms.items()}
    return replace(result(direct=[1.0]), workload="pieces", arms=arm_results({"w1": samples}))


def row(figure: str, whole: list[float], without: list[float]) -> tuple[str, ...]:
    table = pieces_table(measured(figure, whole, without))
    assert table is not None
    (found,) = table[1]
    return found


def test_a_difference_beyond_what_seeds_differ_by_is_told_on_the_side_where_it_belongs() -> None:
    assert row("batch_runs_per_min", [100, 110], [50, 55]) == ("gate", "w1 batch runs/min 0.50×", NONE)
    assert row("batch_runs_per_min", [50, 55], [100, 110]) == ("gate", NONE, "w1 batch runs/min 2.00×")
    assert row("run_p50_s", [10, 11], [20, 22]) == ("gate", "w1 run p50 s 2.00×", NONE)


def test_a_piece_that_shows_nothing_says_so() -> None:
    assert row("run_p50_s", [10, 30], [20, 40]) == ("gate", NONE, NONE), "seeds overlap"
    assert row("run_p50_s", [100, 101], [104, 105]) == ("gate", NONE, NONE), "four hundredths are nothing"


def test_only_the_largest_of_many_are_told() -> None:
    one = measured("run_p50_s", [10.0], [20.0])
    many = replace(one, arms=tuple(replace(arm, scenario=f"w{at}") for at in range(SHOWN + 2) for arm in one.arms))
    table = pieces_table(many)
    assert table is not None
    assert table[1][0][1].endswith("; 2 more")


def test_where_no_arm_lacks_a_piece_there_is_no_such_table() -> None:
    assert pieces_table(result(direct=[1.0], turn_admission=[2.0])) is None
