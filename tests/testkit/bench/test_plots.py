"""Results as a picture."""

from xml.etree import ElementTree

from luftpause.testkit.bench.plots import COLOURS, plot
from testkit.bench.measured import result

SVG = "{http://www.w3.org/2000/svg}"


def test_a_picture_has_a_line_for_each_arm_in_each_panel() -> None:
    root = ElementTree.fromstring(plot(result(direct=[1.0], turn_admission=[2.0])))
    lines = root.findall(f"{SVG}polyline")
    assert len(lines) == 2 * 2
    assert {line.get("stroke") for line in lines} == set(COLOURS[:2])
    texts = [text.text for text in root.findall(f"{SVG}text")]
    assert "w1: batch runs that took no longer" in texts
    assert "turn-admission" in texts


def test_points_stay_in_their_panel() -> None:
    root = ElementTree.fromstring(plot(result(direct=[1.0])))
    width, height = float(root.get("width", "0")), float(root.get("height", "0"))
    for line in root.findall(f"{SVG}polyline"):
        for point in line.get("points", "").split():
            x, y = map(float, point.split(","))
            assert 0 < x < width
            assert 0 < y < height


def test_what_has_no_curves_has_no_panels() -> None:
    assert "polyline" not in plot(result(direct=[]))
