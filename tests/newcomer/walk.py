"""A newcomer's way: a clean clone, an empty home, README's own commands, the first answer at each door, the page.

Then the package's way: a wheel of it in an environment of its own, and `luftpause up` in an empty folder.

python3 tests/newcomer/walk.py [REPOSITORY]

Needs git, sh, curl and Python's own library. The commands are read from README.md, so that what it says is what is
tried; only the ports are moved to free ones. Everything is bounded; what it made is gone afterwards.
"""

import json
import os
import re
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

ROOT = Path(__file__).resolve().parents[2]
SET_UP_S = 900.0
"""Installing, with llama.cpp and a small model, and loading the model."""
STEP_S = 600.0
END_S = 60.0
OURS = re.compile(r"LUFTPAUSE_|VIRTUAL_ENV|PYTHON|OTEL_")
MOVED = {"http://127.0.0.1:8080": "dataplane", "http://127.0.0.1:7000": "runtime", "http://127.0.0.1:5001": "scheduler"}


class WrongTurnError(Exception):
    """The way ended here; says where and why."""


@contextmanager
def step(name: str) -> Iterator[None]:
    """Say what is tried, and how long it took."""
    print(f"== {name}", flush=True)
    began = time.monotonic()
    yield
    print(f"-- {name}: {time.monotonic() - began:.1f} s", flush=True)


def commands(readme: str) -> tuple[str, list[str]]:
    """Return what starts everything, and what is typed in another terminal, as README's "Try it" says.

    Raises:
        WrongTurnError: it says something else.
    """
    section = readme.partition("\n## Try it\n")[2].partition("\n## ")[0]
    blocks = re.findall(r"```sh\n(.*?)```", section, re.DOTALL)
    if len(blocks) < 2 or len(blocks[0].splitlines()) != 1:
        raise WrongTurnError("README.md says no more how to try it: a command, then those for another terminal")
    return blocks[0].strip(), blocks[1].splitlines()


def moved(command: str, urls: Mapping[str, str]) -> str:
    """Return a command with the addresses that are in use here."""
    for usual, service in MOVED.items():
        command = command.replace(usual, urls[service])
    return command


def ran(command: str, folder: Path, env: Mapping[str, str]) -> str:
    """Run a command of README and return what it printed.

    Raises:
        WrongTurnError: it failed.
    """
    print(f"$ {command}", flush=True)
    done = subprocess.run(
        ["sh", "-c", command], cwd=folder, env=env, capture_output=True, text=True, timeout=STEP_S, check=False
    )
    if done.returncode:
        raise WrongTurnError(f"{command}\nended with {done.returncode}:\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
    return done.stdout


@contextmanager
def started(command: str, folder: Path, env: Mapping[str, str]) -> Iterator[dict[str, str]]:
    """Start everything on free ports and yield where it is; Ctrl-C ends it.

    Raises:
        WrongTurnError: it did not start, or did not end as it should.
    """
    ready, log = folder.parent / f"{folder.name}.json", folder.parent / f"{folder.name}.log"
    ports = "--dataplane-port 0 --runtime-port 0 --status-port 0 --link-port 0"
    words = f"exec {command} {ports} --ready-file {ready}"
    print(f"$ {command}", flush=True)
    with log.open("wb") as output:
        program = subprocess.Popen(
            ["sh", "-c", words], cwd=folder, env=env, stdin=subprocess.DEVNULL, stdout=output, stderr=output
        )
    try:
        ends = time.monotonic() + SET_UP_S
        while not ready.exists():
            if program.poll() is not None or time.monotonic() > ends:
                raise WrongTurnError(f"{command} did not start:\n{log.read_text(errors='replace')[-4000:]}")
            time.sleep(0.1)
        print(log.read_text(errors="replace"), flush=True)
        yield json.loads(ready.read_text(encoding="utf-8"))
        program.send_signal(signal.SIGINT)
        if program.wait(END_S):
            raise WrongTurnError(f"it ended with {program.returncode}:\n{log.read_text(errors='replace')[-4000:]}")
    finally:
        if program.poll() is None:
            program.terminate()
            program.wait(END_S)


def get(url: str) -> tuple[bytes, Mapping[str, str]]:
    """Return what stands at a URL; of a stream its first line."""
    with urllib.request.urlopen(url, timeout=STEP_S) as answer:
        is_stream = answer.headers.get_content_type() == "text/event-stream"
        return answer.readline() if is_stream else answer.read(), answer.headers


def page_shows(url: str) -> None:
    """Look at the page as a browser would.

    Raises:
        WrongTurnError: something of it is not there, or it shows none of the runs.
    """
    page, headers = get(url + "/")
    if "default-src 'none'" not in headers.get("content-security-policy", ""):
        raise WrongTurnError("the page has no strict policy")
    parts = re.findall(r'(?:src|href)="([^"#:]+)"', page.decode())
    if not parts:
        raise WrongTurnError("the page loads nothing")
    for part in parts:
        get(f"{url}/{part.lstrip('/')}")
    first = json.loads(get(url + "/events")[0].removeprefix(b"data: "))
    tables = first["tables"]
    if not tables["replicas"]["rows"] or not first["changes"] or not tables["trees"]["rows"]:
        raise WrongTurnError(f"the page shows nothing: {json.dumps(first)[:2000]}")
    print(f"{len(parts) + 1} files, {len(first['lanes'])} lanes, {len(tables['trees']['rows'])} sub-agents", flush=True)


def walk(repository: str, folder: Path) -> None:
    """Go the whole way.

    Raises:
        WrongTurnError: it ended somewhere.
    """
    clone, home = folder / "luftpause", folder / "home"
    home.mkdir()
    env = {name: value for name, value in os.environ.items() if not OURS.match(name)} | {"HOME": str(home)}
    with step("clone"):
        ran(f"git clone --quiet --depth 1 {repository} {clone}", folder, env)
    start, others = commands((clone / "README.md").read_text(encoding="utf-8"))
    with step("set up, start, use it and stop"), started(start, clone, env) as urls:
        with step("first answer at the LLM door"):
            said = json.loads(ran(moved(others[0], urls), clone, env))
            print(repr(said["choices"][0]["message"]["content"][:100]), flush=True)
        with step("first answers at the MCP door"):
            print(ran(f"{others[1]} --mcp-url {urls['runtime']}/mcp", clone, env), flush=True)
        with step("the page"):
            page_shows(urls["scheduler"])
    packaged(clone, folder, env)


def packaged(clone: Path, folder: Path, env: Mapping[str, str]) -> None:
    """Install the wheel as somebody would who has no clone, and use it.

    Raises:
        WrongTurnError: it cannot be installed, or does not work.
    """
    alone = folder / "alone"
    alone.mkdir()
    with step("a wheel, installed"):
        built = f"{clone}/.venv/bin/python -m pip wheel --quiet --no-deps --no-build-isolation -w {alone}/dist {clone}"
        ran(built, alone, env)
        ran(f"{clone}/.venv/bin/python -m venv own && own/bin/pip install --quiet dist/*.whl", alone, env)
    with step("luftpause up, and an answer"), started("own/bin/luftpause up", alone, env) as urls:
        models = json.loads(get(urls["dataplane"] + "/v1/models")[0])["data"]
        asked = {"model": models[0]["id"], "messages": [{"role": "user", "content": "hello"}]}
        body = json.dumps(asked).encode()
        kind = {"content-type": "application/json"}
        request = urllib.request.Request(urls["dataplane"] + "/v1/chat/completions", body, kind)
        with urllib.request.urlopen(request, timeout=STEP_S) as answer:
            print(repr(json.load(answer)["choices"][0]["message"]["content"][:100]), flush=True)


def main() -> int:
    """Go it; return the exit code."""
    repository = sys.argv[1] if len(sys.argv) > 1 else str(ROOT)
    began = time.monotonic()
    signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored, and inherited so, where nobody waits for this
    try:
        with TemporaryDirectory(prefix="newcomer-") as folder:
            walk(repository, Path(folder))
    except (WrongTurnError, OSError, subprocess.TimeoutExpired, ValueError, KeyError) as problem:
        print(f"FAILED: {problem}", file=sys.stderr)
        return 1
    print(f"a newcomer gets there in {time.monotonic() - began:.0f} s")
    return 0


if __name__ == "__main__":
    sys.exit(main())
