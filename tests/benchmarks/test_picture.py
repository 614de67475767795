"""The picture of the README."""

from xml.etree import ElementTree

from benchmarks.measurements import STORED
from benchmarks.picture import BARS_W, picture

from luftpause.testkit.bench.results import WorkloadResult, load_results
from luftpause.testkit.bench.tables import ratio_of

SVG = "{http://www.w3.org/2000/svg}"


def stored() -> WorkloadResult:
    return next(found for found in load_results(STORED / "bench") if (found.workload, found.engine) == ("w1", "sim"))


def test_each_arm_has_a_bar_for_each_class_and_its_figure_beside_it() -> None:
    root = ElementTree.fromstring(picture(stored()))
    bars = [bar for bar in root.findall(f"{SVG}rect") if bar.get("class") != "ground"]
    texts = [text.text for text in root.findall(f"{SVG}text")]
    assert len(bars) == 12
    assert max(float(bar.attrib["width"]) for bar in bars) <= BARS_W
    figures = {arm.arm: arm.figures for arm in stored().arms}
    for figure in ("interactive_runs_per_min", "batch_runs_per_min"):
        ours, router = figures["working-set"][figure], figures["sglang-router-tuned"][figure]
        assert f"{ours.median:.0f} · {ratio_of(ours, router):.2f}×" in texts
        assert f"{router.median:.0f}" in texts


def test_a_line_on_each_bar_tells_the_least_and_the_greatest_seed() -> None:
    root = ElementTree.fromstring(picture(stored()))
    bars = [bar for bar in root.findall(f"{SVG}rect") if bar.get("class") != "ground"]
    for bar, line in zip(bars, root.findall(f"{SVG}line"), strict=True):
        end = float(bar.attrib["x"]) + float(bar.attrib["width"])
        assert float(line.attrib["x1"]) <= end + 0.1
        assert end <= float(line.attrib["x2"]) + 0.1 <= float(bar.attrib["x"]) + BARS_W + 0.2


def test_who_does_not_see_it_is_told_the_figures() -> None:
    title = ElementTree.fromstring(picture(stored())).findtext(f"{SVG}title") or ""
    assert "luftpause, working-set" in title
    assert "sglang-router, tuned" in title
