import json

import pytest

from adapters.engine_http.scripted_engine import run_bounded
from luftpause.adapters.door_guard import REMEMBERED_HOST_MAX, REMEMBERED_HOSTS_MAX, DoorGuard
from luftpause.ports.asgi import Message, Receive, Scope, Send


async def app(scope: Scope, receive: Receive, send: Send) -> None:
    await send({"type": "reached"})


async def receive() -> Message:
    raise AssertionError("the guard reads no body")


def knock(guard: DoorGuard, path: str = "/v1/models", kind: str = "http", **headers: str) -> list[Message]:
    sent: list[Message] = []

    async def send(message: Message) -> None:
        sent.append(message)

    given = {"host": "localhost"} | {name.replace("_", "-"): value for name, value in headers.items()}
    raw = [(name.encode(), value.encode()) for name, value in given.items() if value != "absent"]

    async def main() -> None:
        await guard({"type": kind, "path": path, "headers": raw}, receive, send)

    run_bounded(main())
    return sent


def status(sent: list[Message]) -> int:
    return 200 if sent[0]["type"] == "reached" else int(sent[0]["status"])


@pytest.mark.parametrize(
    "host",
    [
        "localhost",
        "LOCALHOST:8080",
        "127.0.0.1",
        "127.0.0.1:1",
        "127.8.9.1:80",
        "[::1]:8080",
        "[::1]",
        "box.lan",
        "box.lan:99",
        "BOX.lan",
        "exact.lan:8080",
        "[fd00::1]:80",
        "0.0.0.0:8080",
        "10.0.0.1",
        "192.168.1.20:8080",
        "[::2]:80",
        "[fe80::1]",
    ],
)
def test_a_host_that_is_ours_or_any_address_may_knock(host: str) -> None:
    guard = DoorGuard(app, allowed_hosts=("box.lan", "Exact.lan:8080"))

    assert status(knock(guard, host=host)) == 200
    assert status(knock(guard, host=host)) == 200


@pytest.mark.parametrize(
    "host",
    [
        "absent",
        "",
        "evil.example",
        "localhost.evil.example",
        "127.0.0.1.evil.example",
        "exact.lan",
        "exact.lan:1",
        "10.0.0.1.evil.example",
        "10.0.0",
        "[::2.evil]",
        "[evil.example]",
        "ü",
        "localhost@evil",
        "[",
        ":",
    ],
)
def test_a_host_that_is_not_ours_is_told_so(host: str) -> None:
    sent = knock(DoorGuard(app, allowed_hosts=("exact.lan:8080",)), host=host)

    assert status(sent) == 421
    assert json.loads(sent[1]["body"])["error"]["code"] == "unknown_host"


@pytest.mark.parametrize(
    ("origin", "expected"),
    [
        ("absent", 200),
        ("http://localhost:8080", 200),
        ("https://LOCALHOST:8080", 200),
        ("https://chat.example", 200),
        ("http://localhost:3000", 403),
        ("http://127.0.0.1:8080", 403),
        ("https://chat.example.evil", 403),
        ("http://chat.example", 403),
        ("null", 403),
        ("", 403),
    ],
)
def test_only_our_own_pages_and_listed_ones_may_call(origin: str, expected: int) -> None:
    guard = DoorGuard(app, allowed_origins=("https://chat.example/",))

    sent = knock(guard, host="localhost:8080", origin=origin)

    assert status(sent) == expected
    if expected == 403:
        assert json.loads(sent[1]["body"])["error"]["code"] == "forbidden_origin"


@pytest.mark.parametrize(
    ("headers", "expected"),
    [
        ({}, 401),
        ({"authorization": "Bearer sesame"}, 200),
        ({"authorization": "bearer  sesame"}, 200),
        ({"x_api_key": "sesame"}, 200),
        ({"x_goog_api_key": "sesame"}, 200),
        ({"authorization": "Bearer wrong", "x_api_key": "sesame"}, 200),
        ({"authorization": "Basic sesame"}, 401),
        ({"authorization": "sesame"}, 401),
        ({"authorization": "Bearer sesame2"}, 401),
        ({"authorization": "Bearer "}, 401),
        ({"x_api_key": "sesam\xe9"}, 401),
    ],
)
def test_the_token_is_asked_for_where_one_is_set(headers: dict[str, str], expected: int) -> None:
    guard = DoorGuard(app, token="sesame")

    sent = knock(guard, **headers)

    assert status(sent) == expected
    assert status(knock(guard, path="/health", **headers)) == 200
    assert status(knock(guard, path="/health/", **headers)) == expected
    assert status(knock(DoorGuard(app), **headers)) == 200
    if expected == 401:
        assert (b"www-authenticate", b"Bearer") in sent[0]["headers"]


def test_refusals_carry_the_headers_they_are_told_to() -> None:
    guard = DoorGuard(app, token="x", refusal_headers=lambda headers: ((b"x-run", dict(headers)[b"x-run"]),))

    assert (b"x-run", b"r1") in knock(guard, x_run="r1")[0]["headers"]


def test_a_websocket_is_closed_before_it_opens_and_lifespan_passes() -> None:
    guard = DoorGuard(app, token="sesame")

    assert knock(guard, kind="websocket")[0]["type"] == "websocket.close"
    assert knock(guard, kind="websocket", authorization="Bearer sesame") == [{"type": "reached"}]
    assert knock(guard, kind="lifespan", host="evil") == [{"type": "reached"}]


def test_remembered_hosts_are_bounded() -> None:
    guard = DoorGuard(app)
    for port in range(REMEMBERED_HOSTS_MAX + 50):
        assert status(knock(guard, host=f"localhost:{port}")) == 200

    assert len(guard._good_hosts) == REMEMBERED_HOSTS_MAX


def test_a_long_host_is_not_remembered() -> None:
    guard = DoorGuard(app)

    assert status(knock(guard, host="localhost:" + "1" * REMEMBERED_HOST_MAX)) == 200
    assert not guard._good_hosts
