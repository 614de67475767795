"""The stream of what changes, on a real event loop."""

import json
from collections.abc import AsyncIterator
from contextlib import aclosing
from typing import Any

import pytest

from luftpause.core.model.ids import TurnId
from luftpause.core.scheduling.events import TurnFinished
from luftpause.ports.run_trees import RunTree, TreeRun
from luftpause.services.scheduler import feed as feed_module
from luftpause.services.scheduler.feed import CHILDREN_TOLD_MAX, Feed
from luftpause.services.scheduler.live_http import LiveHttp, Surroundings
from luftpause.services.scheduler.service import SchedulerService
from services.scheduler.idle_launcher import Seat
from services.scheduler.run_trees import RUNTIME, FakeRunTrees
from services.scheduler.running import offer, run, soon, spec, started

Json = dict[str, Any]


@pytest.fixture(autouse=True)
def hurry(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(feed_module, "PERIOD_S", 0.01)


def live() -> tuple[SchedulerService, Feed, FakeRunTrees]:
    service, trees = started(spec("a")), FakeRunTrees()
    return service, LiveHttp(service, Surroundings(trees=trees, llm_door=lambda: "http://door")).feed, trees


async def update(stream: AsyncIterator[bytes]) -> Json:
    """The next event that tells something."""
    while True:
        event = await soon(anext(stream))
        if event != b": still here\n\n":
            assert event.startswith(b"data: ")
            told: Json = json.loads(event.removeprefix(b"data: "))
            return told


async def until(stream: AsyncIterator[bytes], *path: str) -> Json:
    """What the first update holds that has something there."""
    while True:
        found: Json | None = await update(stream)
        for name in path:
            found = None if found is None else found.get(name)
        if found is not None:
            return found


def test_first_all_is_told_and_then_only_what_changed() -> None:
    async def story() -> None:
        service, feed, _ = live()
        service.admit(offer("t1", run="r"))
        async with aclosing(feed.stream(RUNTIME)) as stream:
            first = await update(stream)
            assert first["about"]["doors"] == {"llm": "http://door", "mcp": [RUNTIME]}
            assert first["tables"]["replicas"]["order"] == ["a"]
            assert first["tables"]["replicas"]["rows"]["a"]["in_flight"] == 1
            assert first["tables"]["trees"]["rows"]["h1"]["task"] == "a <b>task"
            assert first["runtime"] == {"url": RUNTIME, "away": "", "omitted": 0}
            assert first["lanes"] == [[1, "r", "run", "interactive", "anonymous", "m", None]]
            assert first["changes"][0][:2] == [1, "prefill"]
            service.report(TurnFinished(turn=TurnId("t1")))
            told = await update(stream)
            while "tables" not in told:
                told = await update(stream)
            assert "about" not in told
            assert told["tables"]["replicas"]["rows"]["a"]["in_flight"] == 0
            assert "order" not in told["tables"]["replicas"]
            assert "trees" not in told["tables"], "they did not change"

    run(story)


def test_a_change_of_phase_is_told_once_with_its_lane_only_the_first_time() -> None:
    async def story() -> None:
        service, feed, _ = live()
        async with aclosing(feed.stream(None)) as stream:
            assert "changes" not in await update(stream)
            service.admit(offer("t1", run="r"))
            told = await update(stream)
            while "changes" not in told:
                told = await update(stream)
            assert [lane[1] for lane in told["lanes"]] == ["r"]
            service.report(TurnFinished(turn=TurnId("t1")))
            told = await update(stream)
            while not told.get("changes"):
                told = await update(stream)
            assert (told["lanes"], [change[1] for change in told["changes"]]) == ([], ["idle"])

    run(story)


def test_a_model_that_was_down_when_one_began_to_look_is_told_of_once_it_loads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(feed_module, "BACK_S", 0.0)

    async def story() -> None:
        service, feed, _ = live()
        seat = Seat()
        service.launchers.joined(seat, seat.inventory())
        service.admit(offer("t1", run="r"))
        async with aclosing(feed.stream(None)) as stream:
            assert [lane[1] for lane in (await update(stream))["lanes"]] == ["r"]
            service.admit(offer("t2", run="other", model="big"))
            told = await update(stream)
            while "changes" not in told:
                told = await update(stream)
        assert {lane[1] for lane in told["lanes"]} == {"big", "other"}
        assert {change[0] for change in told["changes"]} == {lane[0] for lane in told["lanes"]}

    run(story)


def test_a_runtime_is_asked_again_and_told_of_while_it_is_away() -> None:
    async def story() -> None:
        _, feed, trees = live()
        async with aclosing(feed.stream(RUNTIME)) as stream:
            await update(stream)
            trees.tree = None
            assert (await until(stream, "runtime"))["away"] == "it sleeps"
            trees.tree = RunTree(runs=[TreeRun(handle="h2", status="Finished")], omitted=3)
            told = await update(stream)
            while "trees" not in told.get("tables", {}):
                told = await update(stream)
            assert told["tables"]["trees"]["order"] == ["h2"]
            assert told["runtime"] == {"url": RUNTIME, "away": "", "omitted": 3}

    run(story)


def test_two_that_look_share_the_look_and_the_work_ends_with_the_last() -> None:
    async def story() -> None:
        service, feed, _ = live()
        async with aclosing(feed.stream(None)) as one:
            await update(one)
            async with aclosing(feed.stream(None)) as other:
                await update(other)
                service.admit(offer("t1", run="r"))
                assert (await until(one, "tables", "runs"))["order"] == ["generating interactive"]
                assert (await until(other, "tables", "runs"))["order"] == ["generating interactive"]
        assert not feed.is_watched

    run(story)


def test_who_reads_a_silent_scheduler_hears_that_it_is_still_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(feed_module, "QUIET_PERIODS", 2)

    async def story() -> None:
        _, feed, _ = live()
        async with aclosing(feed.stream(None)) as stream:
            await update(stream)
            assert await soon(anext(stream)) == b": still here\n\n"

    run(story)


def test_closing_ends_every_stream_and_no_more_look_than_may(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(feed_module, "READERS_MAX", 1)

    async def story() -> None:
        _, feed, _ = live()
        assert not feed.room_in_s()
        stream = feed.stream(None)
        await update(stream)
        assert 0 < feed.room_in_s() <= feed_module.SEAT_S
        assert not [event async for event in feed.stream(None)], "who was let in beside it is sent away"
        feed.close()
        assert not [event async for event in stream]
        assert feed.is_closed
        assert not [event async for event in feed.stream(None)]

    run(story)


def test_whoever_has_looked_for_long_makes_room_for_one_who_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(feed_module, "READERS_MAX", 2)
    monkeypatch.setattr(feed_module, "SEAT_S", 0.0)

    async def story() -> None:
        _, feed, _ = live()
        first, second, third = (feed.stream(None) for _ in range(3))
        await update(first)
        await update(second)
        await update(third)
        assert not [event async for event in first], "it sat for longest"
        assert feed.is_watched
        await second.aclose()
        await third.aclose()
        assert not feed.is_watched

    run(story)


def test_a_look_that_fails_ends_the_streams_and_whoever_comes_back_gets_another(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(_: object) -> Json:
        raise ValueError("a fault of ours")

    async def story() -> None:
        _, feed, _ = live()
        async with aclosing(feed.stream(None)) as stream:
            await update(stream)
            with monkeypatch.context() as patch:
                patch.setattr(feed_module, "sections", broken)
                assert not [event async for event in stream if event.startswith(b"data")]
        async with aclosing(feed.stream(None)) as stream:
            assert "about" in await update(stream)

    run(story)
    assert "status_feed_failed" in caplog.text


def test_of_a_large_family_some_children_are_told_and_the_others_counted() -> None:
    async def story() -> None:
        service, feed, _ = live()
        for number in range(CHILDREN_TOLD_MAX + 7):
            service.admit(offer(f"t{number}", run=f"child-{number}", parent="parent"))
        async with aclosing(feed.stream(None)) as stream:
            family = (await update(stream))["tables"]["families"]["rows"]["parent"]
        assert (len(family["children"]), family["omitted"], family["at_work"]) == (
            CHILDREN_TOLD_MAX,
            7,
            CHILDREN_TOLD_MAX + 7,
        )

    run(story)
