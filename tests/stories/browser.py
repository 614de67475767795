"""A real headless Chromium, told what to do over two pipes: no driver, no WebSocket, no port."""

import base64
import json
import os
import select
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

WAIT_S = 20.0
PROGRAM = next((path for name in ("chromium", "chromium-browser", "google-chrome") if (path := shutil.which(name))), "")
_FLAGS = (
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-extensions",
    "--disable-background-networking",
    "--disable-component-update",
    "--no-first-run",
    "--hide-scrollbars",
    "--remote-debugging-pipe",
)
_KEYS = {"ArrowUp": 38, "ArrowDown": 40, "ArrowLeft": 37, "ArrowRight": 39, "End": 35, "Enter": 13}


Notice = Callable[[Mapping[str, Any]], None]

_ON_PIPES = """
import fcntl, os, sys
there, here = (fcntl.fcntl(int(pipe), fcntl.F_DUPFD, 10) for pipe in sys.argv[1:3])
os.dup2(there, 3)
os.dup2(here, 4)
os.execv(sys.argv[3], sys.argv[3:])
"""
"""The browser reads from pipe 3 and writes to pipe 4."""


class Page:
    """One tab. What went wrong in it stands in `faults`: exceptions, failed loads, broken content policies."""

    def __init__(self, pipes: "Pipes", session: str) -> None:
        self._pipes = pipes
        self._session = session
        self.faults: list[str] = []

    def call(self, method: str, **params: object) -> dict[str, Any]:
        """Call a method of the protocol."""
        return self._pipes.call(method, params, self._session, self._notice)

    def evaluate(self, script: str) -> object:
        """Return what an expression comes to; promises are waited for."""
        found = self.call("Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True)
        assert "exceptionDetails" not in found, found["exceptionDetails"]
        return found["result"].get("value")

    def wait(self, script: str) -> object:
        """Wait until an expression is true, and return what it comes to."""
        deadline = time.monotonic() + WAIT_S
        while not (found := self.evaluate(script)):
            assert time.monotonic() < deadline, f"never true: {script}; {self.faults}; {self.text()}"
            time.sleep(0.05)
        return found

    def text(self, selector: str = "body") -> str:
        """The text that an element shows."""
        return str(self.evaluate(f"document.querySelector({json.dumps(selector)})?.innerText ?? ''"))

    def press(self, key: str) -> None:
        """Press a key and let it go."""
        text = key if len(key) == 1 else "\r" if key == "Enter" else ""
        code = {"windowsVirtualKeyCode": _KEYS.get(key, 0), "key": key}
        self.call("Input.dispatchKeyEvent", type="keyDown", text=text, **code)
        self.call("Input.dispatchKeyEvent", type="keyUp", **code)

    def type(self, text: str) -> None:
        """Type into what has the focus."""
        self.call("Input.insertText", text=text)

    def go(self, url: str) -> None:
        """Open another address."""
        self.call("Page.navigate", url=url)
        self.wait("document.readyState === 'complete'")

    def look(self, *, width: int, height: int, dark: bool = False) -> None:
        """Take a size and a colour scheme."""
        size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 500}
        self.call("Emulation.setDeviceMetricsOverride", **size)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.call("Emulation.setEmulatedMedia", features=[scheme])

    def screenshot(self, path: Path, *, whole: bool = True) -> None:
        """Write what is to be seen as a PNG."""
        shot = self.call("Page.captureScreenshot", format="png", captureBeyondViewport=whole)
        path.write_bytes(base64.b64decode(shot["data"]))

    def _notice(self, event: Mapping[str, Any]) -> None:
        if event.get("sessionId") != self._session:
            return
        if event["method"] == "Runtime.exceptionThrown":
            self.faults.append(json.dumps(event["params"]["exceptionDetails"])[:500])
        elif event["method"] == "Log.entryAdded" and event["params"]["entry"]["level"] == "error":
            self.faults.append(event["params"]["entry"]["text"])


class Pipes:
    """The protocol: JSON messages, each ended by a zero byte."""

    def __init__(self, to: int, back: int) -> None:
        self._to = to
        self._back = back
        self._rest = b""
        self._number = 0

    def call(self, method: str, params: Mapping[str, object], session: str | None, notice: Notice) -> dict[str, Any]:
        """Send a call and return its result; events on the way go to `notice`."""
        self._number += 1
        message = {"id": self._number, "method": method, "params": params}
        if session is not None:
            message["sessionId"] = session
        os.write(self._to, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._read()
            if answer.get("id") == self._number:
                assert "error" not in answer, (method, answer)
                result: dict[str, Any] = answer["result"]
                return result
            if "method" in answer:
                notice(answer)

    def _read(self) -> dict[str, Any]:
        while b"\0" not in self._rest:
            ready, _, _ = select.select([self._back], [], [], WAIT_S)
            assert ready, "the browser said nothing"
            piece = os.read(self._back, 1 << 20)
            assert piece, "the browser ended"
            self._rest += piece
        text, _, self._rest = self._rest.partition(b"\0")
        message: dict[str, Any] = json.loads(text)
        return message


@contextmanager
def browser(directory: Path) -> Iterator[Page]:
    """A browser with one page, for the length of a block. Its profile stands in `directory`."""
    there, to = os.pipe()
    back, here = os.pipe()
    process = subprocess.Popen(
        [
            *(sys.executable, "-c", _ON_PIPES, str(there), str(here), PROGRAM),
            *_FLAGS,
            f"--user-data-dir={directory / 'profile'}",
            "about:blank",
        ],
        pass_fds=(there, here),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    os.close(there)
    os.close(here)
    pipes = Pipes(to, back)
    try:
        yield _first_page(pipes)
    finally:
        os.close(to)
        process.terminate()
        try:
            process.wait(WAIT_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait(WAIT_S)
        os.close(back)


def _first_page(pipes: Pipes) -> Page:
    def ignore(_: object) -> None:
        """Nobody looks yet."""

    target = pipes.call("Target.createTarget", {"url": "about:blank"}, None, ignore)["targetId"]
    session = pipes.call("Target.attachToTarget", {"targetId": target, "flatten": True}, None, ignore)["sessionId"]
    page = Page(pipes, session)
    for domain in ("Page", "Runtime", "Log"):
        page.call(f"{domain}.enable")
    return page
