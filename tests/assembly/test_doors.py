"""Who may come in through the doors of a whole program, as its configuration says."""

from collections.abc import Iterator

import pytest

from luftpause.adapters.door_guard.keyring import Key
from luftpause.assembly.doors import Access, is_loopback
from luftpause.core.model.ids import PrincipalId
from luftpause.core.model.principals import OPERATOR, Principal
from stories.programs import Program, running
from stories.raw_wire import Answer, ask
from stories.set_ups import launched_engines, write

pytestmark = pytest.mark.timeout(120)

DOORS = """
[dataplane]
port = 0
allowed_hosts = ["llm.lan"]
allowed_origins = ["https://llm.example"]
[scheduler]
port = 0
http_port = 0
allowed_hosts = ["status.lan"]
allowed_origins = ["https://status.example"]
[runtime]
port = 0
allowed_hosts = ["agents.lan"]
allowed_origins = ["https://agents.example"]
"""
NAMES = {"dataplane": "llm", "scheduler": "status", "runtime": "agents"}


@pytest.fixture(scope="module")
def up(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Program]:
    directory = tmp_path_factory.mktemp("doors")
    with running(directory, "up", "up", "--config", write(directory, DOORS, launched_engines(instances=1))) as program:
        yield program


def knock(up: Program, door: str, *lines: str, host: str) -> Answer:
    return ask(up.services[door].removesuffix("/mcp"), b"", *lines, start="GET /health HTTP/1.1", host=host)


@pytest.mark.parametrize("door", NAMES)
def test_each_door_answers_for_its_own_names_and_for_every_address(up: Program, door: str) -> None:
    own = NAMES[door]
    for host in (f"{own}.lan", f"{own}.lan:80", "192.168.7.7", "localhost:1"):
        assert knock(up, door, host=host).status == 200, host
    for other in NAMES.values():
        if other != own:
            assert knock(up, door, host=f"{other}.lan").status == 421


@pytest.mark.parametrize("door", NAMES)
def test_each_door_answers_the_web_pages_that_it_allows(up: Program, door: str) -> None:
    own = NAMES[door]
    for name in NAMES.values():
        expected = 200 if name == own else 403
        assert knock(up, door, f"origin: https://{name}.example", host="127.0.0.1").status == expected


@pytest.mark.parametrize("door", NAMES)
def test_a_page_that_may_call_a_door_may_ask_it_beforehand_and_read_its_answers(up: Program, door: str) -> None:
    page = f"https://{NAMES[door]}.example"
    asking = ("access-control-request-method: POST", "access-control-request-headers: authorization,content-type")

    def ask_before(origin: str) -> Answer:
        return ask(up.services[door], b"", f"origin: {origin}", *asking, start="OPTIONS /v1/chat/completions HTTP/1.1")

    allowed = ask_before(page)
    assert (allowed.status, allowed.headers["access-control-allow-origin"]) == (204, page)
    assert allowed.headers["access-control-allow-methods"] == "GET, HEAD, POST, DELETE"
    assert allowed.headers["access-control-allow-headers"] == "authorization,content-type"
    assert "access-control-allow-credentials" not in allowed.headers
    assert ask_before("https://evil.example").status == 403
    assert knock(up, door, f"origin: {page}", host="127.0.0.1").headers["access-control-allow-origin"] == page
    assert "access-control-allow-origin" not in knock(up, door, host="127.0.0.1").headers


ALICE = Key(token="a", principal=Principal(name=PrincipalId("alice")))


def test_the_operators_doors_know_no_other_token() -> None:
    access = Access(token="o", principals=(ALICE,))

    assert access.keyring.find([b"o"]) is OPERATOR
    assert access.keyring.find([b"a"]) is ALICE.principal
    assert access.for_operator().keyring.find([b"a"]) is None
    assert access.for_operator().keyring.find([b"o"]) is OPERATOR
    assert not Access().keyring
    assert "'o'" not in repr(access)


def test_a_run_is_taken_on_with_the_token_of_its_own_principal() -> None:
    tokens = Access(token="o", principals=(ALICE,)).tokens

    assert tokens == {"alice": "a", "operator": "o", "anonymous": "o"}
    assert Access().tokens == {}


@pytest.mark.parametrize(
    ("host", "expected"),
    [
        ("127.0.0.1", True),
        ("127.8.9.1", True),
        ("::1", True),
        ("localhost", True),
        ("LOCALHOST", True),
        ("0.0.0.0", False),
        ("::", False),
        ("10.0.0.1", False),
        ("127.0.0.1.nip.io", False),
        ("localhost.example", False),
        ("box", False),
        ("127.1", False),
        ("0", False),
    ],
)
def test_only_what_cannot_be_reached_from_elsewhere_counts_as_loopback(host: str, expected: bool) -> None:
    assert is_loopback(host) is expected
