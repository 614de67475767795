"""Who listens at a port, and what `ports` and `access` make of it."""

import asyncio
import socket
from pathlib import Path

import pytest

from cli.examining.subjects import LOOK_S, answering, graded, subject
from luftpause.adapters import process_table
from luftpause.cli.examining import access, ports
from luftpause.cli.examining.doors import NOWHERE, DoorSeen, Whose, all_seen, doors_of
from luftpause.cli.examining.findings import Finding, Grade

ZERO = "[dataplane]\nport = {port}\n[runtime]\nport = 0\n[scheduler]\nport = 0\nhttp_port = 0\n"


def looked(
    folder: Path, port: int, env: dict[str, str] | None = None, look_s: float = LOOK_S
) -> tuple[DoorSeen, list[Finding], list[Finding]]:
    async def story() -> tuple[DoorSeen, list[Finding], list[Finding]]:
        async with subject(folder, ZERO.format(port=port), env, look_s) as looked_at:
            doors = doors_of(looked_at.config)
            (seen,) = await all_seen(looked_at, doors)
            return seen, ports.examined(looked_at, doors, [seen]), access.examined(looked_at, doors, [seen])

    return asyncio.run(story())


def test_a_free_port_is_nobodys(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    seen, findings, _ = looked(tmp_path, port)
    assert seen.whose is Whose.NOBODY
    assert [each.seen for each in graded(findings, Grade.OK)] == [f"127.0.0.1:{port} (dataplane.port) is free"]
    assert len(graded(findings, Grade.NOTE)) == 3, "the others pick a port at the start"


def answered(folder: Path, status: int, body: str, env: dict[str, str]) -> tuple[DoorSeen, list[Finding], list[str]]:
    async def story() -> tuple[DoorSeen, list[Finding], list[str]]:
        async with answering({NOWHERE: (status, body)}) as (url, asked):
            port = int(url.rpartition(":")[2])
            async with subject(folder, ZERO.format(port=port), env) as looked_at:
                doors = doors_of(looked_at.config)
                (seen,) = await all_seen(looked_at, doors)
                found = [*ports.examined(looked_at, doors, [seen]), *access.examined(looked_at, doors, [seen])]
                return seen, found, [f"{path} {token}" for path, token in asked]

    return asyncio.run(story())


def test_another_programs_port_is_an_error_and_gets_no_token(tmp_path: Path) -> None:
    seen, findings, asked = answered(tmp_path, 200, "hello", {"LUFTPAUSE_TOKEN": "hunter2"})
    assert seen.whose is Whose.ANOTHER
    (error,) = graded(findings, Grade.ERROR)
    assert "is taken by another program" in error.seen
    assert "--dataplane-port 0" in error.mend
    assert asked == [f"{NOWHERE} None"]
    if process_table.is_known():
        assert "process " in error.seen


def test_a_door_of_ours_is_known_by_what_it_says(tmp_path: Path) -> None:
    seen, findings, _ = answered(tmp_path, 404, "nothing here: the LLM door serves POST", {})
    assert (seen.whose, seen.asks_for_token) == (Whose.OURS, False)
    assert graded(findings, Grade.ERROR) == []


def test_a_door_that_should_ask_for_a_token_and_does_not_is_an_error(tmp_path: Path) -> None:
    _, findings, _ = answered(tmp_path, 404, "nothing here: the LLM door serves POST", {"LUFTPAUSE_TOKEN": "hunter2"})
    (error,) = graded(findings, Grade.ERROR)
    assert "asks nobody for a token" in error.seen
    seen, findings, _ = answered(tmp_path, 401, "the token is missing or wrong: send it", {"LUFTPAUSE_TOKEN": "h"})
    assert seen.asks_for_token is True
    assert graded(findings, Grade.ERROR) == []


def test_a_port_that_says_nothing_is_not_waited_for(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        seen, findings, _ = looked(tmp_path, listener.getsockname()[1], look_s=1.0)
    assert seen.whose is Whose.ANOTHER
    assert "nobody says who it is: no answer from /doctor within 1 s" in graded(findings, Grade.ERROR)[0].seen


def test_a_host_that_is_not_found_is_told(tmp_path: Path) -> None:
    async def story() -> DoorSeen:
        text = ZERO.format(port=80).replace("port = 80", 'port = 80\nhost = "no-such-host.localdomain"')
        async with subject(tmp_path, text) as looked_at:
            (seen,) = await all_seen(looked_at, doors_of(looked_at.config))
            return seen

    seen = asyncio.run(story())
    assert seen.whose is Whose.UNREACHABLE
    assert "cannot connect" in seen.cause


@pytest.mark.skipif(not process_table.is_known(), reason="only Linux tells who listens")
def test_the_link_is_the_process_that_shows_the_status(tmp_path: Path) -> None:
    async def story(more: str) -> list[Whose]:
        says = {NOWHERE: (404, "this is the scheduler, it answers GET /status")}
        with socket.create_server(("127.0.0.1", 0)) as link:
            async with answering(says if more else {}) as (url, _):
                port, status = link.getsockname()[1], url.rpartition(":")[2]
                text = f"[dataplane]\nport = 0\n[runtime]\nport = 0\n[scheduler]\nport = {port}\nhttp_port = {status}\n"
                async with subject(tmp_path, text) as looked_at:
                    return [each.whose for each in await all_seen(looked_at, doors_of(looked_at.config))]

    assert asyncio.run(story("ours")) == [Whose.OURS, Whose.OURS]
    assert asyncio.run(story("")) == [Whose.ANOTHER, Whose.ANOTHER]
