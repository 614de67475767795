"""What must be shown, and whether it is."""

from dataclasses import replace

import pytest

from luftpause.testkit.bench.claims import Claim, Relation, Verdict, judge, paired
from testkit.bench.measured import FASTER, sample, samples

OURS = ("turn-admission", "working-set")
LEVEL = Claim(scenario="w1", figure="runs_per_min", relation=Relation.AT_MOST, bound=0.0)


def only(claim: Claim, **arms: list[float | None]) -> Verdict:
    (verdict,) = judge((claim,), samples(**arms), OURS, OURS)
    return verdict


def test_ratios_are_taken_seed_by_seed_and_the_middle_one_decides() -> None:
    verdict = only(FASTER, sglang_router_tuned=[1.0, 10.0, 100.0], turn_admission=[4.0, 20.0, 100.0])
    assert (verdict.value, verdict.low, verdict.high, verdict.met) == (2.0, 1.0, 4.0, True)
    assert paired([sample(4.0)], "runs_per_min", [sample(2.0)]) == [2.0]
    assert paired([sample(4.0)], "runs_per_min", [sample(0.0)]) == []


def test_what_is_missed_is_missed_by_a_factor() -> None:
    verdict = only(FASTER, sglang_router_tuned=[10.0], turn_admission=[16.0])
    assert (verdict.met, verdict.missed_by) == (False, 1.25)
    fewer = replace(FASTER, relation=Relation.AT_MOST, bound=0.5)
    assert only(fewer, sglang_router_tuned=[10.0], turn_admission=[6.0]).missed_by == 1.2
    assert only(fewer, sglang_router_tuned=[10.0], turn_admission=[5.0]).met


def test_a_figure_by_itself_is_compared_with_its_bound() -> None:
    assert only(LEVEL, turn_admission=[0.0, 0.0]).met
    lost = only(LEVEL, turn_admission=[0.0, 1.0, 2.0])
    assert (lost.met, lost.value, lost.missed_by) == (False, 1.0, None)


@pytest.mark.parametrize(("value", "is_met"), [(10.2, True), (9.8, True), (10.3, False), (9.7, False)])
def test_within_holds_to_both_sides_and_for_every_arm(value: float, is_met: bool) -> None:
    tie = replace(FASTER, relation=Relation.WITHIN, bound=0.02, every_arm=True)
    found = judge((tie,), samples(sglang_router_tuned=[10.0], direct=[value], turn_admission=[10.0]), OURS, OURS)
    assert {verdict.arm: verdict.met for verdict in found} == {"direct": is_met, "turn-admission": True}


def test_ours_is_compared_with_the_best_of_the_others() -> None:
    arms: dict[str, list[float | None]] = {"sglang_router_tuned": [10.0], "smg": [15.0], "working_set": [30.0]}
    verdict = judge((FASTER,), samples(turn_admission=[12.0], **arms), OURS, OURS)
    assert [(each.arm, each.rival, each.rival_ratio) for each in verdict] == [
        ("turn-admission", "smg", 0.8),
        ("working-set", "smg", 2.0),
    ]


def test_nothing_measured_shows_nothing() -> None:
    assert not only(FASTER, turn_admission=[5.0]).met
    assert only(FASTER, sglang_router_tuned=[None], turn_admission=[5.0]).value is None
    assert judge((replace(FASTER, scenario="w9"),), samples(turn_admission=[1.0]), OURS, OURS) == []


def test_who_breaks_a_rule_shows_nothing_either() -> None:
    found = {
        "w1": {"sglang-router-tuned": [sample(1.0)], "turn-admission": [sample(9.0, broken="two turns became one")]}
    }
    assert [verdict.met for verdict in judge((FASTER,), found, OURS, OURS)] == [False]


def test_a_claim_says_what_it_claims() -> None:
    assert FASTER.text == "w1: runs_per_min ≥ 2× sglang-router-tuned"
    assert LEVEL.text == "w1: runs_per_min ≤ 0"
    assert replace(FASTER, relation=Relation.WITHIN, bound=0.02).text == (
        "w1: runs_per_min within 2% of sglang-router-tuned"
    )


def test_where_real_time_passes_the_spread_may_reach_the_bound() -> None:
    tie = replace(FASTER, relation=Relation.WITHIN, bound=0.02)
    near = samples(sglang_router_tuned=[10.0, 10.0, 10.0], turn_admission=[10.1, 10.4, 10.5])
    far = samples(sglang_router_tuned=[10.0, 10.0, 10.0], turn_admission=[9.0, 9.1, 9.7])
    for found, is_met in ((near, True), (far, False)):
        (exact,) = judge((tie,), found, OURS, OURS)
        (noisy,) = judge((tie,), found, OURS, OURS, noisy=True)
        assert (exact.met, noisy.met) == (False, is_met)
        assert "within 2% or the spread of sglang-router-tuned" in noisy.claim
