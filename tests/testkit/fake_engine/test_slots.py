"""The fake engine's slots: saved, restored in another engine, erased, and failing as told."""

import asyncio
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from msgspec import structs

from luftpause.testkit.fake_engine.server import fake_engine
from luftpause.testkit.fake_engine.settings import FIGURES, Settings
from testkit.running import request, run

TASK = "a long question " * 20 + "[tools:0] [tokens:4]"
QUICK = Settings(ttft_s=0.0, slot_bytes=100)


async def ask(url: str, *, slot: int | None = None, more: str = "") -> int:
    """Return how many tokens of a conversation were found."""
    messages = [{"role": "user", "content": TASK}]
    if more:
        messages.append({"role": "user", "content": more})
    body = {"model": "fake-1b", "messages": messages, **({} if slot is None else {"id_slot": slot})}
    status, _, answer = await request(f"{url}/v1/chat/completions", method="POST", body=json.dumps(body).encode())
    assert status == 200
    return int(json.loads(answer)["usage"]["prompt_tokens_details"]["cached_tokens"])


async def act(url: str, slot: int, action: str, name: str = "x.kv") -> tuple[int, dict[str, Any]]:
    body = json.dumps({"filename": name}).encode()
    status, _, answer = await request(f"{url}/slots/{slot}?action={action}", method="POST", body=body)
    return status, json.loads(answer)


def test_another_engine_finds_what_was_saved(tmp_path: Path) -> None:
    async def story() -> None:
        settings = replace(QUICK, slot_save_path=str(tmp_path))
        async with fake_engine(settings) as url:
            await ask(url, slot=3)
            status, told = await act(url, 3, "save")
            assert (status, told["id_slot"]) == (200, 3)
            assert told["n_written"] == (tmp_path / "x.kv").stat().st_size == told["n_saved"] * 100
        async with fake_engine(settings) as url:
            assert (await act(url, 0, "restore"))[1]["n_restored"] == told["n_saved"]
            assert await ask(url, more="and?") > 60
        async with fake_engine(settings) as url:
            assert await ask(url, more="and?") == 0

    run(story())


def test_what_does_not_fit_is_not_taken_back(tmp_path: Path) -> None:
    async def story() -> None:
        settings = replace(QUICK, slot_save_path=str(tmp_path))
        async with fake_engine(settings) as url:
            await ask(url, slot=0)
            await act(url, 0, "save")
        small = replace(settings, figures=structs.replace(FIGURES, kv_tokens=64))
        async with fake_engine(small) as url:
            assert (await act(url, 0, "restore"))[0] == 200
            assert (await act(url, 0, "save"))[1]["n_saved"] == 0

    run(story())


def test_slots_are_listed_erased_and_refused_where_there_are_none(tmp_path: Path) -> None:
    async def story() -> None:
        async with fake_engine(replace(QUICK, slot_save_path=str(tmp_path))) as url:
            status, _, listing = await request(f"{url}/slots")
            assert (status, len(json.loads(listing))) == (200, FIGURES.max_running)
            await ask(url, slot=1)
            assert (await act(url, 1, "erase"))[1]["n_erased"] > 60
            assert (await act(url, 1, "save"))[1]["n_saved"] == 0
            assert (await act(url, 99, "save"))[0] == 400
            assert (await act(url, 1, "dance"))[0] == 400
        async with fake_engine(QUICK) as url:
            assert (await request(f"{url}/slots"))[0] == 501
            assert [(await act(url, 0, action))[0] for action in ("save", "restore", "erase")] == [501] * 3

    run(story())


@pytest.mark.parametrize("name", ["../x", "", "a/b", ".hidden", "x" * 300])
def test_no_name_leads_out_of_the_folder(name: str, tmp_path: Path) -> None:
    async def story() -> None:
        async with fake_engine(replace(QUICK, slot_save_path=str(tmp_path))) as url:
            assert [(await act(url, 0, action, name))[0] for action in ("save", "restore")] == [400, 400]

    run(story())
    assert list(tmp_path.iterdir()) == []


def test_it_fails_and_takes_its_time_as_told(tmp_path: Path) -> None:
    async def story() -> None:
        settings = replace(QUICK, slot_save_path=str(tmp_path), slot_fails=("save",))
        async with fake_engine(settings) as url:
            assert (await act(url, 0, "save"))[0] == 500
            assert (await act(url, 0, "restore"))[0] == 400
        async with fake_engine(replace(QUICK, slot_save_path=str(tmp_path), slot_s=60.0)) as url:
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.05):
                    await act(url, 0, "save")

    run(story())
