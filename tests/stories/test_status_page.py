"""The status page in a real browser, before the real program: what a newcomer, an operator and a keyboard see."""

import asyncio
import json
import subprocess
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest
from mcp import Client

from stories.browser import PROGRAM, Page, browser
from stories.programs import Program, running
from stories.set_ups import FREE_PORTS, MODEL, free_port, launched_engines, write

pytestmark = [
    pytest.mark.timeout(180),
    pytest.mark.skipif(not PROGRAM, reason="needs a Chromium: apt-get install chromium"),
]
HOSTILE = "<img src=x onerror=document.title='owned'>"
TASK = f"[tools:1] [tool:delete_note] {HOSTILE}"
TOKEN = "open-sesame"


def words(tmp_path: Path) -> str:
    fake = ["${python}", "-m", "luftpause", "fake-mcp", "--stdio", "--delay-s", "0", "--deep-delay-s", "0"]
    command = json.dumps([*fake, "--destructive", "--effects", str(tmp_path / "effects")])
    return f'[[tools]]\nname = "notes"\ncommand = {command}\n'


@pytest.fixture
def up(tmp_path: Path) -> Iterator[Program]:
    config = write(tmp_path, FREE_PORTS, launched_engines("--speedup", "5"), words(tmp_path))
    with running(tmp_path, "up", "up", "--config", config, env={"LUFTPAUSE_TOKEN": ""}) as program:
        yield program


@pytest.fixture
def page(tmp_path: Path) -> Iterator[Page]:
    with browser(tmp_path) as page:
        page.look(width=1280, height=900)
        yield page


def chat(up: Program, caller: str, token: str = "") -> None:
    """Take a turn at the LLM door."""
    body = json.dumps({"model": MODEL, "messages": [{"role": "user", "content": "[tools:0] hello"}]}).encode()
    headers = {"content-type": "application/json", "x-luftpause-caller": caller, "authorization": f"Bearer {token}"}
    request = urllib.request.Request(up.url("dataplane") + "/v1/chat/completions", body, headers)
    with urllib.request.urlopen(request, timeout=60) as answer:
        assert answer.status == 200


def spawned(up: Program, task: str = TASK) -> str:
    """Begin a sub-agent whose one tool call a person must allow."""

    async def ask() -> str:
        async with Client(up.url("runtime") + "/mcp") as client:
            order = {"task": task, "tools": ["delete_note"], "model": MODEL}
            result = await asyncio.wait_for(client.call_tool("spawn", order), 60)
            assert result.structured_content is not None, result.content
            handle: str = result.structured_content["handle"]
            return handle

    return asyncio.run(ask())


def test_a_newcomer_reads_what_to_do_and_sees_it_happen(up: Program, page: Page) -> None:
    page.go(up.url("scheduler"))
    page.wait("document.querySelectorAll('#welcome-steps code').length === 4")
    welcome = page.text("#welcome")
    assert f"{up.url('dataplane')}/v1" in welcome
    assert f"{up.url('runtime')}/mcp" in welcome
    assert "luftpause connect" in welcome

    chat(up, HOSTILE)

    page.wait("document.getElementById('welcome').hidden")
    page.wait("document.getElementById('runs').innerText.includes('idle')")
    page.evaluate("document.getElementById('timeline').focus()")
    page.press("ArrowDown")
    page.press("ArrowDown")
    page.press("ArrowDown")
    page.wait("document.getElementById('timeline-said').textContent.includes('onerror=')")
    assert page.text("#timeline-said").count(HOSTILE) == 1
    assert (page.evaluate("document.title"), page.evaluate("document.images.length")) == ("luftpause", 1)
    assert page.faults == []


def test_a_person_allows_a_call_on_the_page_and_its_run_goes_on(up: Program, page: Page) -> None:
    page.go(up.url("scheduler"))
    handle = spawned(up)
    page.wait("!document.getElementById('approvals').hidden")
    assert page.evaluate("document.title") == "(1) luftpause"
    asked = page.text("#approvals")
    assert ("delete_note" in asked, HOSTILE in asked) == (True, True)

    page.evaluate("document.querySelector('#approvals button.primary').click()")

    page.wait("document.getElementById('approvals').hidden")
    row = f"document.querySelector('[data-run={json.dumps(handle)}]')"
    page.wait(f"{row}?.innerText.includes('Finished')")
    assert HOSTILE in str(page.evaluate(f"{row}.innerText"))
    assert page.faults == []


@pytest.mark.parametrize("dark", [False, True])
def test_whatever_a_name_is_like_it_is_text_in_its_place_and_all_of_it_is_seen(
    up: Program, page: Page, dark: bool
) -> None:
    turned, long = "\u202egnp.\u2066exe", "W" * 400
    chat(up, f"{HOSTILE}{long}"[:120])
    spawned(up, f"{TASK} {turned} {long}")
    for width in (1280, 390):
        page.look(width=width, height=800, dark=dark)
        page.go(up.url("scheduler"))
        page.wait("!document.getElementById('approvals').hidden")
        assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth"), width
        told = str(page.evaluate("document.getElementById('approvals').textContent"))
        assert ("\\u202egnp.\\u2066exe" in told, "\u202e" in told) == (True, False)
        labels = str(page.evaluate("document.querySelector('#approvals button').getAttribute('aria-label')"))
        assert "\u202e" not in labels
        assert (page.evaluate("document.title"), page.evaluate("document.images.length")) == ("(1) luftpause", 1)
    assert page.faults == []


def test_the_page_finds_a_scheduler_that_was_started_again(tmp_path: Path, page: Page) -> None:
    port = free_port()
    ports = FREE_PORTS.replace("http_port = 0", f"http_port = {port}")
    assert ports != FREE_PORTS
    config = write(tmp_path, ports, launched_engines("--speedup", "5"))
    with running(tmp_path, "first", "up", "--config", config, env={"LUFTPAUSE_TOKEN": ""}) as first:
        chat(first, "before")
        page.go(first.url("scheduler"))
        page.wait("document.querySelector('#lanes-height').clientHeight > 0")
        page.wait("document.getElementById('runs').innerText.includes('idle')")
    page.wait("document.getElementById('link').dataset.state === 'lost'")
    assert page.evaluate("document.querySelector('main').classList.contains('stale')")
    with running(tmp_path, "second", "up", "--config", config, env={"LUFTPAUSE_TOKEN": ""}) as second:
        page.wait("document.getElementById('link').dataset.state === 'live'")
        assert not page.evaluate("document.querySelector('main').classList.contains('stale')")
        for number in range(2):
            chat(second, f"after-{number}")
        page.wait(r"/idle[^]*\t2\t/.test(document.getElementById('runs').innerText)")
    assert [fault for fault in page.faults if "ERR_" not in fault] == []


def test_the_keyboard_does_all_that_the_pointer_does(up: Program, page: Page) -> None:
    for number in range(3):
        chat(up, f"caller-{number}")
    page.go(up.url("scheduler"))
    page.wait("document.querySelector('#lanes-height').clientHeight > 60")
    page.evaluate("document.getElementById('timeline').focus()")
    page.press("ArrowDown")
    said = [page.wait("document.getElementById('timeline-said').textContent")]
    for _ in range(4):
        page.press("ArrowDown")
        said.append(page.evaluate("document.getElementById('timeline-said').textContent"))
    assert len(set(said)) >= 4, said
    page.press("ArrowLeft")
    assert ": decode (" in str(page.wait("document.getElementById('timeline-said').textContent"))
    for key, span in (("+", "30 s"), ("+", "20 s"), ("-", "30 s")):
        page.press(key)
        assert page.text("#zoom-span") == span
    page.press("PageUp")
    assert page.evaluate("document.getElementById('go-live').getAttribute('aria-pressed')") == "false"
    page.press("End")
    assert page.evaluate("document.getElementById('go-live').getAttribute('aria-pressed')") == "true"
    page.evaluate("document.getElementById('lane-filter').focus()")
    page.type("caller-1")
    page.wait("document.querySelector('#lanes-height').style.height === '22px'")


def test_the_page_asks_for_the_token_once_in_a_tab(tmp_path: Path, page: Page) -> None:
    config = write(tmp_path, FREE_PORTS, launched_engines("--speedup", "5"))
    with running(tmp_path, "up", "up", "--config", config, env={"LUFTPAUSE_TOKEN": TOKEN}) as up:
        page.go(up.url("scheduler"))
        page.wait("!document.getElementById('login').hidden")
        page.type("wrong")
        page.press("Enter")
        page.wait("document.getElementById('token-wrong').textContent === 'That token is not the right one.'")
        page.type(TOKEN)
        page.press("Enter")
        page.wait("document.getElementById('link').dataset.state === 'live'")
        assert page.evaluate("document.getElementById('login').hidden")

        page.go(up.url("scheduler") + "/?again")

        page.wait("document.getElementById('link').dataset.state === 'live'")
        assert TOKEN not in str(page.evaluate("document.documentElement.outerHTML"))
    page.wait("document.getElementById('link').dataset.state === 'lost'")
    assert [fault for fault in page.faults if "401" not in fault and "ERR_" not in fault] == []


def test_an_unknown_runtime_is_refused_in_words(up: Program, page: Page) -> None:
    page.go(up.url("scheduler") + "/?runtime=http://elsewhere:1")
    page.wait("document.getElementById('link').textContent.includes('is no runtime known here')")


CONTRAST = """
(() => {
  const parsed = (text) => (text.match(/[\\d.]+/g) ?? []).map(Number);
  const light = ([red, green, blue]) => {
    const part = (value) => (value / 255 <= 0.03928 ? value / 255 / 12.92 : ((value / 255 + 0.055) / 1.055) ** 2.4);
    return 0.2126 * part(red) + 0.7152 * part(green) + 0.0722 * part(blue);
  };
  const behind = (element) => {
    for (let each = element; each; each = each.parentElement) {
      const colour = parsed(getComputedStyle(each).backgroundColor);
      if (colour.length === 3 || colour[3] > 0) return colour;
    }
    return [255, 255, 255];
  };
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  const poor = [];
  while (walker.nextNode()) {
    const element = walker.currentNode.parentElement;
    if (!walker.currentNode.data.trim() || !element.checkVisibility() || element.closest(":disabled")) continue;
    const [over, under] = [parsed(getComputedStyle(element).color), behind(element)].map(light);
    const ratio = (Math.max(over, under) + 0.05) / (Math.min(over, under) + 0.05);
    if (ratio < 4.5) poor.push([walker.currentNode.data.trim().slice(0, 40), ratio.toFixed(2)]);
  }
  return JSON.stringify(poor);
})()
"""
NAMELESS = """
JSON.stringify([...document.querySelectorAll("a, button, input, [tabindex='0'], [role=region], section, table")]
  .filter((each) => each.checkVisibility())
  .filter((each) => !(each.getAttribute("aria-label") || each.textContent.trim() || each.labels?.length
    || document.getElementById(each.getAttribute("aria-labelledby"))?.textContent.trim()))
  .map((each) => each.outerHTML.slice(0, 120)))
"""

LISTEN = """
window.heard = new Set();
new MutationObserver(() => heard.add(document.getElementById("link").textContent))
  .observe(document.getElementById("link"), { childList: true, characterData: true, subtree: true });
"""


@pytest.mark.parametrize("dark", [False, True])
def test_every_word_can_be_read_and_all_that_takes_the_focus_has_a_name(up: Program, page: Page, dark: bool) -> None:
    page.look(width=1280, height=900, dark=dark)
    page.go(up.url("scheduler"))
    page.wait("document.querySelectorAll('#welcome-steps code').length === 4")
    assert (page.evaluate(CONTRAST), page.evaluate(NAMELESS)) == ("[]", "[]")
    chat(up, "caller")
    spawned(up)
    page.wait("!document.getElementById('approvals').hidden && !document.getElementById('timeline-panel').hidden")
    assert (page.evaluate(CONTRAST), page.evaluate(NAMELESS)) == ("[]", "[]")


def test_the_first_turn_is_offered_once_there_is_an_engine_for_it(tmp_path: Path, page: Page) -> None:
    config = write(tmp_path, FREE_PORTS, launched_engines("--load-s", "3"))
    with running(tmp_path, "up", "up", "--config", config, env={"LUFTPAUSE_TOKEN": ""}) as up:
        page.go(up.url("scheduler"))
        page.wait("document.querySelectorAll('#welcome-steps code').length === 3")
        page.wait("document.querySelectorAll('#welcome-steps code').length === 4")


def test_the_first_turn_that_the_page_offers_is_a_turn(up: Program, page: Page) -> None:
    page.go(up.url("scheduler"))
    page.wait("document.querySelectorAll('#welcome-steps code').length === 4")
    command = page.text("#welcome-steps li:last-child code")
    done = subprocess.run(["sh", "-c", command], capture_output=True, timeout=60, check=False)
    assert json.loads(done.stdout)["choices"], done
    page.wait("document.getElementById('welcome').hidden")


def test_a_sub_agent_is_called_by_its_task_and_whoever_listens_hears_that_it_waits(up: Program, page: Page) -> None:
    page.go(up.url("scheduler"))
    spawned(up, f"[tools:1] [tool:delete_note] tidy {HOSTILE}")
    page.wait("document.getElementById('asked').textContent === '1 tool call waits for you'")
    page.evaluate("document.getElementById('lane-filter').focus()")
    page.type("TIDY")
    page.wait("document.querySelector('#lanes-height').style.height === '22px'")
    page.evaluate("document.getElementById('timeline').focus()")
    page.press("ArrowDown")
    page.wait(f"document.getElementById('timeline-said').textContent.includes({json.dumps(HOSTILE)})")
    page.evaluate("document.querySelector('#approvals button.primary').click()")
    page.wait("document.getElementById('asked').textContent === ''")
    assert page.evaluate("document.title") == "luftpause"


def test_who_lost_the_scheduler_is_told_once_and_not_again_and_again(tmp_path: Path, page: Page) -> None:
    config = write(tmp_path, FREE_PORTS, launched_engines("--speedup", "5"))
    with running(tmp_path, "up", "up", "--config", config, env={"LUFTPAUSE_TOKEN": ""}) as up:
        chat(up, "caller")
        page.go(up.url("scheduler"))
        page.wait("document.getElementById('link').dataset.state === 'live'")
        page.evaluate(LISTEN)
        page.wait("document.querySelector('#lanes-height').clientHeight > 0")
    page.wait("document.getElementById('about').textContent.startsWith('these figures are ')")
    drawn = page.evaluate("document.getElementById('bars').toDataURL()")
    first = page.evaluate("document.getElementById('about').textContent")
    page.wait(f"document.getElementById('about').textContent !== {json.dumps(first)}")
    page.wait("window.heard.size >= 1")
    assert page.evaluate("document.getElementById('bars').toDataURL()") == drawn, "what runs do now is not known"
    assert all("s old" not in word for word in json.loads(str(page.evaluate("JSON.stringify([...heard])"))))
