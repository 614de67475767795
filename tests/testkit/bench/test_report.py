"""The section of a document."""

from dataclasses import replace

from luftpause.testkit.bench.report import section
from testkit.bench.measured import result


def test_a_section_says_what_is_shown_where_and_by_whom_and_what_did_not_work() -> None:
    text = section([result(sglang_router_tuned=[10.0, 10.0], turn_admission=[16.0, 18.0])], "pictures")
    assert "Of 1 claims 0 are met." in text
    assert "**missed by 1.18×**" in text
    assert "- Machine: abacus, 2 cores" in text
    assert "commit abc, seeds 1, 2, 3 s." in text
    assert "- Absent: smg (is not installed)." in text
    assert "`w1`, × is to sglang-router-tuned:" in text
    assert "(pictures/w1-sim.svg)" in text


def test_without_results_there_is_no_section() -> None:
    assert section([], "pictures") == ""


def test_a_workload_that_is_no_more_is_told_all_the_same() -> None:
    text = section([replace(result(direct=[1.0]), workload="w99")], "pictures")
    assert "### w99: w99" in text
