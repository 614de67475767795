"""How far a bench is."""

import sys

import pytest

from luftpause.cli.bench_progress import Bar, progress


def measured(expected_s: float | None = None) -> None:
    with progress("w1", 3, expected_s) as steps:
        for what in ("w1: direct, seed 1", "w1: smg, seed 1"):
            steps.begins(what)
            steps.done(what)


def test_where_nobody_watches_a_line_says_what_was_done(capsys: pytest.CaptureFixture[str]) -> None:
    measured()
    assert capsys.readouterr().err == "w1: 2 of 3 measurements are done\n"


@pytest.mark.parametrize(("expected_s", "said"), [(40.4, "about 40 s"), (89.0, "about 89 s"), (570.0, "about 10 min")])
def test_how_long_it_takes_is_said_before_if_it_is_known(
    capsys: pytest.CaptureFixture[str], expected_s: float, said: str
) -> None:
    measured(expected_s)
    assert capsys.readouterr().err.splitlines()[0] == f"w1: 3 measurements, {said}"


def test_on_a_terminal_a_bar_says_what_is_measured_now(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    monkeypatch.setenv("TTY_COMPATIBLE", "1")
    monkeypatch.setenv("COLUMNS", "100")
    with progress("w1", 3, None) as steps:
        steps.begins("w1: direct, seed 1")
        assert isinstance(steps, Bar)
        steps.bar.refresh()
        shown = capsys.readouterr().err
        steps.done("w1: direct, seed 1")
    assert "w1: direct, seed 1" in shown
    assert "0/3" in shown
    assert "are done" not in capsys.readouterr().err
