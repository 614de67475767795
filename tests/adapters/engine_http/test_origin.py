import pytest

from luftpause.adapters.engine_http.origin import parse_origin
from luftpause.ports.engines import EngineUnreachableError


@pytest.mark.parametrize(
    ("url", "host", "port", "tls", "host_header", "base_path"),
    [
        ("http://127.0.0.1:30000", "127.0.0.1", 30000, False, b"127.0.0.1:30000", b""),
        ("http://engine", "engine", 80, False, b"engine", b""),
        ("https://API.example.org/api/", "api.example.org", 443, True, b"api.example.org", b"/api"),
        ("https://api.example.org:8443/a/b", "api.example.org", 8443, True, b"api.example.org:8443", b"/a/b"),
        ("http://[::1]:8000", "::1", 8000, False, b"[::1]:8000", b""),
    ],
)
def test_a_url_is_taken_apart(url: str, host: str, port: int, tls: bool, host_header: bytes, base_path: bytes) -> None:
    origin = parse_origin(url)

    assert (origin.host, origin.port, origin.tls) == (host, port, tls)
    assert (origin.host_header, origin.base_path) == (host_header, base_path)
    assert origin.key == (tls, host, port)
    assert str(origin) == f"{host}:{port}"


@pytest.mark.parametrize(
    "url", ["", "engine:80", "ftp://engine", "http://:80", "http://u@e", "http://e/#f", "http://e/ü"]
)
def test_what_leads_nowhere_is_named(url: str) -> None:
    with pytest.raises(EngineUnreachableError, match="endpoint url"):
        parse_origin(url)
