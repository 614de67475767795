import json

import pytest

from adapters.engine_http.scripted_engine import run_bounded
from luftpause.adapters.door_guard.guard import REMEMBERED_HOST_MAX, REMEMBERED_HOSTS_MAX, DoorGuard
from luftpause.adapters.door_guard.keyring import Key, Keyring
from luftpause.adapters.http_server.refusal import Refusals
from luftpause.core.model.ids import PrincipalId
from luftpause.core.model.principals import ANONYMOUS, Principal
from luftpause.ports.asgi import Message, Receive, Scope, Send, principal_of

SOMEBODY = Principal(name=PrincipalId("somebody"))
SESAME = Keyring((Key(token="sesame", principal=SOMEBODY),))


async def app(scope: Scope, receive: Receive, send: Send) -> None:
    await send({"type": "reached", "by": principal_of(scope) if scope["type"] != "lifespan" else None})


async def receive() -> Message:
    raise AssertionError("the guard reads no body")


def knock(
    guard: DoorGuard,
    path: str = "/v1/models",
    kind: str = "http",
    method: str = "GET",
    query: str = "",
    version: str = "1.1",
    **headers: str,
) -> list[Message]:
    sent: list[Message] = []

    async def send(message: Message) -> None:
        sent.append(message)

    given = {"host": "localhost"} | {name.replace("_", "-"): value for name, value in headers.items()}
    raw = [(name.encode(), value.encode()) for name, value in given.items() if value != "absent"]

    async def main() -> None:
        scope = {"type": kind, "method": method, "path": path, "query_string": query.encode(), "http_version": version}
        await guard({**scope, "headers": raw}, receive, send)

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
    ("version", "host", "expected"),
    [
        ("1.0", "absent", 200),
        ("1.1", "absent", 421),
        ("1.0", "", 421),
        ("1.0", "evil.example", 421),
        ("1.0", "localhost", 200),
    ],
)
def test_only_http_1_0_may_come_without_a_host(version: str, host: str, expected: int) -> None:
    assert status(knock(DoorGuard(app), version=version, host=host)) == expected


@pytest.mark.parametrize(
    ("knocking", "expected"),
    [({}, 401), ({"x_api_key": "sesame"}, 200), ({"x_api_key": "sesame", "origin": "http://evil.example"}, 403)],
)
def test_without_a_host_all_else_is_asked_as_ever(knocking: dict[str, str], expected: int) -> None:
    guard = DoorGuard(app, keyring=SESAME)

    assert status(knock(guard, version="1.0", host="absent", **knocking)) == expected


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
    guard = DoorGuard(app, keyring=SESAME)

    sent = knock(guard, **headers)

    assert status(sent) == expected
    assert status(knock(guard, path="/health", **headers)) == 200
    assert status(knock(guard, path="/health/", **headers)) == expected
    assert status(knock(DoorGuard(app), **headers)) == 200
    if expected == 401:
        assert (b"www-authenticate", b"Bearer") in sent[0]["headers"]


def test_refusals_look_as_they_are_told_to() -> None:
    refusals = Refusals(
        headers=lambda headers: ((b"x-run", dict(headers)[b"x-run"]),),
        body=lambda path, failure: f"{path} {failure.code.value}".encode(),
    )
    start, body = knock(DoorGuard(app, keyring=SESAME, refusals=refusals), path="/v1/x", x_run="r1")

    assert (b"x-run", b"r1") in start["headers"]
    assert body["body"] == b"/v1/x unauthorized"


def test_a_websocket_is_closed_before_it_opens_and_lifespan_passes() -> None:
    guard = DoorGuard(app, keyring=SESAME)

    assert knock(guard, kind="websocket")[0]["type"] == "websocket.close"
    assert knock(guard, kind="websocket", authorization="Bearer sesame")[0]["type"] == "reached"
    assert knock(guard, kind="lifespan", host="evil")[0]["type"] == "reached"


def test_remembered_hosts_are_bounded() -> None:
    guard = DoorGuard(app)
    for port in range(REMEMBERED_HOSTS_MAX + 50):
        assert status(knock(guard, host=f"localhost:{port}")) == 200

    assert len(guard._good_hosts) == REMEMBERED_HOSTS_MAX


def test_a_long_host_is_not_remembered() -> None:
    guard = DoorGuard(app)

    assert status(knock(guard, host="localhost:" + "1" * REMEMBERED_HOST_MAX)) == 200
    assert not guard._good_hosts


def test_what_is_guarded_learns_who_comes() -> None:
    asked = DoorGuard(app, keyring=SESAME)

    assert knock(asked, x_api_key="sesame")[0]["by"] is SOMEBODY
    assert knock(asked, path="/health")[0]["by"] is ANONYMOUS
    assert knock(DoorGuard(app), x_api_key="sesame")[0]["by"] is ANONYMOUS


def test_a_token_in_the_query_counts_only_where_clients_put_it_there() -> None:
    assert status(knock(DoorGuard(app, keyring=SESAME, key_in_query=True), query="alt=sse&key=sesame")) == 200
    assert status(knock(DoorGuard(app, keyring=SESAME, key_in_query=True), query="key=wrong")) == 401
    assert status(knock(DoorGuard(app, keyring=SESAME), query="key=sesame")) == 401


PREFLIGHT = {"access_control_request_method": "POST", "access_control_request_headers": "authorization"}


def test_a_preflight_of_an_allowed_page_is_answered_without_a_token_and_no_other_is() -> None:
    guard = DoorGuard(app, keyring=SESAME, allowed_origins=("https://chat.example",))

    allowed = knock(guard, method="OPTIONS", origin="https://chat.example", **PREFLIGHT)[0]
    assert allowed["status"] == 204
    assert (b"access-control-allow-origin", b"https://chat.example") in allowed["headers"]
    assert status(knock(guard, method="OPTIONS", origin="https://evil.example", **PREFLIGHT)) == 403
    assert status(knock(guard, method="OPTIONS", origin="https://chat.example")) == 401
    assert status(knock(guard, method="OPTIONS", host="evil", origin="https://chat.example", **PREFLIGHT)) == 421


@pytest.mark.parametrize("key", ["sesame", "wrong"])
def test_an_allowed_page_can_read_its_answer_and_its_refusal(key: str) -> None:
    async def plain(scope: Scope, receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": [(b"x", b"y")]})

    guard = DoorGuard(plain, keyring=SESAME, allowed_origins=("https://chat.example",))

    readable = (b"access-control-allow-origin", b"https://chat.example")
    assert readable in knock(guard, origin="https://chat.example", x_api_key=key)[0]["headers"]
    for origin in ("absent", "http://localhost", "https://evil.example"):
        assert b"access-control-allow-origin" not in dict(knock(guard, origin=origin, x_api_key=key)[0]["headers"])
