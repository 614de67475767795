"""Who may come in through the doors of a whole program, as its configuration says."""

from collections.abc import Iterator

import pytest

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
