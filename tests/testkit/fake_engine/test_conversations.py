"""Prefix chains of conversations."""

import msgspec

from luftpause.testkit.fake_engine.conversations import Chat, Completion, Message, extended, pieces, tokens_in

USER = {"role": "user", "content": "Where does the Danube rise?"}
CALL = {"id": "call_1", "type": "function", "function": {"name": "lookup", "arguments": '{"query": "Danube"}'}}


def chat(*messages: object, **more: object) -> Chat:
    return msgspec.convert({"model": "m", "messages": messages, **more}, Chat)


def prefixes(one: Chat) -> list[str]:
    return [piece.prefix for piece in pieces(one)]


def test_a_longer_conversation_begins_with_the_pieces_of_the_shorter_one() -> None:
    short, long = chat(USER), chat(USER, {"role": "assistant", "content": "In the hills."}, USER)
    assert prefixes(long)[: len(prefixes(short))] == prefixes(short)


def test_another_model_other_tools_or_another_word_share_nothing_after_them() -> None:
    tool = {"type": "function", "function": {"name": "lookup"}}
    first = prefixes(chat(USER))
    for other in (chat(USER, model="n"), chat(USER, tools=[tool])):
        assert set(prefixes(other)).isdisjoint(first)
    assert prefixes(chat({"role": "user", "content": "else"}))[0] == first[0]
    assert prefixes(chat({"role": "user", "content": "else"}))[1] != first[1]


def test_a_reply_echoed_in_the_clients_own_json_meets_the_prefix_that_it_left() -> None:
    reply = msgspec.convert({"role": "assistant", "content": None, "tool_calls": [CALL]}, Message)
    echoed = {"role": "assistant", "content": "", "tool_calls": [CALL | {"index": 0}], "refusal": None}
    left = extended(pieces(chat(USER))[-1].prefix, reply)
    assert prefixes(chat(USER, echoed))[-1] == left.prefix


def test_content_in_parts_reads_like_content_in_one() -> None:
    parts = {"role": "user", "content": [{"type": "text", "text": "Where does "}, {"text": "the Danube rise?"}]}
    assert pieces(chat(parts)) == pieces(chat(USER))


def test_null_says_what_leaving_out_says() -> None:
    parts = {
        "role": "user",
        "content": [{"type": "text", "text": USER["content"]}, {"type": "image_url", "text": None}],
    }
    null = {"role": "user", "content": USER["content"], "tool_calls": None, "tool_call_id": None, "name": None}
    assert pieces(chat(parts)) == pieces(chat(null)) == pieces(chat(USER))

    function = {"name": "lookup", "description": None, "parameters": None, "strict": None}
    schema = {"type": "json_schema", "json_schema": {"name": "x", "schema": None, "strict": None}}
    asked = chat(
        USER,
        tools=[{"type": "function", "function": function}],
        stream=None,
        stream_options={"include_usage": None},
        response_format=schema,
    )
    assert asked.tools
    assert asked.response_format is not None
    assert asked.response_format.schema == {}


def test_a_prompt_may_stand_alone_in_a_list() -> None:
    bare, listed = (msgspec.convert({"model": "m", "prompt": prompt}, Completion) for prompt in ("x", ["x"]))
    assert bare.as_chat() == listed.as_chat()


def test_the_task_is_the_last_user_message_and_what_follows_came_after_it() -> None:
    talk = chat({"role": "user", "content": "old"}, {"role": "assistant"}, USER, {"role": "tool", "content": "x"})
    assert talk.task == USER["content"]
    assert [message.role for message in talk.since_user] == ["tool"]
    assert chat({"role": "system", "content": "s"}).task == ""


def test_four_characters_are_a_token() -> None:
    assert [tokens_in("x" * length) for length in (0, 1, 4, 5)] == [0, 1, 1, 2]


def test_the_newer_cap_on_tokens_wins() -> None:
    assert chat(USER, max_tokens=5).token_cap == 5
    assert chat(USER, max_tokens=5, max_completion_tokens=3).token_cap == 3
