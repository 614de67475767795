"""Tables on a terminal."""

import pytest

from luftpause.cli.tables import print_table
from luftpause.testkit.bench.tables import Table


def test_a_table_has_its_title_and_all_its_cells(capsys: pytest.CaptureFixture[str]) -> None:
    print_table("Rivers", (("name", "km"), [("Drava", "749"), ("Tisza", "966")]))
    out = capsys.readouterr().out
    assert out.startswith("Rivers")
    for cell in ("name", "km", "Drava", "749", "Tisza", "966"):
        assert cell in out
    print_table("", (("name",), [("Po",)]))
    assert "Po" in capsys.readouterr().out


def test_figures_stand_at_the_right_and_words_at_the_left(capsys: pytest.CaptureFixture[str]) -> None:
    rivers: Table = (("name", "km", "flows into"), [("Drava", "749", "Danube"), ("Inn", "–", "the Black Sea, late")])
    print_table("", rivers)
    lines = capsys.readouterr().out.splitlines()
    assert "│ 749 │ Danube  " in lines[3]
    assert "│   – │ the Black Sea" in lines[4]


def test_on_a_terminal_the_best_are_bold_and_verdicts_have_colours(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    table: Table = (("arm", "runs", "verdict"), [("[red]a", "3 1.5×*", "met"), ("b", "2", "missed by 2.00×")])
    print_table("", table)
    assert "\x1b" not in capsys.readouterr().out
    monkeypatch.setenv("FORCE_COLOR", "1")
    print_table("", table)
    out = capsys.readouterr().out
    for said in ("\x1b[1m3 1.5×*", "\x1b[32mmet", "\x1b[31mmissed by 2.00×", "[red]a"):
        assert said in out


ARMS: Table = (
    ("arm", "interactive runs/min", "interactive p50 s", "batch runs/min", "re-prefilled tokens/run"),
    [
        ("sglang-router-manual", "8.0 (7.0–9.0)", "28.3 (25.7–30.9)", "102 (100–104)", "4,316 (4,251–4,380)"),
        (
            "working-set",
            "30.5 (29.5–31.5) 3.89×*",
            "7.6 (7.1–8.1) 0.27×*",
            "144 (143–146) 1.42×*",
            "230 (194–265) 0.05×*",
        ),
    ],
)


@pytest.mark.parametrize("columns", [80, 100, 180])
def test_no_figure_is_broken_up_and_no_line_is_longer_than_the_terminal(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, columns: int
) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    print_table("", ARMS)
    out = capsys.readouterr().out
    assert all(len(line) <= columns for line in out.splitlines())
    words = out.replace("│", " ").split()
    for row in ARMS[1]:
        for cell in row if columns > 80 else row[:-1]:
            assert set(cell.split()) <= set(words)


def test_columns_that_have_no_room_are_left_out_and_named(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "50")
    print_table("", ARMS)
    out = " ".join(capsys.readouterr().out.split())
    assert "No room here for batch runs/min, re-prefilled tokens/run: widen the terminal, or set COLUMNS." in out
