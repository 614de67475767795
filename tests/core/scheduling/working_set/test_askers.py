"""Whether runs come back after an answer that called no tool, and how soon."""

from luftpause.core.model.ids import Instant
from luftpause.core.scheduling.working_set.askers import Asked, come_back, gone_idle, patience_s

NOW = Instant(1000.0)


def asked(back: int, of: int, seconds: float = 1.0) -> Asked:
    """Return what is known when of so many answers so many were asked on after, all as soon."""
    known = Asked()
    for number in range(of):
        known = gone_idle(known, NOW)
        if number * back // of < (number + 1) * back // of:
            known = come_back(known, seconds, NOW)
    return known


def test_who_never_asked_on_is_not_waited_for() -> None:
    assert patience_s(asked(0, 30), 1000.0) == 0.0


def test_who_soon_asks_on_is_waited_for_and_not_for_long() -> None:
    assert 1.0 <= patience_s(asked(20, 30), 10.0) <= 8.0


def test_whose_answers_are_nearly_all_the_last_ones_is_waited_for_only_where_that_is_worth_it() -> None:
    assert patience_s(asked(2, 100), 5.0) == 0.0
    assert 1.0 <= patience_s(asked(2, 100), 500.0) <= 8.0


def test_who_asks_on_late_is_not_waited_for() -> None:
    assert patience_s(asked(30, 30, seconds=120.0), 5.0) == 0.0


def test_an_answer_counts_as_the_last_one_until_its_run_comes_back() -> None:
    answered = gone_idle(Asked(), NOW)
    assert sum(answered.history.losses) > 0
    assert sum(come_back(answered, 1.0, NOW).history.losses) == 0
    assert sum(come_back(Asked(), 1.0, NOW).history.losses) == 0
