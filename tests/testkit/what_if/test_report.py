"""The answer in words, rows and JSON."""

import json
from dataclasses import replace

from luftpause.testkit.engine_model.figures import EngineFigures
from luftpause.testkit.what_if.asking import Answer, Question, ask
from luftpause.testkit.what_if.extract import extract
from luftpause.testkit.what_if.report import headings, report_json, rows, sentences
from testkit.what_if.recorded import declared, log_of, turn


def answer(engine: EngineFigures | None = None) -> Answer:
    told = [*declared(), *turn("1", "r", 0.0, 1.0), *turn("2", "s", 3.0, 1.0, None), *turn("3", "t", 5.0, 1.0, tools=1)]
    return ask(extract(log_of(*told)), Question(policy="sglang-router", engine=engine, base=EngineFigures()))


def test_it_says_that_it_is_an_estimate_and_what_that_rests_on() -> None:
    said = "\n".join(sentences(answer(), "scenario w1"))
    assert said.startswith("An estimate, not a replay")
    assert "3 runs (2 whole, 0 begun before the log, 1 unfinished at its end), 3 turns" in said
    assert "1 turns report none: estimated" in said
    assert "1 × m: 6 ms a step" in said
    assert "all from scenario w1" in said
    assert "simulated as recorded (turn-admission), the middle run's time is off by" in said


def test_an_unknown_error_and_runs_that_never_ended_are_said() -> None:
    given = answer()
    late = {**given.columns, "what-if": replace(given.columns["what-if"], unfinished_runs=4)}
    unknown = replace(given, error=None, columns=late, trace=replace(given.trace, policies=("of-old",)))
    said = "\n".join(sentences(unknown, "scenario w1"))
    assert "the policy of the log, of-old, cannot be simulated: the error is unknown" in said
    assert "did not end even a day after the log: what-if 4" in said


def test_the_table_shows_columns_side_by_side_and_no_class_without_runs() -> None:
    given = answer()
    assert headings(given) == (
        "",
        "recorded",
        "as recorded, simulated (turn-admission)",
        "what-if, simulated (sglang-router)",
    )
    shown = {row[0]: row[1:] for row in rows(given)}
    assert shown["interactive run p50 s"][0] == "1.00"
    assert not any(name.startswith("batch") for name in shown)
    assert shown["turns held"] == ("0", "0", "0")


def test_the_json_has_everything() -> None:
    report = json.loads(report_json(answer(EngineFigures(step_s=0.5)), 7))
    assert (report["estimate"], report["policy"], report["seed"]) == (True, "sglang-router", 7)
    assert report["engines"][0]["figures"]["step_s"] == 0.5
    assert report["trace"]["whole_runs"] == 2
    assert set(report["columns"]) == {"recorded", "as recorded", "what-if"}
