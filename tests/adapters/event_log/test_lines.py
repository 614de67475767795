"""The lines of an event log, there and back."""

import math
from dataclasses import replace

import pytest
from hypothesis import given, settings

from adapters.link.drawing import values
from core.scheduling.builders import World, arrived, failed, spec
from core.scheduling.histories import history
from core.scheduling.residency.test_parking import come_back, go_out, park, swap_out
from core.scheduling.residency.test_parking import world as parking_world
from core.scheduling.residency.words import down, saved
from core.scheduling.test_memory import LOOK
from luftpause.adapters.event_log.lines import Entry, Segment, digest_of, entry, event_in, line_in, segment, state_in
from luftpause.core.model.ids import Instant, ToolName
from luftpause.core.scheduling.decide import decide
from luftpause.core.scheduling.events import Event, MemoryRestored, TurnFailed
from luftpause.core.scheduling.state import Limits, State, empty_state


def lived(seed: int, length: int) -> State:
    state = empty_state(Limits())
    for event, now in history(seed, length):
        state = decide(state, event, now).state
    return state


@settings(max_examples=60)
@given(values(Event))
def test_any_event_comes_back_as_it_was_told(event: Event) -> None:
    line = line_in(entry(event, Instant(1.5), (), ""))
    assert isinstance(line, Entry)
    assert line.now == 1.5
    if not isinstance(event, TurnFailed):
        assert event_in(line) == event


def test_what_an_engine_said_when_a_turn_failed_is_left_out() -> None:
    assert b"engine broke" not in entry(failed("t"), Instant(0.0), (), "")


@pytest.mark.parametrize("wish", [None, 5.0, math.inf, -math.inf, math.nan])
def test_any_wish_to_be_left_alone_leads_to_the_same_state_again(wish: float | None) -> None:
    state = World(spec("a")).state
    state = decide(state, arrived("t"), Instant(0.0)).state
    line = line_in(entry(failed("t", retry_after_s=wish), Instant(1.0), (), ""))
    assert isinstance(line, Entry)
    first = decide(state, failed("t", retry_after_s=wish), Instant(1.0))
    assert decide(state, event_in(line), Instant(1.0)) == first


@pytest.mark.parametrize("number", [math.inf, -math.inf, math.nan])
def test_a_memory_that_json_cannot_hold_leads_to_the_same_state_again(number: float) -> None:
    state = empty_state(Limits())
    scribbles = (replace(LOOK, age_s=number), replace(LOOK, tool=ToolName("ask"), unit=number))
    told = MemoryRestored(tools=(*scribbles, replace(LOOK, tool=ToolName("sit"), losses=(number, *LOOK.losses[1:]))))
    line = line_in(entry(told, Instant(1.0), (), ""))
    assert isinstance(line, Entry)
    assert decide(state, event_in(line), Instant(1.0)) == decide(state, told, Instant(1.0))


def test_any_state_comes_back_as_it_was() -> None:
    for seed in range(20):
        state = lived(seed, 150)
        line = line_in(segment(state, Instant(7.0), version="v", policy="p", utc="now"))
        assert isinstance(line, Segment)
        assert state_in(line) == state
        assert digest_of(state_in(line)) == digest_of(state)


def test_two_states_have_two_digests() -> None:
    digests = {digest_of(lived(seed, 100)) for seed in range(20)}
    assert len(digests) == 20


@pytest.mark.parametrize("number", [math.inf, -math.inf, math.nan])
def test_times_of_kv_that_json_cannot_hold_lead_to_the_same_state_again(number: float) -> None:
    world = parking_world()
    go_out(world, "r")
    (verdict,) = swap_out(world)
    assert verdict.file is not None
    told = down("A", kv=(saved(verdict.file, took_s=number),), prefill_s=number)
    line = line_in(entry(told, Instant(1.0), (), ""))
    assert isinstance(line, Entry)
    assert decide(world.state, event_in(line), Instant(1.0)) == decide(world.state, told, Instant(1.0))


def test_slots_and_parked_kv_come_back_as_they_were() -> None:
    world = parking_world()
    go_out(world, "r")
    park(world)
    come_back(world, "r")
    assert world.state.residency.parked
    assert world.state.residency.slots
    line = line_in(segment(world.state, Instant(7.0), version="v", policy="p", utc="now"))
    assert isinstance(line, Segment)
    assert state_in(line) == world.state
