"""Replies as the model families write them when nobody has read their tool calls for them, and what is in each."""

from typing import Final, NamedTuple

TOOLS: Final = frozenset({"lookup", "get_weather", "delete_note"})


class Transcript(NamedTuple):
    """A reply, the calls in it (name, arguments, form), and the text that is left."""

    reply: str
    calls: tuple[tuple[str, dict[str, object], str], ...]
    text: str = ""


HARBOUR: Final[dict[str, object]] = {"query": "harbour of Bergen"}

TRANSCRIPTS: Final[dict[str, Transcript]] = {
    "llama 3.1: bare JSON": Transcript(
        '{"name": "lookup", "parameters": {"query": "harbour of Bergen"}}', (("lookup", HARBOUR, "json"),)
    ),
    "llama 3.2: with a type, ended by its own mark": Transcript(
        '{"type": "function", "name": "lookup", "parameters": {"query": "harbour of Bergen"}}<|eom_id|>',
        (("lookup", HARBOUR, "json"),),
    ),
    "llama 3.2 1b: the function is a name": Transcript(
        '{"type": "function", "function": "lookup", "parameters": {"query": "harbour of Bergen"}}',
        (("lookup", HARBOUR, "json"),),
    ),
    "llama 3.1: two of them with a semicolon": Transcript(
        '{"name": "get_weather", "parameters": {"city": "Oslo"}}; '
        '{"name": "get_weather", "parameters": {"city": "Bergen"}}',
        (("get_weather", {"city": "Oslo"}, "json"), ("get_weather", {"city": "Bergen"}, "json")),
    ),
    "llama 3.1: behind the python tag": Transcript(
        '<|python_tag|>{"name": "lookup", "parameters": {"query": "harbour of Bergen"}}<|eom_id|>',
        (("lookup", HARBOUR, "llama"),),
    ),
    "llama 3.1: a built-in tool": Transcript(
        '<|python_tag|>lookup.call(query="harbour of Bergen")', (("lookup", HARBOUR, "pythonic"),)
    ),
    "llama 3.1: custom tool in a function tag": Transcript(
        'I need to look that up.\n<function=lookup>{"query": "harbour of Bergen"}</function>',
        (("lookup", HARBOUR, "llama"),),
        "I need to look that up.",
    ),
    "llama 3.2: a list in Python": Transcript(
        "[get_weather(city=\"Oslo\", days=3), lookup(query='harbour of Bergen')]",
        (("get_weather", {"city": "Oslo", "days": 3}, "pythonic"), ("lookup", HARBOUR, "pythonic")),
    ),
    "llama 4: a list in Python with everything in it": Transcript(
        '[get_weather(city="O\'Hare", exact=True, at=None, box=[1.5, -2], opts={"a": "b", \'c\': [False]})]<|eot_id|>',
        (
            (
                "get_weather",
                {"city": "O'Hare", "exact": True, "at": None, "box": [1.5, -2], "opts": {"a": "b", "c": [False]}},
                "pythonic",
            ),
        ),
    ),
    "hermes 3": Transcript(
        '<tool_call>\n{"name": "lookup", "arguments": {"query": "harbour of Bergen"}}\n</tool_call>',
        (("lookup", HARBOUR, "hermes"),),
    ),
    "hermes 2: a dict of Python": Transcript(
        "<tool_call>\n{'name': 'lookup', 'arguments': {'query': 'harbour of Bergen'}}\n</tool_call>",
        (("lookup", HARBOUR, "hermes"),),
    ),
    "qwen 2.5: two with text before": Transcript(
        "Let me check both cities.\n"
        '<tool_call>\n{"name": "get_weather", "arguments": {"city": "Oslo"}}\n</tool_call>\n'
        '<tool_call>\n{"name": "get_weather", "arguments": {"city": "Bergen"}}\n</tool_call>',
        (("get_weather", {"city": "Oslo"}, "hermes"), ("get_weather", {"city": "Bergen"}, "hermes")),
        "Let me check both cities.",
    ),
    "qwen 3: thinks of a call and makes one": Transcript(
        '<think>\nI could write <tool_call>{"name": "delete_note", "arguments": {"name": "x"}}</tool_call> but no.\n'
        '</think>\n\n<tool_call>\n{"name": "lookup", "arguments": {"query": "harbour of Bergen"}}\n</tool_call>',
        (("lookup", HARBOUR, "hermes"),),
        '<think>\nI could write <tool_call>{"name": "delete_note", "arguments": {"name": "x"}}</tool_call> but no.\n'
        "</think>",
    ),
    "qwen 2.5 0.5b: a bracket too few": Transcript(
        '<tool_call>\n{"name": "lookup", "arguments": {"query": "harbour of Bergen"}\n</tool_call>',
        (("lookup", HARBOUR, "hermes"),),
    ),
    "qwen 2.5: arguments encoded once more": Transcript(
        '<tool_call>{"name": "lookup", "arguments": "{\\"query\\": \\"harbour of Bergen\\"}"}</tool_call>',
        (("lookup", HARBOUR, "hermes"),),
    ),
    "qwen 2.5: no closing tag, then an answer of its own making": Transcript(
        '<tool_call>\n{"name": "lookup", "arguments": {"query": "harbour of Bergen"}}\n'
        "<tool_response>\nIt has seven piers.\n</tool_response>\nBergen has seven piers.",
        (("lookup", HARBOUR, "hermes"),),
    ),
    "qwen 3 coder": Transcript(
        "I'll look it up.\n\n<tool_call>\n<function=get_weather>\n<parameter=city>\nOslo\n</parameter>\n"
        "<parameter=days>\n3\n</parameter>\n</function>\n</tool_call>",
        (("get_weather", {"city": "Oslo", "days": "3"}, "qwen-coder"),),
        "I'll look it up.",
    ),
    "qwen 3 coder: without the outer tag, several lines in a value": Transcript(
        "<function=lookup>\n<parameter=query>\nfirst line\n  second line\n</parameter>\n</function>",
        (("lookup", {"query": "first line\n  second line"}, "qwen-coder"),),
    ),
    "glm 4.5": Transcript(
        "<tool_call>get_weather\n<arg_key>city</arg_key>\n<arg_value>Oslo</arg_value>\n<arg_key>days</arg_key>\n"
        "<arg_value>3</arg_value>\n</tool_call>",
        (("get_weather", {"city": "Oslo", "days": "3"}, "glm"),),
    ),
    "mistral 7b v0.3": Transcript(
        '[TOOL_CALLS] [{"name": "lookup", "arguments": {"query": "harbour of Bergen"}}, '
        '{"name": "get_weather", "arguments": {"city": "Bergen"}}]</s>',
        (("lookup", HARBOUR, "mistral"), ("get_weather", {"city": "Bergen"}, "mistral")),
    ),
    "mistral small 3.2": Transcript(
        '[TOOL_CALLS]lookup[ARGS]{"query": "harbour of Bergen"}'
        '[TOOL_CALLS]get_weather[CALL_ID]a1b2c3d4e[ARGS]{"city": "Bergen"}',
        (("lookup", HARBOUR, "mistral"), ("get_weather", {"city": "Bergen"}, "mistral")),
    ),
    "magistral": Transcript(
        '[THINK]The harbour, hm.[/THINK]One moment.[TOOL_CALLS]lookup{"query": "harbour of Bergen"}',
        (("lookup", HARBOUR, "mistral"),),
        "[THINK]The harbour, hm.[/THINK]One moment.",
    ),
    "deepseek v3": Transcript(
        "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>lookup\n"
        '```json\n{"query": "harbour of Bergen"}\n```<｜tool▁call▁end｜>\n'
        "<｜tool▁call▁begin｜>function<｜tool▁sep｜>get_weather\n"
        '```json\n{"city": "Bergen"}\n```<｜tool▁call▁end｜><｜tool▁calls▁end｜>',
        (("lookup", HARBOUR, "deepseek"), ("get_weather", {"city": "Bergen"}, "deepseek")),
    ),
    "deepseek r1: the template opened the thought": Transcript(
        "They want the harbour, so lookup it is.\n</think>\n\n"
        "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>lookup\n"
        '```json\n{"query": "harbour of Bergen"}\n```<｜tool▁call▁end｜><｜tool▁calls▁end｜><｜end▁of▁sentence｜>',
        (("lookup", HARBOUR, "deepseek"),),
        "They want the harbour, so lookup it is.\n</think>",
    ),
    "deepseek v3.1": Transcript(
        "I'll look.<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>lookup<｜tool▁sep｜>"
        '{"query": "harbour of Bergen"}<｜tool▁call▁end｜><｜tool▁calls▁end｜>',
        (("lookup", HARBOUR, "deepseek"),),
        "I'll look.",
    ),
    "deepseek v3.2": Transcript(
        '<｜DSML｜function_calls>\n<｜DSML｜invoke name="get_weather">\n'
        '<｜DSML｜parameter name="city" string="true">Oslo</｜DSML｜parameter>\n'
        '<｜DSML｜parameter name="days" string="false">3</｜DSML｜parameter>\n'
        "</｜DSML｜invoke>\n</｜DSML｜function_calls>",
        (("get_weather", {"city": "Oslo", "days": 3}, "invoke"),),
    ),
    "minimax m2": Transcript(
        '<minimax:tool_call>\n<invoke name="lookup">\n<parameter name="query">harbour of Bergen</parameter>\n'
        "</invoke>\n</minimax:tool_call>",
        (("lookup", HARBOUR, "invoke"),),
    ),
    "kimi k2": Transcript(
        "<|tool_calls_section_begin|><|tool_call_begin|>functions.lookup:0<|tool_call_argument_begin|>"
        '{"query": "harbour of Bergen"}<|tool_call_end|><|tool_calls_section_end|>',
        (("lookup", HARBOUR, "kimi"),),
    ),
    "gpt-oss": Transcript(
        "<|channel|>analysis<|message|>We need to look it up.<|end|><|start|>assistant<|channel|>commentary "
        'to=functions.lookup <|constrain|>json<|message|>{"query": "harbour of Bergen"}<|call|>',
        (("lookup", HARBOUR, "harmony"),),
        "<|channel|>analysis<|message|>We need to look it up.<|end|>",
    ),
    "phi 4 mini": Transcript(
        '<|tool_call|>[{"name": "lookup", "arguments": {"query": "harbour of Bergen"}}]<|/tool_call|>',
        (("lookup", HARBOUR, "hermes"),),
    ),
    "gemma 3: a fenced block of its own language": Transcript(
        "```tool_code\nlookup(query='harbour of Bergen')\n```", (("lookup", HARBOUR, "pythonic"),)
    ),
    "anybody: a fenced block at the end": Transcript(
        "I will look it up:\n\n```json\n{\n"
        '  "name": "lookup",\n  "arguments": {\n    "query": "harbour of Bergen"\n  }\n}\n```\n',
        (("lookup", HARBOUR, "json"),),
        "I will look it up:",
    ),
    "anybody: two fenced blocks": Transcript(
        '```json\n{"name": "get_weather", "arguments": {"city": "Oslo"}}\n```\n\n'
        '```\n{"name": "get_weather", "arguments": {"city": "Bergen"}}\n```',
        (("get_weather", {"city": "Oslo"}, "json"), ("get_weather", {"city": "Bergen"}, "json")),
    ),
    "anybody: as the API has it": Transcript(
        '{"tool_calls": [{"id": "call_1", "type": "function", "function": {"name": "lookup", '
        '"arguments": "{\\"query\\": \\"harbour of Bergen\\"}"}}]}',
        (("lookup", HARBOUR, "json"),),
    ),
    "anybody: one tool is there and one is not": Transcript(
        '<tool_call>{"name": "look_up", "arguments": {}}</tool_call>'
        '<tool_call>{"name": "lookup", "arguments": {"query": "harbour of Bergen"}}</tool_call>',
        (("look_up", {}, "hermes"), ("lookup", HARBOUR, "hermes")),
    ),
}

PLAIN: Final[dict[str, str]] = {
    "nothing at all": "",
    "an answer": "Bergen has seven piers.",
    "a tool that is not offered": '<tool_call>{"name": "format_disk", "arguments": {}}</tool_call>',
    "a bare call of a tool that is not offered": '{"name": "format_disk", "parameters": {}}',
    "an example between backticks": 'Write `<tool_call>{"name": "lookup", "arguments": {"query": "x"}}</tool_call>`.',
    "an example in quotation marks": 'It says "<tool_call>{"name": "lookup", "arguments": {"query": "x"}}".',
    "an example in a fenced block": '```xml\n<tool_call>{"name": "lookup", "arguments": {}}</tool_call>\n```',
    "an example in a block that is never closed": '```\n: <tool_call>{"name": "lookup", "arguments": {}}</tool_call>',
    "an example in a fenced block with more behind it": (
        'For example:\n```json\n{"name": "lookup", "arguments": {"query": "x"}}\n```\nIs what a call looks like.'
    ),
    "a block of calls and other things": '```json\n[{"name": "lookup", "arguments": {}}, 5]\n```',
    "a block of some other language": '```yaml\n{"name": "lookup", "arguments": {}}\n```',
    "a quoted line": '> <tool_call>{"name": "lookup", "arguments": {"query": "x"}}</tool_call>\nThat was the call.',
    "a thought": '<think><tool_call>{"name": "lookup", "arguments": {"query": "x"}}</tool_call></think>Nothing to do.',
    "a thought without an end": '<think>I might <tool_call>{"name": "lookup", "arguments": {"query": "x"}}</tool_call>',
    "a thought without a beginning": '<tool_call>{"name": "lookup", "arguments": {}}</tool_call></think>No.',
    "JSON that says more": '{"name": "lookup", "arguments": {"query": "x"}, "comment": "not yet"}',
    "JSON without arguments": '{"name": "lookup"}',
    "JSON in the middle": 'It is {"name": "lookup", "arguments": {"query": "x"}}.',
    "Python in the middle": 'Call lookup(query="x") for that.',
    "Python with places instead of names": '[lookup("x")]',
    "Python that calls on": "lookup(query=other(1))",
    "a tag with nothing behind it": "<tool_call>",
    "a tag with a text behind it": "<tool_call>lookup please</tool_call>",
    "a string that never ends": '<tool_call>{"name": "lookup", "arguments": {"query": "x</tool_call>',
}
