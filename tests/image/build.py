"""Runs the steps of deploy/Dockerfile without Docker: a stage is this machine's root, with what its steps change above.

sudo python3 tests/image/build.py [--python FOLDER] [--pure]

Nothing of this machine is changed: the stages are overlays in memory, in a mount namespace of their own. What is built
is then started as the image would be, as its user, and asked for its health. Needs Linux, root, unshare, setpriv, a C
compiler or apt-get, and the network or index that pip is configured for.
"""

import argparse
import json
import os
import shlex
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
INSIDE = "IMAGE_STEPS_INSIDE"
STEP_S = 3600
START_S = 120.0
MEMORY = "8g"
IMAGE_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


@dataclass
class Stage:
    """One `FROM`: the folders that lie above this machine's root, topmost first, and what its steps have set."""

    name: str
    layers: list[Path]
    at: Path
    env: dict[str, str] = field(default_factory=lambda: {"PATH": IMAGE_PATH})
    workdir: str = "/"
    user: str = "root"
    said: dict[str, str] = field(default_factory=dict)
    """`ENTRYPOINT`, `CMD` and `HEALTHCHECK`, as they stand there."""


def instructions(text: str) -> Iterator[tuple[str, str]]:
    """Yield each instruction and its words; lines that end in a backslash go on."""
    for line in text.replace("\\\n", "").splitlines():
        if line.strip() and not line.startswith("#"):
            word, _, rest = line.partition(" ")
            yield word, rest.strip()


class Build:
    """Runs the steps.

    Args:
        folder: holds the layers; a tmpfs.
        python: the folder of a Python, which is put into `/usr/local` as the base image has one there.
    """

    def __init__(self, folder: Path, python: str) -> None:
        self._folder = folder
        self._python = python
        self.stages: list[Stage] = []

    def run(self, text: str) -> None:
        """Run all steps of a Dockerfile.

        Raises:
            CalledProcessError: one of them fails.
        """
        for word, rest in instructions(text):
            if word == "FROM":
                self._begin(rest.split())
                continue
            if not self.stages:
                continue  # ARG, before the first stage
            stage = self.stages[-1]
            print(f"[{stage.name}] {word} {rest[:150]}", flush=True)
            began = time.monotonic()
            self._step(stage, word, rest)
            if word == "RUN":
                print(f"    {time.monotonic() - began:.0f} s", flush=True)

    def stage(self, name: str) -> Stage:
        """Return a stage by name."""
        return next(stage for stage in self.stages if stage.name == name)

    def _begin(self, words: list[str]) -> None:
        name = words[2] if len(words) > 2 else f"stage-{len(self.stages)}"
        below = next((stage for stage in self.stages if stage.name == words[0]), None)
        own, work, at = (self._folder / name / each for each in ("upper", "work", "root"))
        for each in (own, work, at):
            each.mkdir(parents=True)
        stage = Stage(name, [own, *(below.layers if below else [])], at)
        if below is not None:
            stage.env, stage.workdir, stage.user = dict(below.env), below.workdir, below.user
            stage.said = dict(below.said)
        lower = ":".join(map(str, [*stage.layers[1:], "/"]))
        _sh("mount", "-t", "overlay", "overlay", "-o", f"lowerdir={lower},upperdir={own},workdir={work}", str(at))
        _sh("mount", "-t", "proc", "proc", str(at / "proc"))
        _sh("mount", "--rbind", "/dev", str(at / "dev"))
        _sh("mount", "-t", "tmpfs", "tmpfs", str(at / "tmp"))
        if below is None:
            _sh(
                "cp",
                "-a",
                f"{self._python}/bin",
                f"{self._python}/lib",
                f"{self._python}/include",
                str(at / "usr/local"),
            )
            _sh("chroot", str(at), "ldconfig")
        self.stages.append(stage)

    def _step(self, stage: Stage, word: str, rest: str) -> None:
        if word == "RUN":
            inside(stage, ["sh", "-c", rest], STEP_S)
        elif word == "COPY":
            self._copy(stage, rest.split())
        elif word == "ENV":
            for each in shlex.split(rest):
                name, _, value = each.partition("=")
                stage.env[name] = value.replace("$PATH", stage.env["PATH"])
        elif word == "WORKDIR":
            stage.workdir = rest
            (stage.at / rest.lstrip("/")).mkdir(parents=True, exist_ok=True)
        elif word == "USER":
            stage.user = rest
        elif word in ("ENTRYPOINT", "CMD", "HEALTHCHECK"):
            stage.said[word] = rest
        elif word not in ("EXPOSE", "VOLUME", "ARG"):
            raise ValueError(f"{word} is not understood here")

    def _copy(self, stage: Stage, words: list[str]) -> None:
        source_root = ROOT
        if words[0].startswith("--from="):
            source_root = self.stage(words.pop(0).removeprefix("--from=")).at
        *sources, target = words
        into = stage.at / (target if target.startswith("/") else f"{stage.workdir}/{target}").lstrip("/")
        for source in sources:
            path = source_root / source.lstrip("/")
            is_folder = target.endswith("/") or target in (".", "./")
            place = into / path.name if path.is_file() and is_folder else into
            place.parent.mkdir(parents=True, exist_ok=True)
            if path.is_dir():
                place.mkdir(exist_ok=True)
                _sh("cp", "-a", f"{path}/.", str(place))
            else:
                _sh("cp", "-a", str(path), str(place))


def inside(stage: Stage, words: list[str], limit_s: float) -> str:
    """Run a command in a stage, as its user; return what it printed.

    Raises:
        CalledProcessError: it fails.
    """
    whose = [] if stage.user == "root" else ["--reuid", stage.user, "--regid", stage.user, "--clear-groups"]
    env = {name: value for name, value in os.environ.items() if name.startswith(("PIP_", "HTTP", "SSL"))} | stage.env
    line = f"cd {shlex.quote(stage.workdir)} && exec {shlex.join(words)}"
    command = ["chroot", str(stage.at), "setpriv", *whose, "--no-new-privs", "sh", "-c", line]
    done = subprocess.run(command, env=env, stdout=subprocess.PIPE, text=True, timeout=limit_s, check=True)
    return done.stdout


def tried(stage: Stage) -> None:
    """Start what the image starts, as its user, on a root that cannot be written, until its own check calls it healthy.

    Raises:
        RuntimeError: it never is.
    """
    for folder in ("run/luftpause", "var/lib/luftpause"):  # what compose and Kubernetes mount
        (stage.at / folder).mkdir(parents=True, exist_ok=True)
        _sh("mount", "-t", "tmpfs", "-o", "mode=0700,uid=10001,gid=10001", "tmpfs", str(stage.at / folder))
    print(inside(stage, ["luftpause", "--version"], 60), end="")
    _sh("mount", "-o", "remount,ro", str(stage.at))
    command = [*json.loads(stage.said["ENTRYPOINT"]), *json.loads(stage.said["CMD"])]
    check = json.loads(stage.said["HEALTHCHECK"].partition("CMD ")[2])
    line = f"cd {stage.workdir} && exec {shlex.join(command)}"
    whose = ["setpriv", "--reuid", stage.user, "--regid", stage.user, "--clear-groups", "--no-new-privs"]
    program = subprocess.Popen(["chroot", str(stage.at), *whose, "sh", "-c", line], env=stage.env)
    try:
        ends = time.monotonic() + START_S
        while True:
            try:
                inside(stage, check, 10)
                break
            except subprocess.CalledProcessError:
                if program.poll() is not None or time.monotonic() > ends:
                    raise RuntimeError("what the image starts was never healthy") from None
                time.sleep(0.5)
        print("healthy", flush=True)
        program.terminate()
        if program.wait(60):
            raise RuntimeError(f"it ended with {program.returncode}")
    finally:
        if program.poll() is None:
            program.kill()
            program.wait()


def _sh(*words: str) -> None:
    subprocess.run(words, timeout=300, check=True)


def main() -> int:
    """Build and try; return the exit code."""
    words = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    words.add_argument("--python", default=sys.base_prefix, metavar="FOLDER", help="where the base image's Python is")
    words.add_argument("--pure", action="store_true", help="leave out compiling, which takes minutes")
    said = words.parse_args()
    if os.environ.get(INSIDE) is None:
        unshared = ["unshare", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc"]
        return subprocess.run(
            [*unshared, sys.executable, *sys.argv], env={**os.environ, INSIDE: "1"}, check=False
        ).returncode
    folder = Path("/mnt")
    _sh("mount", "-t", "tmpfs", "-o", f"size={MEMORY}", "tmpfs", str(folder))
    build = Build(folder, said.python)
    text = (ROOT / "deploy/Dockerfile").read_text(encoding="utf-8")
    build.run(text.replace("LUFTPAUSE_COMPILE=1", "LUFTPAUSE_COMPILE=0") if said.pure else text)
    installed = build.stage("luftpause").at / "opt/luftpause"
    size = sum(each.lstat().st_size for each in installed.rglob("*"))
    print(f"/opt/luftpause: {size / 1e6:.0f} MB")
    print(inside(build.stage("wikipedia"), ["wikipedia-mcp", "--help"], 60).splitlines()[0])
    tried(build.stages[-1])
    print("the image's steps build and start")
    return 0


if __name__ == "__main__":
    sys.exit(main())
