"""The pictures of stored results in a real browser: all of each is to be seen, by day and by night."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from benchmarks.measurements import PICTURE, STORED, pages

from stories.browser import PROGRAM, Page, browser

pytestmark = [
    pytest.mark.timeout(180),
    pytest.mark.skipif(not PROGRAM, reason="needs a Chromium: apt-get install chromium"),
]

OUTSIDE = """
(() => {
  const whole = document.documentElement.viewBox.baseVal
  return [...document.querySelectorAll("text")].filter(text => {
    const box = text.getBBox()
    return box.x < 0 || box.y < 0 || box.x + box.width > whole.width || box.y + box.height > whole.height
  }).map(text => text.textContent)
})()
"""
OVER_EACH_OTHER = """
(() => {
  const boxes = [...document.querySelectorAll("text")].map(text => [text.textContent, text.getBBox()])
  return boxes.flatMap(([one, a], at) => boxes.slice(at + 1).filter(([_, b]) =>
    a.x + 1 < b.x + b.width && b.x + 1 < a.x + a.width && a.y + 4 < b.y + b.height && b.y + 4 < a.y + a.height
  ).map(([other]) => one + " over " + other))
})()
"""
COLOURS = """
["first", "quiet", "ground"].map(name => getComputedStyle(document.querySelector("." + name)).fill).join(" ")
"""


@pytest.fixture
def page(tmp_path: Path) -> Iterator[Page]:
    with browser(tmp_path) as page:
        page.look(width=1100, height=900)
        yield page


def test_no_text_of_any_picture_leaves_it_or_stands_on_another(page: Page, tmp_path: Path) -> None:
    pictures = {path.stem: text for path, text in pages(STORED).items() if path.suffix == ".svg"}
    assert PICTURE.stem in pictures
    for name, text in pictures.items():
        file = tmp_path / f"{name}.svg"
        file.write_text(text, encoding="utf-8")
        page.go(file.as_uri())
        assert page.evaluate(OUTSIDE) == [], name
        assert page.evaluate(OVER_EACH_OTHER) == [], name
    assert page.faults == []


def test_by_night_all_has_other_colours(page: Page, tmp_path: Path) -> None:
    file = tmp_path / "w1.svg"
    file.write_text(pages(STORED)[STORED / "bench" / "w1-sim.svg"], encoding="utf-8")
    seen = []
    for dark in (False, True):
        page.look(width=1100, height=900, dark=dark)
        page.go(file.as_uri())
        seen.append(str(page.evaluate(COLOURS)).split(") "))
    day, night = seen
    assert all(one != other for one, other in zip(day, night, strict=True))
