"""Sockets and servers of the test kit."""

import pytest

from luftpause.testkit.serving import bind, serving, url_of
from testkit.running import request, run


def test_a_taken_port_is_an_error_before_anything_is_served() -> None:
    with bind("127.0.0.1", 0) as first, pytest.raises(OSError, match="in use"):
        bind("127.0.0.1", first.getsockname()[1])


def test_an_address_is_told_as_a_url() -> None:
    with bind("127.0.0.1", 0) as listener:
        assert url_of(listener) == f"http://127.0.0.1:{listener.getsockname()[1]}"


def test_an_app_answers_inside_the_block_and_nobody_after_it() -> None:
    async def app(_scope: object, _receive: object, send: object) -> None:
        assert callable(send)
        await send({"type": "http.response.start", "status": 204, "headers": []})
        await send({"type": "http.response.body", "body": b""})

    async def ask() -> int:
        listener = bind("127.0.0.1", 0)
        url = url_of(listener)
        async with serving(app, listener, lifespan=False):
            status, _, _ = await request(url)
        with pytest.raises(ConnectionRefusedError):
            await request(url)
        return status

    assert run(ask()) == 204


def test_what_goes_wrong_inside_the_block_stops_the_server_and_comes_out() -> None:
    async def app(_scope: object, _receive: object, _send: object) -> None:
        raise AssertionError("nobody asks")

    async def fail() -> None:
        async with serving(app, bind("127.0.0.1", 0), lifespan=False):
            raise ValueError("mine")

    with pytest.raises(ValueError, match="mine"):
        run(fail())
