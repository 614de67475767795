import asyncio

import pytest

from luftpause.adapters.http_server.scope import Ends, request_parts


class Wire(asyncio.BaseTransport):
    def __init__(self, **known: object) -> None:
        super().__init__(known)


def scope_of(url: bytes, ends: Ends | None = None) -> dict[str, object]:
    ends = ends or Ends(Wire(), {"left": 1})
    return dict(ends.scope(request_parts(method=b"GET", url=url, version="1.1", headers=[(b"a", b"b")]), {}))


@pytest.mark.parametrize(
    ("url", "path", "raw_path", "query"),
    [
        (b"/v1/models", "/v1/models", b"/v1/models", b""),
        (b"/a%20b?c=%20#d", "/a b", b"/a%20b", b"c=%20"),
        (b"http://host:1/a?b", "/a", b"/a", b"b"),
        (b"http://host:1?b", "/", b"/", b"b"),
    ],
)
def test_a_target_is_taken_apart(url: bytes, path: str, raw_path: bytes, query: bytes) -> None:
    scope = scope_of(url)

    assert (scope["path"], scope["raw_path"], scope["query_string"]) == (path, raw_path, query)


def test_what_the_connection_knows_is_told() -> None:
    ends = Ends(Wire(peername=("127.0.0.1", 5), sockname=("::1", 6, 0, 0), sslcontext=object()), {})
    told = scope_of(b"/", ends)
    plain = scope_of(b"/")

    assert (told["client"], told["server"], told["scheme"]) == (("127.0.0.1", 5), ("::1", 6), "https")
    assert (plain["client"], plain["server"], plain["scheme"]) == (None, None, "http")


def test_a_request_may_change_its_state_for_itself_only() -> None:
    ends = Ends(Wire(), {"left": 1})
    first = scope_of(b"/", ends)["state"]
    assert isinstance(first, dict)
    first["left"] = 2

    assert scope_of(b"/", ends)["state"] == {"left": 1}


@pytest.mark.parametrize(
    ("url", "host"),
    [
        (b"/", b"box.lan"),
        (b"http://evil.example/a", b"evil.example"),
        (b"http://evil.example:80?b", b"evil.example:80"),
        (b"http://user:pass@127.0.0.1/", b"127.0.0.1"),
        (b"http://[::1]:5/", b"[::1]:5"),
    ],
)
def test_the_host_of_an_absolute_target_is_the_one_that_counts(url: bytes, host: bytes) -> None:
    headers = [(b"a", b"b"), (b"host", b"box.lan")]
    scope = request_parts(method=b"GET", url=url, version="1.1", headers=headers)

    assert [value for name, value in scope["headers"] if name == b"host"] == [host]
    assert dict(scope["headers"])[b"a"] == b"b"
