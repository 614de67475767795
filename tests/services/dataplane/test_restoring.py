"""A run's parked KV is read back before its turn is sent, or the engine computes its prompt again."""

import json
import logging
from dataclasses import replace
from pathlib import Path

import pytest

from adapters.engine_http.scripted_engine import Received, ScriptedEngine, Visit, answer, run_bounded
from adapters.raw_client import fetch
from luftpause.adapters.engine_http.engines import HttpEngines
from luftpause.core.model.ids import ReplicaId, TurnId
from luftpause.core.model.replicas import Endpoint, Placement
from luftpause.core.scheduling.events import TurnFinished
from luftpause.services.dataplane import restoring
from luftpause.services.dataplane.restoring import restore
from luftpause.testkit.fake_engine.server import fake_engine
from luftpause.testkit.fake_engine.settings import Settings
from services.dataplane.door import open_door
from testkit.running import request

CHAT = b'{"model":"fake-1b","id_slot":1,"messages":[{"role":"user","content":"hello there [tools:0] [tokens:2]"}]}'


def restored(settings: Settings, *, url: str = "") -> float | None:
    """Have an engine save a slot, then read it back, by its settings."""

    async def story() -> float | None:
        engines = HttpEngines()
        async with fake_engine(settings) as here:
            await request(f"{here}/v1/chat/completions", method="POST", body=CHAT)
            await request(f"{here}/slots/1?action=save", method="POST", body=b'{"filename":"run-7.kv"}')
            place = Placement(
                replica=ReplicaId("a"), endpoint=Endpoint(url=url or here), why="", slot=0, restore="run-7.kv"
            )
            took_s = await restore(engines, place, TurnId("t"))
        await engines.close()
        return took_s

    return run_bounded(story())


def test_how_long_it_took_is_told(tmp_path: Path) -> None:
    took_s = restored(Settings(ttft_s=0.0, slot_save_path=str(tmp_path)))
    assert took_s is not None
    assert took_s >= 0


def test_whatever_fails_is_said_in_one_line(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = Settings(ttft_s=0.0, slot_save_path=str(tmp_path))
    with caplog.at_level(logging.WARNING):
        assert restored(replace(settings, slot_fails=("restore",))) is None
        assert restored(replace(settings, slot_save_path=None)) is None
        assert restored(settings, url="http://127.0.0.1:9") is None
        monkeypatch.setattr(restoring, "RESTORE_S_MAX", 0.01)
        assert restored(replace(settings, slot_s=0.5)) is None
    lines = [record.message for record in caplog.records if record.name == "luftpause.dataplane"]
    assert lines == ["kv_not_restored"] * 4


@pytest.mark.parametrize("status", [b"200 OK", b"400 No"])
def test_a_turn_waits_for_its_restore_goes_to_its_slot_and_tells_how_long_it_took(
    status: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    async def story() -> None:
        asked: list[Received] = []

        async def script(visit: Visit) -> None:
            while True:
                asked.append(await visit.request())
                is_slot = asked[-1].line.startswith(b"POST /slots")
                said = b"{}" if is_slot else b'{"choices":[{"finish_reason":"stop"}]}'
                told = status if is_slot else b"200 OK"
                visit.send(answer(said, status=told, headers=b"content-type: application/json\r\n"))

        async with open_door(ScriptedEngine(script)) as door:
            door.scheduler.restore = "run-7.kv"
            with caplog.at_level("INFO"):
                assert (await door.chat(body=b'{"model":"m"}')).status == 200
            (ending,) = door.scheduler.endings
            assert isinstance(ending, TurnFinished)
            assert (ending.restore_s is not None) is (status == b"200 OK")
            assert [vars(each)["members"] for each in caplog.records if each.message == "request_edited"] == ["id_slot"]
            metrics = (await fetch(door.url, b"GET", b"/metrics")).body
            assert b'luftpause_dataplane_edits_total{member="id_slot"} 1.0' in metrics
        slots, turn = asked
        assert slots.line.startswith(b"POST /slots/2?action=restore ")
        assert json.loads(slots.body) == {"filename": "run-7.kv"}
        assert json.loads(turn.body)["id_slot"] == 2

    run_bounded(story())
