"""What the workers of a door are told, and when there are none to tell. Whole crews are in `stories/test_workers`."""

import asyncio
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from luftpause.adapters.door_guard.keyring import Key
from luftpause.assembly.crew import Order, crew_part, order_from
from luftpause.assembly.doors import Access
from luftpause.assembly.parts import Plans
from luftpause.assembly.start_failed import StartFailedError
from luftpause.config.problems import ConfigError
from luftpause.config.schema import Config, Dataplane, Replica
from luftpause.core.model.ids import PrincipalId
from luftpause.core.model.principals import Principal
from luftpause.core.model.turns import ServiceClass
from stories.raw_wire import Engine

TWO = Dataplane(port=0, workers=2)
BOB = Key(token="bobs", principal=Principal(name=PrincipalId("bob"), classes=(ServiceClass.BATCH,)))


@pytest.fixture
def taken() -> Iterator[int]:
    with Engine() as engine:
        yield int(engine.url.rpartition(":")[2])


def start(plans: Plans) -> None:
    """Start a crew whose program would fail at once."""

    async def story() -> None:
        async with asyncio.timeout(30), crew_part(plans, link_port=1):
            raise AssertionError("it started")

    asyncio.run(story())


def test_an_order_arrives_as_it_was_given() -> None:
    config = Config(replicas=[Replica(name="r", url="http://a", models=["m"])], dataplane=TWO)
    given = Order(config=config, access=Access(token="operators", principals=(BOB,)))
    taken = order_from(given.to_bytes())
    assert taken.config == config
    assert taken.access.keyring.find([b"bobs"]) == BOB.principal
    assert taken.access.tokens == given.access.tokens


def test_an_order_does_not_show_its_tokens() -> None:
    shown = repr(Order(config=Config(), access=Access(token="operators", principals=(BOB,))))
    assert "operators" not in shown
    assert "bobs" not in shown


def test_a_port_that_is_taken_is_named_before_any_worker_starts(taken: int) -> None:
    plans = Plans(config=Config(dataplane=Dataplane(port=taken, workers=2)), access=Access())
    with pytest.raises(StartFailedError, match=rf"^dataplane\.port: 127\.0\.0\.1:{taken} is already in use"):
        start(plans)


def test_a_door_to_other_machines_needs_a_token(taken: int) -> None:
    open_to_all = Config(dataplane=Dataplane(host="0.0.0.0", port=taken, workers=2))
    with pytest.raises(StartFailedError, match=r"asks for no token"):
        start(Plans(config=open_to_all, access=Access()))


def test_a_key_that_is_not_set_is_named_once_and_not_by_every_worker() -> None:
    replica = Replica(name="r", url="http://a", models=["m"], api_key_env="NO_SUCH_VARIABLE")
    with pytest.raises(ConfigError, match="NO_SUCH_VARIABLE"):
        start(Plans(config=Config(replicas=[replica], dataplane=TWO), access=Access()))


def test_elsewhere_than_on_linux_there_is_one_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("luftpause.assembly.crew.sys.platform", "darwin")
    with pytest.raises(StartFailedError, match="need Linux; set it to 1"):
        start(Plans(config=Config(dataplane=TWO), access=Access()))


def test_a_worker_that_does_not_start_ends_the_start(tmp_path: Path) -> None:
    plans = Plans(config=Config(dataplane=TWO), access=Access(), worker_command=(str(tmp_path / "missing"),))
    with pytest.RaisesGroup(
        pytest.RaisesExc(StartFailedError, match=r"^dataplane\.workers: worker [12] ended before it was ready")
    ):
        start(plans)


OPENS_AND_ENDS = """
import asyncio, sys
from luftpause.adapters.crew.member import enrolled

async def main():
    async with enrolled(int(sys.argv[-1]), lambda: None) as member:
        member.opened()

asyncio.run(main())
sys.exit(3)
"""


def test_a_door_that_no_worker_is_left_of_ends_with_a_word(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("luftpause.assembly.crew.BACKOFF_S", ())
    plans = Plans(config=Config(dataplane=TWO), access=Access(), worker_command=(sys.executable, "-c", OPENS_AND_ENDS))

    async def story() -> None:
        async with asyncio.timeout(30), crew_part(plans, link_port=1):
            await asyncio.Event().wait()

    with pytest.RaisesGroup(
        pytest.RaisesExc(StartFailedError, match=r"^dataplane\.workers: every worker failed too often in a row")
    ):
        asyncio.run(story())
