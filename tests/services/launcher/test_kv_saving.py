"""What a launcher asks an engine about its slots, over HTTP; the engine pretends."""

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from luftpause.adapters.engine_http.engines import HttpEngines
from luftpause.core.model.ids import KvFile, RunId
from luftpause.core.model.replicas import Endpoint
from luftpause.core.scheduling.residency.actions import KvVerdict
from luftpause.core.scheduling.residency.reasons import KvReason
from luftpause.services.launcher import kv_saving
from luftpause.services.launcher.kv_files import KvFiles
from luftpause.services.launcher.kv_saving import KvSaving
from luftpause.testkit.fake_engine.server import fake_engine
from luftpause.testkit.fake_engine.settings import MetricsStyle, Settings
from services.launcher.launcher_world import run
from testkit.running import request

SETTINGS = Settings(ttft_s=0.0, metrics_style=MetricsStyle.LLAMA_CPP, slot_bytes=10)
CHAT = b'{"model":"fake-1b","id_slot":1,"messages":[{"role":"user","content":"hello there [tools:0] [tokens:2]"}]}'


def verdict(slot: int, file: int | None = 7) -> KvVerdict:
    named = None if file is None else KvFile(file)
    return KvVerdict(slot=slot, run=RunId("r"), tokens=100, why=KvReason.EXPECTED, file=named)


@asynccontextmanager
async def engine(settings: Settings) -> AsyncIterator[tuple[HttpEngines, Endpoint]]:
    """An engine of whose slots the second has been used."""
    engines = HttpEngines()
    async with fake_engine(settings) as url:
        assert (await request(f"{url}/v1/chat/completions", method="POST", body=CHAT))[0] == 200
        yield engines, Endpoint(url=url)
    await engines.close()


def said(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.message for record in caplog.records if record.name == "luftpause.launcher"]


def test_a_slot_is_saved_as_far_as_it_is_to_be(tmp_path: Path) -> None:
    files = KvFiles(tmp_path, 1 << 20)

    async def story() -> None:
        async with engine(replace(SETTINGS, slot_save_path=str(tmp_path))) as (engines, endpoint):
            saving = KvSaving(engines, files)
            assert await saving.slots(endpoint) == SETTINGS.figures.max_running
            assert await saving.prefill_s(endpoint) == pytest.approx(1 / SETTINGS.figures.prefill_tps)
            (saved,) = await saving.save(endpoint, (verdict(1), verdict(2, None)))
        assert (saved.file, saved.size) == (7, saved.tokens * 10)
        assert saved.tokens > 4
        assert files.kept() == (saved,)

    run(story())
    assert [path.name for path in tmp_path.iterdir()] == ["run-7.kv"]


@pytest.mark.parametrize("settings", [replace(SETTINGS, slot_fails=("save",)), SETTINGS])
def test_a_save_that_fails_saves_nothing_and_says_so_once(
    settings: Settings, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def story() -> None:
        folder = str(tmp_path) if settings.slot_fails else None
        async with engine(replace(settings, slot_save_path=folder)) as (engines, endpoint):
            assert await KvSaving(engines, KvFiles(tmp_path, 1 << 20)).save(endpoint, (verdict(1),)) == ()

    with caplog.at_level(logging.WARNING):
        run(story())
    assert said(caplog) == ["kv_not_saved"]
    assert list(tmp_path.iterdir()) == []


def test_an_empty_slot_is_not_kept(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    async def story() -> None:
        async with engine(replace(SETTINGS, slot_save_path=str(tmp_path))) as (engines, endpoint):
            saved = await KvSaving(engines, KvFiles(tmp_path, 1 << 20)).save(endpoint, (verdict(0, 1), verdict(1, 2)))
            assert [each.file for each in saved] == [2]

    run(story())
    assert [vars(record)["why"] for record in caplog.records] == ["the slot was empty"]
    assert [path.name for path in tmp_path.iterdir()] == ["run-2.kv"]


def test_a_slow_engine_is_not_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(kv_saving, "SAVE_S_MAX", 0.05)

    async def story() -> None:
        async with engine(replace(SETTINGS, slot_save_path=str(tmp_path), slot_s=30.0)) as (engines, endpoint):
            assert await KvSaving(engines, KvFiles(tmp_path, 1 << 20)).save(endpoint, (verdict(1), verdict(2, 8))) == ()

    with caplog.at_level(logging.WARNING):
        run(story())
    assert set(said(caplog)) == {"kv_not_saved"}


def test_where_there_is_no_room_nothing_is_asked(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    async def story() -> None:
        async with engine(replace(SETTINGS, slot_save_path=str(tmp_path))) as (engines, endpoint):
            assert await KvSaving(engines, KvFiles(tmp_path, 0)).save(endpoint, (verdict(1),)) == ()

    run(story())
    assert said(caplog) == ["kv_not_saved"]


def test_an_engine_that_is_none_of_these_parks_nothing(tmp_path: Path) -> None:
    async def story() -> None:
        nowhere = Endpoint(url="http://127.0.0.1:9")
        async with engine(replace(SETTINGS, metrics_style=MetricsStyle.NONE)) as (engines, endpoint):
            saving = KvSaving(engines, KvFiles(tmp_path, 1 << 20))
            for each in (endpoint, nowhere):
                assert await saving.slots(each) == 0
                assert await saving.prefill_s(each) == 0.0
            assert await saving.save(nowhere, (verdict(1),)) == ()

    run(story())


HUGE = b"99999999999999999999999"


@pytest.mark.parametrize(
    "body",
    [
        b"llamacpp:prompt_tokens_total many\nllamacpp:prompt_seconds_total 1\n",
        b"llamacpp:prompt_tokens_total 1\nllamacpp:prompt_seconds_total inf\n",
        b"llamacpp:prompt_tokens_total 1e-300\nllamacpp:prompt_seconds_total 1\n",
        b'{"n_saved":%s}' % HUGE,
        b'{"n_saved":-1}',
        b'[{"id":%s}]' % HUGE,
        b"[" + b",".join([b'{"id":0}'] * 5000) + b"]",
    ],
)
def test_answers_that_make_no_sense_are_none(body: bytes, tmp_path: Path) -> None:
    async def odd(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        (tmp_path / "run-7.kv").touch()
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\nconnection: close\r\n\r\n%s" % (len(body), body))
        writer.close()

    async def story() -> None:
        engines = HttpEngines()
        async with await asyncio.start_server(odd, "127.0.0.1", 0) as server:
            endpoint = Endpoint(url=f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}")
            saving = KvSaving(engines, KvFiles(tmp_path, 1 << 20))
            assert await saving.slots(endpoint) == 0
            assert await saving.prefill_s(endpoint) == 0.0
            assert await saving.save(endpoint, (verdict(1),)) == ()
        await engines.close()

    run(story())
