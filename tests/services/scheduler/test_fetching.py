"""One look at a path, against a real server."""

import asyncio
import socket
from collections.abc import Awaitable, Callable

from cli.examining.subjects import answering
from luftpause.adapters.engine_http.engines import HttpEngines
from luftpause.core.model.replicas import Endpoint
from luftpause.services.scheduler.fetching import Fetched, Fetcher

ANSWERS = {"/good": (200, "x" * 100), "/odd": (418, "teapot")}


def fetched(path: str, *, any_status: bool = False, url: str = "", timeout_s: float = 20.0) -> Fetched:
    async def look(fetcher: Fetcher, at: str) -> Fetched:
        return await fetcher.fetch(Endpoint(url=url or at), path, 10, any_status=any_status)

    return asyncio.run(_with_fetcher(look, timeout_s))


async def _with_fetcher(look: Callable[[Fetcher, str], Awaitable[Fetched]], timeout_s: float) -> Fetched:
    engines = HttpEngines()
    try:
        async with answering(ANSWERS) as (url, _):
            return await look(Fetcher(engines, timeout_s), url)
    finally:
        await engines.close()


def test_a_good_answer_is_cut_at_the_limit() -> None:
    assert fetched("/good") == Fetched("x" * 10, status=200)


def test_another_answer_is_a_cause_and_its_body_where_that_is_wanted() -> None:
    assert fetched("/odd") == Fetched(None, "HTTP 418 from /odd", status=418)
    assert fetched("/odd", any_status=True) == Fetched("teapot", "HTTP 418 from /odd", status=418)


def test_nobody_there_is_a_cause() -> None:
    found = fetched("/good", url="http://127.0.0.1:1")
    assert (found.text, found.late, found.status) == (None, False, 0)
    assert "connection refused" in found.cause


def test_an_answer_that_does_not_come_is_late() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        url = f"http://127.0.0.1:{listener.getsockname()[1]}"
        assert fetched("/", url=url, timeout_s=0.2) == Fetched(None, "no answer from / within 0.2 s", late=True)
