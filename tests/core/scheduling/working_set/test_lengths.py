"""How long a prompt is before its engine says so."""

from dataclasses import replace

import pytest

from core.scheduling.builders import arrived
from core.scheduling.working_set.worlds import sized
from luftpause.core.model.ids import CallerId, Instant, ModelName, PrincipalId, RunId
from luftpause.core.model.turns import ServiceClass, Usage
from luftpause.core.scheduling.events import TurnArrived
from luftpause.core.scheduling.state import Run
from luftpause.core.scheduling.working_set.lengths import (
    after_answer,
    after_usage,
    makes_sense,
    measured,
    prompt_tokens,
    service_of,
)
from luftpause.core.scheduling.working_set.state import Lengths, Measure


def run(measure: Measure) -> Run:
    return Run(
        run=RunId("r"),
        model=ModelName("m"),
        principal=PrincipalId("p"),
        caller=CallerId("c"),
        service_class=ServiceClass.BATCH,
        ended_at=Instant(0.0),
        measure=measure,
    )


def test_a_new_prompt_is_as_long_as_its_bytes() -> None:
    assert prompt_tokens(Lengths(), None, sized("t", 700)) == 700
    assert prompt_tokens(Lengths(bytes_per_token=2.0), None, sized("t", 700)) == 1400
    assert prompt_tokens(Lengths(), None, arrived("t")) == 0


def test_what_was_measured_counts_and_bytes_only_for_what_is_new() -> None:
    known = run(Measure(text_bytes=4000, prompt=1300, context=1400))
    assert prompt_tokens(Lengths(), known, sized("t", 1100)) == 1300 + 100
    assert prompt_tokens(Lengths(), known, sized("t", 500)) == 500  # rewritten
    assert prompt_tokens(Lengths(), known, arrived("t")) == 1400  # nobody says how long it is


def test_bytes_and_replies_are_learned_little_by_little_and_pictures_teach_nothing() -> None:
    usage = Usage(prompt_tokens=1000, completion_tokens=100)
    learned = after_usage(Lengths(), sized("t", 750), usage)
    assert learned.bytes_per_token == pytest.approx(3.9)
    assert learned.reply == pytest.approx(190.0)
    assert after_usage(Lengths(), sized("t", 250_000), usage).bytes_per_token == 4.0
    assert after_usage(Lengths(), with_picture("t", 750, 300), usage).bytes_per_token == 4.0


def with_picture(turn: str, text: int, picture: int) -> TurnArrived:
    """Offer a turn with a picture of so many tokens, a hundred thousand bytes of it."""
    asked = sized(turn, text)
    prompt_bytes = asked.prompt_bytes + 100_000
    return replace(asked, prompt_bytes=prompt_bytes, picture_bytes=100_000, picture_tokens=picture)


def test_pictures_count_by_what_they_come_to_and_only_new_ones_beside_what_was_measured() -> None:
    asked = with_picture("t", 700, 765)
    assert prompt_tokens(Lengths(), None, asked) == 700 + 765
    known = run(measured(asked, 1600, 1700))
    assert prompt_tokens(Lengths(), known, with_picture("t", 800, 765)) == 1600 + 100
    assert prompt_tokens(Lengths(), known, with_picture("t", 800, 2 * 765)) == 1600 + 100 + 765
    assert prompt_tokens(Lengths(), known, sized("t", 800)) == 800, "rewritten: the picture was taken out"
    assert prompt_tokens(Lengths(), None, replace(asked, picture_bytes=-1, picture_tokens=-7)) > 0


def test_an_answer_whose_first_token_is_told_at_its_end_is_not_streamed() -> None:
    usage = Usage(prompt_tokens=10, completion_tokens=50)
    assert after_answer(Lengths(), usage, 0.1, 2.0).streamed == 1.0
    assert after_answer(Lengths(), usage, 2.0, 2.0).streamed == pytest.approx(0.9)
    assert after_answer(Lengths(), usage, None, 2.0).streamed == pytest.approx(0.9)
    assert after_answer(Lengths(), Usage(prompt_tokens=10, completion_tokens=1), 2.0, 2.0).streamed == 1.0


def test_reports_that_cannot_be_true_are_known() -> None:
    assert makes_sense(Usage(prompt_tokens=1, completion_tokens=0))
    assert not makes_sense(Usage(prompt_tokens=0, completion_tokens=1))
    assert not makes_sense(Usage(prompt_tokens=10**12, completion_tokens=1))


def test_what_was_cached_is_worth_a_tenth_and_what_was_said_twice() -> None:
    assert service_of(1000, 900, 10) == 1000 + 900 + 200
    assert service_of(100, 900, 0) == 100
