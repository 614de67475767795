"""Hosted endpoints: https with certificates that are looked at, keys, paths, and what is said when one is wrong."""

import json
import random
import socket
import threading
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from stories.certificates import Authority
from stories.programs import Program, running
from stories.raw_wire import WAIT_S, Engine, ask, chat_body, soon, status, unchunked, whole
from stories.set_ups import FREE_PORTS, write

pytestmark = pytest.mark.timeout(120)
MISSING = b"HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n"
UNAUTHORIZED = b"HTTP/1.1 401 Unauthorized\r\ncontent-length: 0\r\n\r\n"
SSE = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n"


def hosted(url: str, *lines: str, name: str = "hosted") -> str:
    """Return the declaration of an endpoint that serves a model of its own name."""
    return "\n".join(("[[replicas]]", f'name = "{name}"', f'url = "{url}"', f'models = ["{name}"]', *lines, ""))


def why(up: Program, name: str = "hosted") -> str:
    [replica] = [each for each in status(up.url("scheduler"))["replicas"] if each["name"] == name]
    return str(replica["why"])


def is_healthy(up: Program, name: str = "hosted") -> bool:
    return any(each["name"] == name and each["healthy"] for each in status(up.url("scheduler"))["replicas"])


def api_of_a_provider(head: bytes) -> bytes | None:
    """Answer as hosted APIs do: no /health, a list of models for those with the key."""
    if b" /v1/models " not in head and b" /api/v1/models " not in head:
        return MISSING
    return whole(b'{"data":[]}') if b"\r\nauthorization: Bearer sesame\r\n" in head else UNAUTHORIZED


def test_a_hosted_api_gets_its_turns_over_tls_with_key_and_path_byte_by_byte(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    noise = random.Random(3).randbytes(3_000_000).hex()
    body = chat_body(noise, "hosted")
    stream = b"".join(b'data: {"choices":[{"delta":{"content":"%b"}}]}\n\n' % noise[:5000].encode() for _ in range(400))

    def reply(received: bytes) -> bytes:
        return SSE + stream + b"data: [DONE]\n\n" if b'"stream"' in received else whole(noise.encode())

    engine = Engine(reply=reply, get=api_of_a_provider, tls=authority.serving())
    lines = ('api_key_env = "HOSTED_KEY"', 'health = "/v1/models"', 'engine = "openai"')
    with engine:
        config = write(tmp_path, FREE_PORTS, hosted(f"{engine.url}/api/", *lines))
        env = {**authority.env, "HOSTED_KEY": "sesame"}
        with running(tmp_path, "up", "up", "--config", config, env=env) as up:
            assert soon(lambda: is_healthy(up))
            door = up.url("dataplane")
            assert ask(door, body, "authorization: Bearer mine").body == noise.encode()
            streamed = ask(door, body[:-1] + b', "stream": true}')
            assert streamed.status == 200
            got, sent = unchunked(streamed.body), stream + b"data: [DONE]\n\n"
            assert (len(got), got[-50:]) == (len(sent), sent[-50:])
            assert [
                got == sent for got, sent in zip(engine.bodies, (body, body[:-1] + b', "stream": true}'), strict=True)
            ] == [True, True]
    for head in engine.heads:
        assert head.startswith(b"POST /api/v1/chat/completions HTTP/1.1\r\n")
        assert b"\r\nauthorization: Bearer sesame\r\n" in head + b"\r\n"
        assert b"mine" not in head
    assert {head.split(b" ")[1] for head in engine.gets} == {b"/api/v1/models"}, "no load is asked of a hosted API"
    assert "Traceback" not in up.output.read_text()


def test_connections_over_tls_are_kept_for_the_next_turn(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    with Engine(tls=authority.serving()) as engine:
        config = write(tmp_path, FREE_PORTS, hosted(engine.url, 'engine = "openai"'))
        arguments = ("up", "--config", config, "--set", "scheduler.probe_period=1h")
        with running(tmp_path, "up", *arguments, env=authority.env) as up:
            assert soon(lambda: is_healthy(up))
            before = engine.connections
            for _ in range(10):
                assert ask(up.url("dataplane"), chat_body(model="hosted")).status == 200
            assert engine.connections - before <= 1, "each turn made a connection of its own"


@dataclass
class EndlessEngine(Engine):
    """Begins a stream and sees whether its client leaves."""

    left: threading.Event = field(default_factory=threading.Event)

    def answer(self, connection: socket.socket, head: bytes, body: bytes) -> bool:
        if not head.startswith(b"POST"):
            return super().answer(connection, head, body)
        connection.sendall(SSE + b'data: {"choices":[{"delta":{"content":"a"}}]}\n\n')
        try:
            if not connection.recv(1):
                self.left.set()
        except OSError:
            self.left.set()
        return False


def test_a_client_that_leaves_ends_its_turn_over_tls_too(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    engine = EndlessEngine(tls=authority.serving())
    with engine:
        config = write(tmp_path, FREE_PORTS, hosted(engine.url))
        with running(tmp_path, "up", "up", "--config", config, env=authority.env) as up:
            assert soon(lambda: is_healthy(up))
            host, port = up.url("dataplane").removeprefix("http://").split(":")
            body = chat_body(model="hosted")[:-1] + b', "stream": true}'
            head = f"POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\ncontent-length: {len(body)}\r\n"
            with socket.create_connection((host, int(port)), timeout=WAIT_S) as client:
                head = head.replace("host: x", f"host: {host}")
                client.sendall(f"{head}content-type: application/json\r\n\r\n".encode() + body)
                assert client.recv(65536).startswith(b"HTTP/1.1 200 ")
            assert engine.left.wait(WAIT_S), "the engine still generates for nobody"
    assert "Traceback" not in up.output.read_text()


def test_the_status_says_what_is_wrong_with_a_certificate_or_a_scheme(tmp_path: Path) -> None:
    authority, stranger = Authority(tmp_path), Authority(tmp_path / "..")
    engines = {
        "good": Engine(tls=authority.serving()),
        "expired": Engine(tls=authority.serving(expired=True)),
        "misnamed": Engine(tls=authority.serving("example.org")),
        "unknown": Engine(tls=stranger.serving()),
    }
    plain = Engine()
    urls = {name: engine.url for name, engine in engines.items()}
    urls["plain"] = plain.url.replace("http:", "https:")
    urls["secured"] = engines["good"].url.replace("https:", "http:")
    config = write(tmp_path, FREE_PORTS, *(hosted(url, name=name) for name, url in urls.items()))
    expected = {
        "expired": "its certificate is refused: certificate has expired",
        "misnamed": "its certificate is refused: Hostname mismatch, certificate is not valid for 'localhost'",
        "unknown": "its certificate is refused: unable to get local issuer certificate; to trust an authority of your "
        "own, name the file of its certificate in SSL_CERT_FILE",
        "plain": "it does not speak TLS; if it speaks plain HTTP, its url must begin with http://",
        "secured": "before answering; if it speaks TLS, its url must begin with https://",
    }
    with running(tmp_path, "up", "up", "--config", config, env=authority.env) as up:
        assert soon(lambda: is_healthy(up, "good"))
        soon(lambda: all(cause in why(up, name) for name, cause in expected.items()))
        for name, cause in expected.items():
            assert cause in why(up, name), name
        assert ask(up.url("dataplane"), chat_body(model="expired"), within_s=1.0).status == 0, "it is held"
        assert "Traceback" not in up.output.read_text()


def test_a_certificate_that_goes_bad_is_a_502_in_words(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    engine = Engine(
        tls=authority.serving(), get=lambda _: b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"
    )
    with engine:
        config = write(tmp_path, FREE_PORTS, hosted(engine.url))
        arguments = ("up", "--config", config, "--set", "scheduler.probe_period=1h")
        with running(tmp_path, "up", *arguments, env=authority.env) as up:
            assert soon(lambda: is_healthy(up))
            engine.tls = authority.serving(expired=True)
            answer = ask(up.url("dataplane"), chat_body(model="hosted"))
            assert answer.status == 502
            said = json.loads(answer.body)["error"]["message"]
            assert said.startswith("engine hosted: TLS with localhost:")
            assert said.endswith(" failed: its certificate is refused: certificate has expired")
            assert "x-luftpause-run-id" in answer.headers
    assert "Traceback" not in up.output.read_text()


def test_a_file_of_authorities_that_is_not_there_is_named(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    with Engine(tls=authority.serving()) as engine:
        config = write(tmp_path, FREE_PORTS, hosted(engine.url))
        env = {"SSL_CERT_FILE": str(tmp_path / "nowhere.pem")}
        with running(tmp_path, "up", "up", "--config", config, env=env) as up:
            assert soon(lambda: "SSL_CERT_FILE names" in why(up) and "nowhere.pem" in why(up)), why(up)


def test_a_key_that_is_refused_is_the_reason_that_the_status_gives(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    with Engine(get=api_of_a_provider, tls=authority.serving()) as engine:
        lines = ('api_key_env = "HOSTED_KEY"', 'health = "/v1/models"')
        config = write(tmp_path, FREE_PORTS, hosted(engine.url, *lines))
        env = {**authority.env, "HOSTED_KEY": "wrong-key"}
        with running(tmp_path, "up", "up", "--config", config, env=env) as up:
            expected = "HTTP 401 from /v1/models: it does not accept the key in HOSTED_KEY"
            assert soon(lambda: why(up) == expected), why(up)
            assert "wrong-key" not in up.output.read_text()


def test_an_api_without_the_health_path_is_down_until_another_one_is_named(tmp_path: Path) -> None:
    with Engine(get=api_of_a_provider) as engine:
        key = 'api_key_env = "HOSTED_KEY"'
        declared = hosted(engine.url, key), hosted(engine.url, key, 'health = "/v1/models"', name="named")
        config = write(tmp_path, FREE_PORTS, *declared)
        with running(tmp_path, "up", "up", "--config", config, env={"HOSTED_KEY": "sesame"}) as up:
            assert soon(lambda: is_healthy(up, "named"))
            assert soon(lambda: "HTTP 404 from /health" in why(up)), why(up)
            assert 'set its health to a path that it has, such as "/v1/models"' in why(up)
