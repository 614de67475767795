import pytest

from luftpause.adapters.engine_http.origin import parse_origin
from luftpause.adapters.engine_http.request_head import HEADS_MAX, RequestHeads
from luftpause.core.model.replicas import Endpoint
from luftpause.ports.engines import EngineRequest, EngineUnreachableError, Header

HEADERS: tuple[Header, ...] = ((b"content-type", b"application/json"), (b"x", b"1"))


def head(heads: RequestHeads, headers: tuple[Header, ...] | list[Header], url: str, body: bytes, **more: str) -> bytes:
    path = more.get("path", "/v1/x").encode()
    endpoint = Endpoint(url=url, api_key_env=more.get("key", ""))
    request = EngineRequest(method=more.get("method", "POST").encode(), path=path, headers=headers, body=body)
    return heads.write(parse_origin(url), endpoint, request)


def test_a_head_that_was_written_before_is_the_same_but_for_its_length() -> None:
    heads = RequestHeads()
    for body in (b"a", b"bcd", b""):
        for url in ("http://a:1/base", "http://b", "http://a:1"):
            for path in ("/v1/x", "/v1/y"):
                for method in ("POST", "GET"):
                    written = head(heads, HEADERS, url, body, path=path, method=method)
                    assert written == head(RequestHeads(), HEADERS, url, body, path=path, method=method)
    assert head(heads, HEADERS, "http://a:1/base", b"abc") == (
        b"POST /base/v1/x HTTP/1.1\r\nhost: a:1\r\ncontent-type: application/json\r\nx: 1\r\n"
        b"content-length: 3\r\naccept-encoding: identity\r\n\r\n"
    )


def test_headers_that_changed_are_written_anew() -> None:
    heads = RequestHeads()
    changing: list[Header] = [(b"x", b"1")]
    assert b"x: 1\r\n" in head(heads, changing, "http://a", b"")
    changing[0] = (b"x", b"2")
    assert b"x: 2\r\n" in head(heads, changing, "http://a", b"")


def test_the_key_counts_that_the_environment_holds_now(monkeypatch: pytest.MonkeyPatch) -> None:
    heads = RequestHeads()
    for key in ("one", "two"):
        monkeypatch.setenv("ENGINE_KEY", key)
        assert f"authorization: Bearer {key}\r\n".encode() in head(heads, HEADERS, "http://a", b"", key="ENGINE_KEY")
    monkeypatch.delenv("ENGINE_KEY")
    with pytest.raises(EngineUnreachableError):
        head(heads, HEADERS, "http://a", b"", key="ENGINE_KEY")


def test_a_line_break_is_never_sent() -> None:
    heads = RequestHeads()
    for broken in (((b"x", b"1\r\ny: 2"),), ((b"x\n", b"1"),), ((b"x", b"\0"),)):
        for _ in range(2):
            with pytest.raises(EngineUnreachableError):
                head(heads, broken, "http://a", b"")


def test_many_heads_are_written_rightly_and_not_all_remembered() -> None:
    heads = RequestHeads()
    many = [((b"x", b"%d" % number),) for number in range(HEADS_MAX + 10)]
    for _ in range(2):
        for number, headers in enumerate(many):
            assert b"x: %d\r\n" % number in head(heads, headers, "http://a", b"")
