"""Keys that act where no settings object carries them."""

import signal
import threading
from pathlib import Path

import msgspec
import pytest

from adapters.engine_http.scripted_engine import ScriptedEngine, Visit, answer, eventually, run_bounded
from luftpause.assembly.doors import Access
from luftpause.assembly.parts import Plans, engines_part
from luftpause.config.schema import Config
from luftpause.core.model.replicas import Endpoint
from luftpause.ports.engines import EngineRequest
from stories.programs import Program, running
from stories.raw_wire import WAIT_S, Answer, Engine, ask, chat_body, soon, status, whole
from stories.set_ups import FREE_PORTS, replicas, write


@pytest.mark.parametrize(("engine_idle", "stays"), [("10ms", False), ("1h", True)])
def test_a_connection_to_an_engine_is_kept_for_as_long_as_is_set(engine_idle: str, stays: bool) -> None:
    config = msgspec.convert({"dataplane": {"engine_idle": engine_idle}}, Config)

    async def main() -> None:
        async def script(visit: Visit) -> None:
            await visit.request()
            visit.send(answer(b"ok"))
            await visit.left()

        async with (
            ScriptedEngine(script).listening() as engine,
            engines_part(Plans(config=config, access=Access())) as engines,
        ):
            request = EngineRequest(method=b"GET", path=b"/", headers=(), body=b"")
            exchange = await engines.send(Endpoint(url=engine.url), request)
            assert await exchange.read() == b"ok"
            exchange.close()
            if stays:
                assert not engine.visits[0].closed.is_set()
            else:
                await eventually(engine.visits[0].closed.is_set)

    run_bounded(main())


def healthy(up: Program) -> bool:
    return all(replica["healthy"] for replica in status(up.url("scheduler"))["replicas"])


@pytest.mark.timeout(120)
@pytest.mark.parametrize("drain", ["1m", "0s"])
def test_open_turns_get_as_long_as_is_set_when_the_door_closes(tmp_path: Path, drain: str) -> None:
    begun, may_end, answers = threading.Event(), threading.Event(), list[Answer]()

    def reply(_: bytes) -> bytes:
        begun.set()
        may_end.wait(WAIT_S)
        return whole()

    with Engine(reply=reply) as engine:
        config = write(tmp_path, FREE_PORTS, replicas(engine.url))
        with running(tmp_path, "up", "up", "--config", config, "--set", f"dataplane.drain={drain}") as up:
            assert soon(lambda: healthy(up))
            turn = threading.Thread(target=lambda: answers.append(ask(up.url("dataplane"), chat_body(), within_s=30)))
            turn.start()
            assert begun.wait(WAIT_S)
            up.process.send_signal(signal.SIGTERM)
            assert soon(lambda: "stopping" in up.output.read_text())
            if drain == "0s":
                up.process.wait(WAIT_S)
            may_end.set()
            turn.join(WAIT_S)
    assert [answer.status for answer in answers] == ([200] if drain == "1m" else [503])
