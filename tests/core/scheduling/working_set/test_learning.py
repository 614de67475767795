"""What answers teach of a replica."""

from core.scheduling.builders import arrived
from luftpause.core.model.ids import Instant, ReplicaId
from luftpause.core.model.replicas import Load
from luftpause.core.model.turns import Usage
from luftpause.core.scheduling.reasons import PlacedBecause
from luftpause.core.scheduling.state import Turn
from luftpause.core.scheduling.working_set.learning import HITS_BAD, SHRINK_PAUSE_S, after_report, after_usage
from luftpause.core.scheduling.working_set.state import Seat

NOW = Instant(100.0)


def turn(expects: int = 0, first_s: float | None = None) -> Turn:
    arrival = arrived("t")
    return Turn(arrival, ReplicaId("a"), PlacedBecause.HOME, 0.0, 1, True, 9, expects=expects, first_s=first_s)


def told(seat: Seat, cached: int, times: int = 1, *, expects: int = 1000, now: float = 100.0) -> Seat:
    usage = Usage(prompt_tokens=1200, completion_tokens=50, cached_tokens=cached)
    for _ in range(times):
        seat = after_usage(seat, turn(expects), usage, Instant(now), learns=True)
    return seat


def test_speed_is_what_was_prefilled_until_the_first_token_and_the_rest_is_a_queue() -> None:
    usage = Usage(prompt_tokens=4000, completion_tokens=50, cached_tokens=0)
    seat = after_usage(Seat(), turn(first_s=0.5), usage, NOW, learns=True)
    assert seat.speed == 8000.0
    assert seat.excess_s == 0.0
    slower = after_usage(seat, turn(first_s=2.5), usage, NOW, learns=True)
    assert 7800.0 < slower.speed < 8000.0
    assert 0.15 < slower.excess_s < 0.25


def test_places_that_are_lost_make_the_window_smaller_than_what_is_charged_and_not_twice_at_once() -> None:
    thrashing = told(Seat(in_flight=30_000, kept=10_000, pool=60_000), 0, 14)
    assert thrashing.hits > HITS_BAD  # a shrunk window gets a chance
    assert thrashing.window == 30_000
    again = told(thrashing, 0, 40)
    assert again.window is not None
    assert 29_900 < again.window < 30_000
    assert told(again, 0, 1, now=100.0 + SHRINK_PAUSE_S).window == int(0.75 * again.window)


def test_a_few_places_that_are_lost_make_it_narrower_by_less_than_a_run() -> None:
    seat = Seat(pool=12_000, window=10_000, hits=0.75)
    assert told(seat, 700).window == 10_000 - 25
    assert told(Seat(pool=12_000, window=10_000, hits=0.85), 850).window == 10_000


def test_places_that_are_found_make_it_wider_by_a_run_a_windowful_and_never_wider_than_the_pool() -> None:
    seat = Seat(pool=12_000, window=10_000)
    assert told(seat, 1000).window == 10_100
    assert told(seat, 1000, 30).window is None
    assert told(seat, 1000, 30).capacity == 12_000


def test_where_nobody_has_a_place_to_lose_a_window_is_not_for_ever() -> None:
    seat = Seat(pool=12_000, window=10_000, hits=HITS_BAD)
    assert told(seat, 0, expects=0).window == 10_144
    assert told(seat, 0, 30, expects=0).window is None
    assert told(seat._replace(kept=1), 0, expects=0).window == 10_000, "somebody would lose"
    assert told(seat._replace(excess_s=1.1), 0, expects=0).window == 10_000, "its engine queues"
    usage = Usage(prompt_tokens=1200, completion_tokens=50, cached_tokens=0)
    assert after_usage(seat, turn(), usage, NOW, learns=False).window == 10_000


def test_a_prompt_that_was_rewritten_or_had_no_place_beside_others_teaches_nothing_of_the_memory() -> None:
    seat = Seat(pool=12_000, window=10_000, kept=1)
    for taught in (
        told(seat, 0, expects=5000),
        told(seat, 0, expects=0),
        after_usage(seat, turn(1000), Usage(prompt_tokens=9, completion_tokens=1), NOW, learns=True),
    ):
        assert taught._replace(turn=0.0) == seat


def test_a_turn_is_as_long_as_the_latest_ones_were() -> None:
    answer = Usage(prompt_tokens=900, completion_tokens=100)
    once = after_usage(Seat(), turn(1000), answer, NOW, learns=True)
    assert once.turn == 1000
    longer = Usage(prompt_tokens=1900, completion_tokens=100)
    assert after_usage(once, turn(1000), longer, NOW, learns=False).turn == 1100


def test_preemptions_that_rise_make_the_window_smaller() -> None:
    seat = after_report(Seat(in_flight=8000), Load(running=1, waiting=0, kv_tokens=9000, preemptions=3), NOW)
    assert (seat.pool, seat.window) == (9000, None)
    fewer = after_report(seat, Load(running=1, waiting=0, preemptions=4), NOW)
    assert (fewer.pool, fewer.window, fewer.capacity) == (9000, 6000, 6000)
    assert after_report(seat, Load(running=1, waiting=0), NOW).pool == 9000


def test_a_window_is_remembered_as_it_stood_when_its_engine_was_heard_of_last() -> None:
    seat = after_report(Seat(window=9000), Load(running=1, waiting=0), NOW)
    assert seat.window_heard == 9000
    assert told(seat, 0, 60)._replace(turn=0.0).window_heard == 9000
