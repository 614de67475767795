"""The section of a document."""

from dataclasses import replace

import msgspec

from luftpause.testkit.bench.report import counted, not_reached, section, why_missed
from testkit.bench.measured import result


def test_a_section_says_what_is_shown_where_and_by_whom_and_what_did_not_work() -> None:
    text = section([result(sglang_router_tuned=[10.0, 10.0], turn_admission=[16.0, 18.0])], "pictures")
    assert "`turn-admission` meets 0 of its 1 claims." in text
    assert "- Repeat it with `luftpause bench w1 --seeds 2`." in text
    assert "**missed by 1.18×**" in text
    assert "- Machine: abacus, 2 cores" in text
    assert "commit abc, seeds 1, 2, 3 s." in text
    assert "- Absent: smg (is not installed)." in text
    assert "`w1`, × is to sglang-router-tuned, \\* is best:" in text
    assert "(pictures/w1-sim.svg)" in text


def test_a_claim_that_is_made_on_several_engines_stands_once() -> None:
    found = result(sglang_router_tuned=[10.0, 10.0], turn_admission=[16.0, 18.0])
    text = section([found, replace(found, engine="http")], "pictures")
    (row,) = [line for line in text.splitlines() if line.startswith("| w1: runs/min")]
    cell = "**missed by 1.18×** 1.7 (1.6–1.8), 1.70× sglang-router-tuned"
    assert [each.strip() for each in row.split("|")[2:5]] == ["turn-admission", cell, cell]


def test_a_result_says_which_versions_were_measured() -> None:
    found = replace(result(direct=[1.0]), versions={"smg": "1.13.0", "vllm-router": "0.1.17"})
    assert "- Versions: smg 1.13.0, vllm-router 0.1.17." in section([found], "pictures")


def test_without_results_there_is_no_section() -> None:
    assert section([], "pictures") == ""
    assert not_reached([]) == ""


def test_a_command_says_engine_seeds_and_minutes_where_they_are_not_the_usual_ones() -> None:
    found = replace(result(direct=[1.0]), engine="http", seeds=(4, 5), setup={"minutes": "0.5"})
    assert "`luftpause bench w1 --engine http --seed 4 --seeds 2 --minutes 0.5`" in section([found], "pictures")


def test_what_is_not_reached_is_said_with_its_reason_and_what_is_reached_is_only_counted() -> None:
    found = result(sglang_router_tuned=[10.0], turn_admission=[16.0])
    missed = msgspec.structs.replace(found.verdicts[0], arm="working-set", claim="w2: slower", missed_by=1.5)
    text = not_reached([replace(found, workload="w2", verdicts=(*found.verdicts, missed))])
    assert text.startswith("`working-set` meets 0 of its 1 claims; `turn-admission` meets 0 of its 1 claims.")
    assert "| w2: slower | working-set |" in text
    assert "- w2: nobody can meet" in text
    met = not_reached([replace(found, verdicts=(msgspec.structs.replace(missed, met=True),))])
    assert met == "`working-set` meets 1 of its 1 claims.\n"


def test_what_is_missed_on_some_runs_stands_beside_what_comes_of_the_same_claims_on_others() -> None:
    found = result(sglang_router_tuned=[10.0], turn_admission=[16.0])
    missed = msgspec.structs.replace(found.verdicts[0], arm="working-set", claim="w2: slower", missed_by=1.5)
    met = msgspec.structs.replace(missed, claim="w2-tracelab: faster", met=True)
    traced = replace(found, workload="w2-traced", verdicts=(*found.verdicts, met))
    text = not_reached([replace(found, workload="w2", verdicts=(missed,)), traced])
    _, opinion = text.split(
        "The claims of w2, met or missed, on the runs of w2-traced, coding sessions in the shape of "
    )
    assert "`working-set` meets 1 of 1:" in opinion
    assert "| w2-tracelab: faster | working-set |" in opinion
    assert "turn-admission" not in opinion
    assert "on the runs of" not in not_reached([replace(found, workload="w2", verdicts=(missed,))]), "not measured"
    assert "on the runs of" not in not_reached([traced]), "nothing is missed that it could stand beside"


def test_a_workload_that_is_no_more_is_told_all_the_same() -> None:
    text = section([replace(result(direct=[1.0]), workload="w99")], "pictures")
    assert "### w99: w99" in text


def test_an_arm_of_another_commit_has_claims_of_its_own() -> None:
    found = result(sglang_router_tuned=[10.0], turn_admission=[16.0])
    other = msgspec.structs.replace(found.verdicts[0], arm="turn-admission@abc", met=True)
    said = counted([replace(found, verdicts=(*found.verdicts, other))])
    assert said == "`turn-admission` meets 0 of its 1 claims; `turn-admission@abc` meets 1 of its 1 claims."


def test_why_something_is_missed_is_said_only_where_it_was_measured() -> None:
    found = result(sglang_router_tuned=[10.0], turn_admission=[16.0])
    missed = msgspec.structs.replace(found.verdicts[0], arm="working-set", met=False)
    unknown = msgspec.structs.replace(missed, value=None)
    assert why_missed([replace(found, workload="w2", verdicts=(unknown,))]) == []
    assert why_missed([replace(found, workload="w2", verdicts=(missed,))])[0].startswith("w2: nobody can meet")
