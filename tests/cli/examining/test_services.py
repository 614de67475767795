import asyncio
import json
from pathlib import Path

import pytest

import luftpause
from cli.examining.subjects import answering, graded, subject
from luftpause.cli.examining import services
from luftpause.cli.examining.doors import DoorSeen, Whose, doors_of
from luftpause.cli.examining.findings import Finding, Grade

FINE = {"version": luftpause.__version__, "replicas": [{"name": "a", "healthy": True}]}
HEALTH = {"/health": (200, '{"status":"ok"}')}


def examined(
    folder: Path, answers: dict[str, tuple[int, str]], env: dict[str, str] | None = None, *, asks: bool = False
) -> tuple[list[Finding], list[tuple[str, str | None]]]:
    """Return what is said of a scheduler with these answers whose doors are closed."""

    async def story() -> tuple[list[Finding], list[tuple[str, str | None]]]:
        async with answering(answers) as (url, asked):
            port = url.rpartition(":")[2]
            async with subject(folder, f"[scheduler]\nhttp_port = {port}\n", env) as looked_at:
                seen = [
                    DoorSeen(door=door, whose=Whose.OURS, asks_for_token=asks)
                    if door.title == "status"
                    else DoorSeen(door=door, whose=Whose.NOBODY)
                    for door in doors_of(looked_at.config)
                ]
                return await services.examined(looked_at, seen), asked

    return asyncio.run(story())


def test_without_any_it_says_how_to_start_them(tmp_path: Path) -> None:
    async def story() -> list[Finding]:
        async with subject(tmp_path, "") as looked_at:
            seen = [DoorSeen(door=door, whose=Whose.NOBODY) for door in doors_of(looked_at.config)]
            return await services.examined(looked_at, seen)

    (found,) = asyncio.run(story())
    assert (found.grade, found.mend.startswith("luftpause up --config")) == (Grade.NOTE, True)


def test_one_that_runs_is_asked_for_health_and_version(tmp_path: Path) -> None:
    findings, asked = examined(tmp_path, {**HEALTH, "/status": (200, json.dumps(FINE))})
    assert [each.grade for each in findings] == [Grade.OK, Grade.WARNING, Grade.WARNING, Grade.OK]
    assert findings[1].mend.startswith("luftpause dataplane --config")
    assert asked == [("/health", None), ("/status", None)]


def test_another_version_and_ill_replicas_are_warned_about(tmp_path: Path) -> None:
    status = {"version": "0.0.1", "replicas": [{"name": "b", "state": "ill", "why": "refused"}]}
    findings, _ = examined(tmp_path, {**HEALTH, "/status": (200, json.dumps(status))})
    assert "is of version 0.0.1, this is" in findings[-2].seen
    assert findings[-1].seen == "the scheduler holds replica b for unhealthy (ill): refused"


def test_an_ill_one_is_an_error_in_its_own_words(tmp_path: Path) -> None:
    findings, _ = examined(tmp_path, {"/health": (503, "disk full"), "/status": (200, "[")})
    (error,) = graded(findings, Grade.ERROR)
    assert "is ill: disk full" in error.seen
    assert "cannot be read" in findings[-1].seen


def test_the_token_is_sent_only_where_it_is_asked_for(tmp_path: Path) -> None:
    findings, asked = examined(tmp_path, {**HEALTH, "/status": (200, json.dumps(FINE))}, {"LUFTPAUSE_TOKEN": "x"})
    assert {token for _, token in asked} == {None}
    findings, asked = examined(tmp_path, HEALTH, asks=True)
    assert [path for path, _ in asked] == ["/health"]
    assert findings[-1].mend == "export LUFTPAUSE_TOKEN=..."


def test_a_token_that_is_not_accepted_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LUFTPAUSE_TOKEN", "wrong")
    env = {"LUFTPAUSE_TOKEN": "wrong"}
    findings, asked = examined(tmp_path, {**HEALTH, "/status": (401, "the token")}, env, asks=True)
    assert asked == [("/health", None), ("/status", "Bearer wrong")]
    assert "does not accept the token in LUFTPAUSE_TOKEN" in graded(findings, Grade.ERROR)[0].seen
