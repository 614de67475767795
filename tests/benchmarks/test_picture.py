"""The picture of the README."""

from xml.etree import ElementTree

from benchmarks.measurements import STORED
from benchmarks.picture import BARS_W, picture

from luftpause.testkit.bench.results import WorkloadResult, load_results

SVG = "{http://www.w3.org/2000/svg}"


def stored() -> WorkloadResult:
    return next(found for found in load_results(STORED / "bench") if (found.workload, found.engine) == ("w1", "sim"))


def test_each_arm_has_a_bar_for_each_class_and_its_figure_beside_it() -> None:
    root = ElementTree.fromstring(picture(stored()))
    bars = root.findall(f"{SVG}rect")
    texts = [text.text for text in root.findall(f"{SVG}text")]
    assert len(bars) == 12
    assert max(float(bar.attrib["width"]) for bar in bars) == BARS_W
    ours = next(arm for arm in stored().arms if arm.arm == "working-set")
    assert f"{ours.figures['interactive_runs_per_min'].median:.0f}" in texts
    assert f"{ours.figures['batch_runs_per_min'].median:.0f}" in texts


def test_who_does_not_see_it_is_told_the_figures() -> None:
    title = ElementTree.fromstring(picture(stored())).findtext(f"{SVG}title") or ""
    assert "luftpause, working-set" in title
    assert "sglang-router, tuned" in title
