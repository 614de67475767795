"""Results as a picture."""

from dataclasses import replace
from xml.etree import ElementTree

import pytest

from luftpause.testkit.bench.plots import SHOWN, WIDTH, plot
from luftpause.testkit.bench.results import ArmResult, WorkloadResult
from luftpause.testkit.bench.samples import QUANTILES, TIME_SLICES, Curves
from luftpause.testkit.bench.workloads import WORKLOADS
from testkit.bench.measured import result

SVG = "{http://www.w3.org/2000/svg}"


def shown(found: WorkloadResult) -> ElementTree.Element:
    return ElementTree.fromstring(plot(found))


def texts(root: ElementTree.Element) -> list[str]:
    return ["".join(text.itertext()) for text in root.iter(f"{SVG}text")]


def with_curves(found: WorkloadResult, *classes: str) -> WorkloadResult:
    ranked = tuple(float(second) for second in range(QUANTILES + 1))
    curves = Curves(run_s=dict.fromkeys(classes, ranked), cached=((1, 2),) * TIME_SLICES)
    return replace(found, arms=tuple(replace(arm, curves=curves) for arm in found.arms))


def test_each_arm_has_a_line_and_its_name_at_the_end_of_it_in_each_panel() -> None:
    root = shown(with_curves(result(direct=[1.0], turn_admission=[2.0]), "batch", "interactive"))
    said = texts(root)
    assert [line for line in said if "is better" in line] == [
        "interactive run time, s (lower is better)",
        "batch run time, s (lower is better)",
        "known prompts found in caches (higher is better)",
    ]
    assert said.count("turn-admission") == said.count("direct") == 3
    lines = [line for line in root.iter(f"{SVG}polyline") if line.get("class") != "halo"]
    assert [line.findtext(f"{SVG}title") for line in lines] == ["direct", "turn-admission"] * 3


def test_a_title_says_what_the_load_is_and_where_it_was_measured() -> None:
    root = shown(with_curves(result(direct=[1.0, 2.0]), "batch"))
    assert texts(root)[:2] == [
        "w1: Flood: 48 batch and 4 interactive agents",
        "modelled engines in virtual time, 2 seeds, commit abc",
    ]
    assert (root.findtext(f"{SVG}title") or "").startswith("w1: Flood")


def test_every_mark_stays_in_the_picture() -> None:
    one = result(direct=[1.0])
    many = replace(one, arms=tuple(replace(one.arms[0], arm=f"arm-{number}") for number in range(25)))
    root = shown(with_curves(many, "batch", "interactive"))
    height = float(root.get("height", "0"))
    for line in root.iter(f"{SVG}polyline"):
        for point in line.get("points", "").split():
            x, y = map(float, point.split(","))
            assert 0 < x < WIDTH
            assert 0 < y < height
    assert all(0 < float(text.get("x", "0")) < WIDTH for text in root.iter(f"{SVG}text"))


def test_the_slowest_runs_do_not_press_all_others_together() -> None:
    ranked = (*[1.0] * QUANTILES, 1000.0)
    found = result(direct=[1.0])
    slow = replace(found, arms=(replace(found.arms[0], curves=Curves(run_s={"batch": ranked})),))
    assert "1000" not in texts(shown(slow))
    assert f"p{SHOWN:.0%}".rstrip("%") in texts(shown(slow))


def test_scenarios_of_one_workload_stand_below_each_other_with_their_names() -> None:
    found = result(direct=[1.0])
    both = replace(found, workload="w2", arms=tuple(replace(found.arms[0], scenario=f"w2-{at}") for at in "ab"))
    assert {"w2-a", "w2-b"} <= set(texts(shown(both)))


HOSTILE = "<script>alert(1)</script>\x1b[31m\x00\"'&"


def hostile(arm: ArmResult) -> ArmResult:
    curves = Curves(run_s={HOSTILE: (1.0, 2.0)}, cached=((1, 2),))
    return replace(arm, arm=HOSTILE, scenario=HOSTILE, curves=curves)


def test_names_that_somebody_else_chose_are_text_and_nothing_else() -> None:
    found = result(direct=[1.0])
    root = shown(replace(found, workload=HOSTILE, commit=HOSTILE, arms=tuple(map(hostile, found.arms))))
    assert {child.tag for child in root.iter()} <= {
        f"{SVG}{tag}" for tag in ("svg", "style", "title", "rect", "text", "tspan", "line", "polyline", "path")
    }
    assert any("<script>alert(1)</script>" in text for text in texts(root))


@pytest.mark.parametrize("workload", WORKLOADS)
def test_a_title_fits_into_the_picture(workload: str) -> None:
    title = texts(shown(replace(result(direct=[1.0]), workload=workload)))[0]
    assert len(title) * 9.5 < WIDTH


def test_what_has_no_curves_has_no_panels() -> None:
    assert "polyline" not in plot(result(direct=[])).partition("</style>")[2]
