"""The status page's files and the headers they are sent with. What it draws is looked at in a browser."""

import re

import pytest
from starlette.applications import Starlette

from luftpause.services.status.page import FILES, page_routes
from services.scheduler.asking import Answer, ask
from services.scheduler.running import run

STATIC = [path for path in FILES if path != "/"]


def get(path: str) -> Answer:
    async def story() -> Answer:
        return await ask(Starlette(routes=page_routes()), path)

    return run(story)


@pytest.mark.parametrize("path", FILES)
def test_every_file_is_sent_with_its_type_and_may_load_from_its_own_origin_only(path: str) -> None:
    answer = get(path)
    assert answer.status == 200
    assert answer.body
    assert answer.headers["content-type"] == FILES[path][1]
    assert answer.headers["x-content-type-options"] == "nosniff"
    policy = answer.headers["content-security-policy"]
    assert policy.startswith("default-src 'none'; ")
    assert "unsafe" not in policy
    assert "http" not in policy


@pytest.mark.parametrize("path", FILES)
def test_nothing_refers_to_another_origin_and_nothing_writes_markup(path: str) -> None:
    text = get(path).body.decode()
    assert re.findall(r"https?://(?!www\.w3\.org/2000/svg)", text) == []
    for banned in ("innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", "style=", "onclick"):
        assert banned not in text, banned


def test_the_page_refers_to_files_that_exist_and_every_file_is_referred_to() -> None:
    page = get("/").body.decode()
    scripts = "".join(get(path).body.decode() for path in STATIC if path.endswith(".js"))
    wanted = {f"/{path}" for path in re.findall(r'(?:src|href)="(page/[^"]+)"', page)}
    wanted |= {f"/page/{name}" for name in re.findall(r'from "\./([^"]+)"', scripts)}
    assert wanted == set(STATIC)


def test_tables_are_readable_without_eyes() -> None:
    page = get("/").body.decode()
    assert '<html lang="en">' in page
    assert page.count("<caption>") == page.count("<table>") == 7
    assert page.count('<th scope="col"') == page.count("<th ")
    assert page.count('role="status"') == 3
    assert "<noscript>" in page
    assert all(f'aria-labelledby="{name}-title"' in page for name in ("timeline", "held", "models", "trees"))


def test_every_element_that_the_scripts_ask_for_is_on_the_page() -> None:
    page = get("/").body.decode()
    asked = {
        name
        for path in STATIC
        if path.endswith(".js")
        for name in re.findall(r'(?:byId|new TableView)\("([\w-]+)"', get(path).body.decode())
    }
    assert len(asked) > 25
    assert sorted(name for name in asked if f'id="{name}"' not in page) == []
