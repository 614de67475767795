from luftpause.core.dialects.anthropic_messages.dialect import AnthropicMessages
from luftpause.core.dialects.call_ids import CallIds


def test_an_engines_ids_are_the_clients() -> None:
    ids = CallIds("call_", "t.1")
    assert [ids.give("a"), ids.give("b")] == ["a", "b"]
    assert ids.given() == ("a", "b")


def test_what_is_missing_or_was_given_before_is_made_up_and_learned() -> None:
    ids = CallIds("toolu_", "t.1")
    given = [ids.give(engines) for engines in ("a", "", "a", "", "b")]
    assert given[0] == "a"
    assert given[4] == "b"
    assert len(set(given)) == 5
    assert all(each.startswith("toolu_") for each in given[1:4])
    assert list(ids.given()) == given


def test_no_other_turn_has_the_same_made_up_ids_and_none_tells_its_turn() -> None:
    one, other, again = CallIds("call_", "dp.1"), CallIds("call_", "dp.2"), CallIds("call_", "dp.1")
    assert one.give("") == again.give("") != other.give("")
    assert "dp" not in one.given()[0]


def test_an_answer_that_its_engine_does_not_name_has_a_name_of_its_own() -> None:
    names = [CallIds("toolu_", turn).answers_name() for turn in ("dp_1", "dp_2", "dp_1")]
    assert names[0] == names[2] != names[1]
    chunk = b'data: {"choices":[{"index":0,"delta":{"content":"hi"},"finish_reason":"stop"}]}\n\ndata: [DONE]\n\n'
    body = b'{"model":"m","max_tokens":9,"stream":true,"messages":[{"role":"user","content":"hi"}]}'
    told = []
    for turn in ("dp_1", "dp_2"):
        back = AnthropicMessages().translate("/v1/messages", body, turn)
        told.append(back.feed(chunk) + back.end())
    assert b'"id":"msg_%b"' % names[0].encode() in told[0]
    assert b'"id":"msg_%b"' % names[1].encode() in told[1]
