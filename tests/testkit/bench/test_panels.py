"""One panel of a picture."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from luftpause.testkit.bench.ink import looks
from luftpause.testkit.bench.panels import LABEL_CHARS, LABEL_H, PLOT_H, Axis, Line, Panel, apart, drawn, round_axis


@given(st.lists(st.floats(0, 100), max_size=12), st.floats(0.5, 8))
def test_names_stand_apart_in_the_order_of_their_lines_and_within_the_panel(wanted: list[float], gap: float) -> None:
    places = apart(wanted, gap, (0, 100))
    order = sorted(range(len(wanted)), key=wanted.__getitem__)
    ordered = [places[number] for number in order]
    assert all(below - above >= gap - 1e-6 for above, below in pairwise(ordered))
    assert all(-1e-6 <= place <= 100 + 1e-6 for place in places)


def test_names_that_have_room_stand_where_their_lines_end() -> None:
    assert apart([10.0, 50.0], 17, (0, 100)) == [10.0, 50.0]


@pytest.mark.parametrize("most", [0.0, 0.37, 1.0, 7.3, 23.4, 100.0, 676.0, 12_345.0])
def test_an_axis_has_a_few_round_values_and_reaches_far_enough(most: float) -> None:
    axis = round_axis(most)
    assert axis.low == 0 < axis.high
    assert most <= axis.high * (1 + 1e-9)
    assert 2 <= len(axis.ticks) <= 7
    assert all(len(text) <= 5 for _, text in axis.ticks)


def test_what_lies_beyond_an_axis_is_at_its_end() -> None:
    axis = Axis(low=0, high=2, ticks=())
    assert [axis.share(value) for value in (-1, 1, 9)] == [0, 0.5, 1]


def panel(*labels: str) -> Panel:
    lines = [Line(label=label, points=[(0, 0), (1, 1)]) for label in labels]
    axis = Axis(low=0, high=1, ticks=[(0, "none"), (1, "all")])
    return Panel(title="a & b", better="higher is better", x=axis, y=axis, lines=lines)


def test_a_panel_is_as_high_as_its_names_need() -> None:
    assert panel("a").height == PLOT_H
    assert panel(*map(str, range(40))).height == 40 * LABEL_H


def test_a_long_name_is_cut_short_and_told_whole_to_whoever_asks() -> None:
    name = "router-" * 9
    text = "\n".join(drawn(panel(name), looks([name]), (0, 500), 0))
    assert f"{name[: LABEL_CHARS - 1]}…</text>" in text
    assert f"<title>{name}</title>" in text
    assert "a &amp; b" in text


def test_ours_are_drawn_last_over_a_halo() -> None:
    labels = ("working-set", "direct", "turn-admission")
    drawn_lines = [part for part in drawn(panel(*labels), looks(labels), (0, 500), 0) if part.startswith("<polyline")]
    kinds = [part.split('"')[1] for part in drawn_lines]
    assert kinds == ["peer0", "halo", "second", "halo", "first"]
