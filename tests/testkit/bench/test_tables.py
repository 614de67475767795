"""Results as rows of text."""

from luftpause.testkit.bench.results import arm_results
from luftpause.testkit.bench.tables import NONE, arms_table, best_arms, markdown, ratio_of, verdicts_table
from luftpause.testkit.sim.figures import spread_of
from testkit.bench.measured import result, sample


def test_a_figure_stands_with_its_spread_and_its_ratio() -> None:
    arms = result(sglang_router_tuned=[10.0, 20.0], turn_admission=[20.0, 30.0]).arms
    header, rows = arms_table(arms, ("runs_per_min", "run_p50_s"), "sglang-router-tuned")
    assert header == ("arm", "runs/min"), "there is no p50"
    assert rows[0] == ("sglang-router-tuned", "15.0 (10.0–20.0)")
    assert rows[1] == ("turn-admission", "25.0 (20.0–30.0) 1.75×*")


def test_a_class_that_a_load_does_not_have_has_no_column_and_what_must_be_nothing_has_one() -> None:
    seeds = {"a": sample(1.0, batch_runs_per_min=0.0, broken_rules=0.0), "b": sample(2.0, batch_runs_per_min=0.0)}
    arms = arm_results({"w1": {name: [each] for name, each in seeds.items()}})
    header, rows = arms_table(arms, ("batch_runs_per_min", "broken_rules"), "a")
    assert header == ("arm", "broken rules")
    assert rows == [("a", "0"), ("b", NONE)]


def test_the_best_of_a_column_and_who_equals_them_are_marked_unless_all_are_alike() -> None:
    arms = result(direct=[1.0], smg=[99.0], turn_admission=[100.0], working_set=[50.0]).arms
    assert best_arms(arms, "runs_per_min") == {"smg", "turn-admission"}
    assert best_arms(arms[1:3], "runs_per_min") == frozenset()
    assert best_arms(arms, "run_p50_s") == frozenset()


def test_of_seconds_less_is_better() -> None:
    samples = {"w1": {name: [sample(1.0, run_p50_s=value)] for name, value in (("a", 2.0), ("b", 0.0))}}
    assert best_arms(arm_results(samples), "run_p50_s") == {"b"}


def test_verdicts_say_by_how_much() -> None:
    header, rows = verdicts_table(result(sglang_router_tuned=[10.0], turn_admission=[16.0]).verdicts)
    assert header[-1] == "÷ best other"
    ratio = "w1: runs/min ≥ 2× sglang-router-tuned"
    assert rows == [(ratio, "turn-admission", "1.6", "missed by 1.25×", "1.60× sglang-router-tuned")]
    assert verdicts_table(result(sglang_router_tuned=[1.0], turn_admission=[2.0]).verdicts)[1][0][3] == "met"
    assert verdicts_table(result(turn_admission=[2.0]).verdicts)[1][0][2:4] == (NONE, "not measured")


def test_a_ratio_needs_a_seed_that_has_both() -> None:
    assert ratio_of(spread_of([1.0, None]), spread_of([None, 2.0])) is None


def test_columns_line_up() -> None:
    assert markdown((("a", "bb"), [("1", "2")])) == "| a | bb |\n|---|----|\n| 1 | 2  |"


def test_where_decimals_tell_nothing_there_are_none() -> None:
    arms = result(direct=[99.5, 99.5]).arms
    assert arms_table(arms, ("runs_per_min",), "direct")[1][0][1] == "99.5"
    assert arms_table(result(direct=[101.25, 104.5]).arms, ("runs_per_min",), "direct")[1][0][1] == "103 (101–104)"
