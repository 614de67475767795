"""The lock files hold every dependency, exactly and by hash, and say nothing of where it was found."""

import re
import tomllib

import pytest
from packaging.requirements import Requirement

from repo.sources import ROOT

LOCKS = ("run", "otel", "dev", "build", "local", "model", "second-model")
PINNED = re.compile(r"^([a-z0-9-]+)==(\S+)( ; .+)? \\$")


def pins(lock: str) -> dict[str, str]:
    text = (ROOT / f"requirements/{lock}.txt").read_text(encoding="utf-8")
    return {match[1]: match[2] for line in text.splitlines() if (match := PINNED.match(line))}


def project() -> dict[str, list[str]]:
    with (ROOT / "pyproject.toml").open("rb") as file:
        tree = tomllib.load(file)
    extras = tree["project"]["optional-dependencies"]
    build = (ROOT / "requirements/build.in").read_text(encoding="utf-8").splitlines()
    return {
        "run": tree["project"]["dependencies"],
        "otel": tree["project"]["dependencies"] + extras["otel"],
        "dev": tree["project"]["dependencies"] + extras["otel"] + tree["dependency-groups"]["dev"],
        "local": extras["local"],
        "build": [line for line in build if not line.startswith("#")],
    }


@pytest.mark.parametrize("lock", LOCKS)
def test_a_lock_has_only_pinned_packages_with_hashes(lock: str) -> None:
    lines = (ROOT / f"requirements/{lock}.txt").read_text(encoding="utf-8").splitlines()
    odd = [
        line
        for line in lines
        if not PINNED.match(line) and not re.match(r"^    --hash=sha256:[0-9a-f]{64}( \\)?$", line)
    ]
    assert odd == [], "an address or an option does not belong here; scripts/lock writes these files"


@pytest.mark.parametrize("lock", ["run", "otel", "dev", "local", "build"])
def test_a_lock_has_what_the_project_asks_for(lock: str) -> None:
    pinned = pins(lock)
    for line in project()[lock]:
        wanted = Requirement(line)
        name = wanted.name.lower().replace("_", "-")
        assert name in pinned, f"{name} is not in requirements/{lock}.txt; run scripts/lock"
        assert wanted.specifier.contains(pinned[name]), f"{line}, but {pinned[name]} is locked; run scripts/lock"


@pytest.mark.parametrize("lock", ["run", "otel", "build"])
def test_all_locks_agree(lock: str) -> None:
    assert pins(lock).items() <= pins("dev").items()


def test_the_broken_uvloop_stays_out() -> None:
    assert pins("run")["uvloop"] != "0.23.0"
