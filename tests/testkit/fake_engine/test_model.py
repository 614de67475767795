"""The engine model: timing by hand-made tables, and what must hold for any load."""

from dataclasses import dataclass, field

import pytest
from hypothesis import given
from hypothesis import strategies as st

from luftpause.testkit.fake_engine.model import EngineModel, Figures, Progress, Request
from luftpause.testkit.fake_engine.prefix_cache import Piece

ROUND = Figures(slots=2, ttft_s=1.0, token_s=0.1, crowd_s=0.0, prefill_tps=1000.0, kv_tokens=10_000)


def request(key: int, *, prompt: int = 100, reply: int = 3, name: str = "", stalls_after: int | None = None) -> Request:
    prefix = name or f"c{key}"
    return Request(
        key=key,
        prompt=(Piece(prefix, prompt),),
        reply_tokens=reply,
        reply_prefix=f"{prefix}+",
        stalls_after=stalls_after,
    )


@dataclass
class Clockwork:
    """Runs a model by its own word, jumping from step to step."""

    model: EngineModel
    now: float = 0.0
    made: list[tuple[float, Progress]] = field(default_factory=list)

    def step(self) -> bool:
        end = self.model.begin_step(self.now)
        if end is None:
            return False
        assert end >= self.now
        self.now = end
        self.made += [(self.now, progress) for progress in self.model.end_step()]
        return True

    def run(self) -> "Clockwork":
        for _ in range(10_000):
            if not self.step():
                return self
        pytest.fail("the model never comes to rest")

    def times(self, key: int) -> list[float]:
        return [at for at, progress in self.made if progress.key == key]


def clockwork(*requests: Request, figures: Figures = ROUND) -> Clockwork:
    model = EngineModel(figures)
    for one in requests:
        model.submit(one, 0.0)
    return Clockwork(model).run()


def test_the_first_token_comes_after_the_delay_and_the_prefill_and_the_others_one_step_apart() -> None:
    assert clockwork(request(1)).times(1) == pytest.approx([1.1, 1.2, 1.3])


def test_a_request_beyond_the_slots_waits_for_one() -> None:
    played = clockwork(request(1), request(2), request(3))
    freed_at = played.times(1)[-1]
    assert played.times(3)[0] >= freed_at + 0.1


def test_every_neighbour_makes_a_step_longer() -> None:
    crowded = Figures(slots=2, ttft_s=0.0, token_s=0.1, crowd_s=0.05, prefill_tps=1e9, kv_tokens=10_000)
    assert clockwork(request(1), figures=crowded).times(1)[-1] == pytest.approx(0.2)
    assert clockwork(request(1), request(2), figures=crowded).times(1)[-1] == pytest.approx(0.3)


def test_a_long_prompt_slows_its_neighbours_and_does_not_stop_them() -> None:
    alone = clockwork(request(1, reply=20)).times(1)[-1]
    beside = clockwork(request(1, reply=20), request(2, prompt=1000)).times(1)[-1]
    assert alone < beside < alone + 1.5


def test_the_next_turn_of_a_conversation_computes_only_what_is_new() -> None:
    played = clockwork(request(1, prompt=500, name="a"))
    turn = Request(
        key=2, prompt=(Piece("a", 500), Piece("a+", 3), Piece("a+q", 50)), reply_tokens=1, reply_prefix="a+q+"
    )
    began = played.now
    played.model.submit(turn, began)
    played.run()
    at, progress = played.made[-1]
    assert progress.cached_tokens == 503
    assert at - began == pytest.approx(1.0 + 0.05)


def test_a_prompt_seen_whole_still_computes_its_last_token() -> None:
    played = clockwork(request(1, prompt=500, name="a"))
    played.model.submit(request(2, prompt=500, name="a"), played.now)
    assert played.run().made[-1][1].cached_tokens == 499


def test_a_prefix_that_had_to_make_room_is_gone() -> None:
    tight = Figures(slots=1, ttft_s=0.0, token_s=0.1, crowd_s=0.0, prefill_tps=1000.0, kv_tokens=600)
    played = clockwork(request(1, prompt=500, name="a"), request(2, prompt=500, name="b"), figures=tight)
    played.model.submit(request(3, prompt=500, name="a"), played.now)
    assert played.run().made[-1][1].cached_tokens == 0


def test_who_does_not_fit_beside_the_others_waits_and_so_does_who_came_later() -> None:
    tight = Figures(slots=3, ttft_s=0.0, token_s=0.1, crowd_s=0.0, prefill_tps=1000.0, kv_tokens=1000)
    played = clockwork(request(1, prompt=700), request(2, prompt=700), request(3, prompt=10), figures=tight)
    assert [progress.key for _, progress in played.made if progress.made == 1] == [1, 2, 3]
    assert played.times(1)[-1] < played.times(2)[0] < played.times(3)[0]


def test_what_exceeds_the_memory_can_never_run() -> None:
    model = EngineModel(ROUND)
    assert model.fits(request(1, prompt=9997))
    assert not model.fits(request(1, prompt=9998))


def test_an_aborted_request_gives_its_slot_up_at_once_and_makes_nothing_more() -> None:
    model = EngineModel(ROUND)
    for key in (1, 2, 3):
        model.submit(request(key, reply=50), 0.0)
    played = Clockwork(model)
    played.step()
    assert (model.gauges().running, model.gauges().waiting) == (2, 1)
    model.abort(1)
    model.abort(99)
    assert (model.gauges().running, model.gauges().waiting) == (1, 1)
    played.run()
    assert {progress.key for _, progress in played.made} == {2, 3}
    assert model.gauges().aborted == 1


def test_a_request_that_leaves_during_a_step_makes_nothing_in_it() -> None:
    model = EngineModel(ROUND)
    model.submit(request(1), 0.0)
    assert model.begin_step(1.0) is not None
    model.abort(1)
    assert list(model.end_step()) == []


def test_a_request_that_leaves_the_queue_was_never_there() -> None:
    model = EngineModel(ROUND)
    for key in (1, 2, 3):
        model.submit(request(key), 0.0)
    model.begin_step(0.0)
    model.abort(3)
    assert model.gauges().waiting == 0


def test_a_stalled_request_keeps_its_slot_and_leaves_time_to_the_others() -> None:
    played = clockwork(request(1, stalls_after=1), request(2), request(3))
    assert len(played.times(1)) == 1
    assert len(played.times(2)) == len(played.times(3)) == 3
    assert played.model.gauges().running == 1


def test_an_engine_twice_as_fast_takes_half_the_time() -> None:
    slow = clockwork(request(1)).times(1)
    fast = clockwork(request(1), figures=ROUND.sped_up(2)).times(1)
    assert [at * 2 for at in fast] == pytest.approx(slow)


loads = st.lists(
    st.tuples(
        st.floats(0, 3),  # seconds since the arrival before
        st.integers(0, 4),  # which conversation
        st.integers(1, 4),  # how many messages of it
        st.integers(1, 12),  # reply tokens
        st.booleans(),  # leaves early
    ),
    min_size=1,
    max_size=25,
)


@given(loads=loads, slots=st.integers(1, 4), kv_tokens=st.integers(420, 1500))
def test_any_load_is_worked_off_in_order_within_slots_and_memory(
    loads: list[tuple[float, int, int, int, bool]], slots: int, kv_tokens: int
) -> None:
    figures = Figures(slots=slots, ttft_s=0.1, token_s=0.02, crowd_s=0.001, prefill_tps=700.0, kv_tokens=kv_tokens)
    model = EngineModel(figures)
    played = Clockwork(model)
    lengths: dict[int, int] = {}
    left = set()

    def check() -> None:
        gauges = model.gauges()
        assert gauges.running <= slots
        assert gauges.kv_used <= kv_tokens
        assert gauges.running + gauges.waiting + gauges.finished + gauges.aborted == len(lengths)

    arrives_at = 0.0
    for key, (pause_s, conversation, messages, reply, leaves) in enumerate(loads):
        arrives_at += pause_s
        while played.now < arrives_at and played.step():
            check()
        played.now = max(played.now, arrives_at)
        prompt = tuple(Piece(f"{conversation}/{end}", 100) for end in range(messages))
        one = Request(key=key, prompt=prompt, reply_tokens=reply, reply_prefix=f"r{key}")
        assert model.fits(one)
        model.submit(one, played.now)
        lengths[key] = reply
        if leaves:
            played.step()
            finished_before = any(progress.key == key and progress.done for _, progress in played.made)
            model.abort(key)
            if not finished_before:
                left.add(key)
        check()
    played.run()
    check()

    gauges = model.gauges()
    assert (gauges.running, gauges.waiting) == (0, 0)
    assert (gauges.finished, gauges.aborted) == (len(lengths) - len(left), len(left))
    for key, length in lengths.items():
        made = [progress.made for _, progress in played.made if progress.key == key]
        assert made == list(range(1, len(made) + 1))
        if key not in left:
            assert len(made) == length
    firsts = [progress.key for _, progress in played.made if progress.made == 1]
    assert firsts == sorted(firsts)
    assert gauges.generated_tokens == len(played.made)
    times = [at for at, _ in played.made]
    assert times == sorted(times)
