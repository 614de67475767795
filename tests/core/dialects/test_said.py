import pytest
from hypothesis import given
from hypothesis import strategies as st

from luftpause.core.dialects.said import ANSWERS_MAX, TEXT_CHARS_MAX, Utterance, marks_of_answer, said_in

SYSTEM = Utterance("system", "You help.")
TASK = Utterance("user", "What is the capital of Assyria?")
LONG = "Assur was the first capital; Nineveh and Nimrud followed it in later centuries."


def known_again(first: list[Utterance], text: str, then: list[Utterance], *, has_calls: bool = False) -> bool:
    served = set(marks_of_answer(said_in(first), text, has_calls=has_calls))
    return bool(served & set(said_in(then).marks))


def test_a_conversation_that_goes_on_is_known_again() -> None:
    then = [SYSTEM, TASK, Utterance("assistant", " Assur. \n"), Utterance("user", "And then?")]

    assert known_again([SYSTEM, TASK], "Assur.", then)
    assert known_again([SYSTEM, TASK], "Assur.", [*then, Utterance("assistant", "Nineveh."), TASK])


def test_an_answer_that_we_did_not_serve_there_identifies_nothing() -> None:
    other = [SYSTEM, Utterance("user", "And of Elam?"), Utterance("assistant", "Assur."), TASK]

    assert not known_again([SYSTEM, TASK], "Assur.", other)
    assert not known_again([SYSTEM, TASK], "Assur.", [SYSTEM, TASK])
    assert not known_again([SYSTEM, TASK], "Assur.", [SYSTEM, TASK, Utterance("assistant", "Susa."), TASK])


def test_another_caller_or_model_has_other_marks() -> None:
    then = [TASK, Utterance("assistant", LONG)]

    served = marks_of_answer(said_in([TASK], "alice m"), LONG, has_calls=False)
    assert set(served) & set(said_in(then, "alice m").marks)
    assert not set(served) & set(said_in(then, "bob m").marks)


def test_a_harness_that_writes_calls_as_text_is_known_again() -> None:
    then = [SYSTEM, TASK, Utterance("assistant", "Calling tools: [...]"), Utterance("user", "Observation: Assur")]

    assert known_again([SYSTEM, TASK], "", then, has_calls=True)
    assert not known_again([SYSTEM], "", then, has_calls=True)


@pytest.mark.parametrize("observed", ["\nObservation: sunny", "\n\nObservation: a\nThought: b\nObservation: c"])
@pytest.mark.parametrize("text", ["Thought: I look.\nAction: look", LONG + "\n"])
def test_a_harness_that_adds_what_its_tool_found_to_the_answer_is_known_again(observed: str, text: str) -> None:
    """As crewai does with models that are not offered tools."""
    second = [SYSTEM, TASK, Utterance("assistant", text.strip() + observed)]
    third = [*second, Utterance("assistant", "Thought: I look again." + observed)]

    assert known_again([SYSTEM, TASK], text, second)
    assert known_again(second, "Thought: I look again.", third)
    assert known_again([SYSTEM, TASK], text + observed, second)
    assert not known_again([SYSTEM, TASK], "Thought: I sleep.", second)
    assert not known_again([SYSTEM, TASK], observed, [SYSTEM, TASK, Utterance("assistant", "\nObservation: rain")])


def test_a_harness_that_writes_the_arguments_of_a_call_anew_is_known_again() -> None:
    """As LlamaIndex does: JSON becomes Python."""
    text = "Thought: I look.\nAction: look\nAction Input: "
    then = [SYSTEM, TASK, Utterance("assistant", text + "{'at': 'it'}"), Utterance("user", "Observation: sunny")]

    assert known_again([SYSTEM, TASK], text + '{"at": "it"}', then)
    assert not known_again([SYSTEM, TASK], text.replace("look", "listen"), then)


def test_a_compacted_history_is_known_again_by_a_long_answer_only() -> None:
    summary = Utterance("user", "So far: the capital was found.")

    assert known_again([SYSTEM, TASK], LONG, [summary, Utterance("assistant", LONG), TASK])
    assert not known_again([SYSTEM, TASK], "Assur.", [summary, Utterance("assistant", "Assur."), TASK])


@pytest.mark.parametrize("text", ["", " \n", "x" * (TEXT_CHARS_MAX + 1)])
def test_an_answer_without_a_text_of_sane_length_has_no_marks(text: str) -> None:
    assert marks_of_answer(said_in([TASK]), text, has_calls=False) == ()
    assert marks_of_answer(said_in([TASK]), None, has_calls=False) == ()


def test_only_the_last_answers_are_looked_at() -> None:
    talk = [TASK, *[Utterance("assistant", f"answer {at} {LONG}") for at in range(3 * ANSWERS_MAX)]]

    assert len(said_in(talk).marks) == 3 * ANSWERS_MAX
    assert said_in(talk).marks[0].startswith("a:")


@given(st.lists(st.tuples(st.sampled_from(["user", "assistant"]), st.text()), max_size=5))
def test_messages_in_a_row_are_never_taken_for_others(talk: list[tuple[str, str]]) -> None:
    talk = [(role, text.strip()) for role, text in talk]
    said = said_in(Utterance(role, text) for role, text in talk).so_far
    joined = [(role, "".join(text for _, text in talk)) for role, _ in talk[:1]]
    if joined != talk:
        assert said_in(Utterance(role, text) for role, text in joined).so_far != said
