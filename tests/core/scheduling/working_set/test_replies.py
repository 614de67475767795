"""How long an agent's answers become, before they are there."""

from dataclasses import replace
from math import ceil

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.scheduling.working_set.worlds import REPLY, answered, replica, sized, world
from luftpause.core.model.turns import Usage
from luftpause.core.scheduling.actions import PlaceTurn
from luftpause.core.scheduling.working_set import books
from luftpause.core.scheduling.working_set.limits import WorkingSetLimits
from luftpause.core.scheduling.working_set.replies import (
    CAP_MARGIN,
    CAP_MIN,
    RECENT_MAX,
    RECENT_MIN,
    SHARE,
    Replies,
    after_cut,
    after_reply,
    cap_of,
    is_cut,
)


def after(*lengths: int) -> Replies:
    replies = Replies()
    for length in lengths:
        replies = after_reply(replies, Usage(prompt_tokens=1, completion_tokens=length))
    return replies


def test_too_few_tell_nothing() -> None:
    assert after(*[900] * (RECENT_MIN - 1)).long == 0
    assert after(*[900] * RECENT_MIN).long == 900


@given(st.lists(st.integers(0, 40), min_size=RECENT_MIN, max_size=4 * RECENT_MAX))
def test_it_is_the_same_as_if_all_that_are_remembered_were_sorted_each_time(lengths: list[int]) -> None:
    recent = lengths[-RECENT_MAX:]
    known = after(*lengths)
    assert known.recent == tuple(recent)
    assert known.long == sorted(recent)[ceil(SHARE * len(recent)) - 1]


def test_nine_in_ten_are_no_longer() -> None:
    assert after(*range(1, 11)).long == 9
    assert after(*range(1, 21)).long == 18
    assert after(5, 5, 5, 5, 5, 5, 5, 5, 5, 7000).long == 5


def test_only_the_latest_count() -> None:
    assert after(*[7000] * 50, *[10] * RECENT_MAX).long == 10
    assert len(after(*range(100)).recent) == RECENT_MAX


@pytest.mark.parametrize(("piece", "charged"), [(True, 1000 + 500), (False, None)])
def test_a_turn_is_charged_as_the_longer_ones_of_its_agent(piece: bool, charged: int | None) -> None:
    made = world(limits=WorkingSetLimits(agent_replies=piece))
    for number in range(10):
        made.place(sized(f"t{number}", 1000, caller="writer"))
        made.tell(answered(f"t{number}", 1000, reply=500 if number else 4000))
    made.place(sized("w", 1000, caller="writer"))
    seat = replica(made).seat.in_flight
    assert (seat == charged) if charged else (seat > 1000 + REPLY)
    made.tell(answered("w", 1000, reply=500))
    made.place(sized("n", 1000, caller="namer"))
    assert replica(made).seat.in_flight not in (0, 1500)


def test_no_more_is_charged_than_the_answer_may_have_and_one_that_was_cut_off_teaches_nothing() -> None:
    made = world()
    for number in range(RECENT_MIN):
        made.place(sized(f"t{number}", 1000))
        made.tell(answered(f"t{number}", 1000, reply=500))
    made.place(replace(sized("short", 1000), reply_max=20))
    assert replica(made).seat.in_flight == 1000 + 20
    made.tell(answered("short", 1000, reply=20))
    made.place(replace(sized("long", 1000), reply_max=32_000))
    assert replica(made).seat.in_flight == 1000 + 500
    (known,) = made.state.working_set.replies.values()
    assert known.recent == (500,) * RECENT_MIN


def test_what_a_token_comes_to_is_learned_of_streams_that_are_long_enough() -> None:
    replies = after_reply(Replies(), Usage(prompt_tokens=1, completion_tokens=100), 20_000)
    assert replies.token_bytes == 200
    for made, streamed in ((15, 90_000), (100, 0), (100, -1), (100, 1 << 60)):
        again = after_reply(replies, Usage(prompt_tokens=1, completion_tokens=made), streamed)
        assert again.token_bytes == 200
    assert 200 < after_reply(replies, Usage(prompt_tokens=1, completion_tokens=100), 40_000).token_bytes < 400


def test_a_cap_is_far_above_the_longest_answer_and_none_before_many_are_known() -> None:
    assert cap_of(after(*[2000] * (RECENT_MAX - 1))) == 0
    assert cap_of(after(*[10] * RECENT_MAX)) == CAP_MIN
    assert cap_of(after(*[10] * (RECENT_MAX - 1), 2000)) == CAP_MARGIN * 2000


def test_an_answer_that_was_cut_off_doubles_the_cap_at_once() -> None:
    known = after(*[2000] * RECENT_MAX)
    once = after_cut(known, cap_of(known))
    assert cap_of(once) == 2 * cap_of(known)
    assert cap_of(after_cut(once, cap_of(once))) == 4 * cap_of(known)
    assert cap_of(after_cut(once, 1)) == cap_of(once), "a late word of a lower one changes nothing"
    assert after_cut(known, 9).recent == known.recent, "how long it would have become, nobody knows"


@pytest.mark.parametrize(
    ("cap", "made", "finish", "cut"),
    [
        (0, 9, "length", False),
        (4096, 4095, "length", False),
        (4096, 4096, "length", True),
        (4096, 4096, "max_output_tokens", True),
        (4096, 4096, "tool_calls", True),
        (4096, 4096, "stop", False),
        (4096, 9000, "stop", False),
    ],
)
def test_what_ends_before_the_cap_or_says_so_ended_by_itself(cap: int, made: int, finish: str, cut: bool) -> None:
    ended = replace(answered("t", 9, reply=made), reply_cap=cap, finish=finish)
    assert is_cut(ended) is cut
    assert not is_cut(replace(ended, usage=None))


@pytest.mark.parametrize("allowed", [True, False])
def test_a_cap_is_sent_only_where_the_operator_allows_it_and_the_request_has_none(allowed: bool) -> None:
    made = world(limits=WorkingSetLimits(reply_caps=allowed))
    for number in range(RECENT_MAX):
        made.place(sized(f"t{number}", 1000))
        made.tell(answered(f"t{number}", 1000, reply=500))
    for turn, reply_max, cap in (("a", 0, CAP_MIN if allowed else 0), ("b", 400, 0)):
        (placed,) = made.tell(replace(sized(turn, 1000), reply_max=reply_max))
        assert isinstance(placed, PlaceTurn)
        assert placed.charge is not None
        assert placed.charge.reply_cap == cap
    cut = replace(answered("a", 1000, reply=CAP_MIN), finish="length", reply_cap=CAP_MIN if allowed else 0)
    made.tell(cut)
    (known,) = made.state.working_set.replies.values()
    assert known.cap_min == (2 * CAP_MIN if allowed else 0)


@pytest.mark.interpreted
def test_of_too_many_agents_half_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(books, "AGENTS_MAX", 4)
    made = world()
    for number in range(6):
        made.place(sized(f"t{number}", 10, caller=f"c{number}"))
        made.tell(answered(f"t{number}", 10))
    assert [caller for _, _, caller in sorted(made.state.working_set.replies)] == ["c2", "c3", "c4", "c5"]
