import pytest
from mcp_types import Tool

from luftpause.services.runtime.mcp_door.arguments import complaint
from luftpause.services.runtime.mcp_door.spawn_schema import SPAWN_ARGUMENTS
from luftpause.services.runtime.mcp_door.tool_list import TOOLS
from luftpause.services.runtime.schema_fit import TOO_MUCH

REQUEST_CHARS = 4 * 1024 * 1024
"""More than the longest request holds."""

SPAWN = {"type": "object", "properties": SPAWN_ARGUMENTS, "additionalProperties": False, "required": ["task"]}


@pytest.mark.parametrize("name", list(SPAWN_ARGUMENTS))
@pytest.mark.parametrize("spell", ["snake", "kebab", "lower", "typo"])
def test_a_misspelt_parameter_is_refused_naming_the_right_one(name: str, spell: str) -> None:
    words = "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in name)
    wrong = {"snake": words, "kebab": words.replace("_", "-"), "lower": name.lower(), "typo": f"{name}z"}[spell]
    if wrong == name:
        return
    told = complaint({"task": "x", wrong: 1}, SPAWN)
    assert told == f"there is no parameter {wrong!r}; did you mean {name!r}?"


def test_what_is_like_none_is_told_all_there_are() -> None:
    told = complaint({"qqqqqq": 1}, {"type": "object", "properties": {"one": {}, "two": {}}})
    assert told == "there is no parameter 'qqqqqq'; the parameters are one, two"


def test_a_long_name_is_neither_compared_nor_repeated_whole() -> None:
    assert len(complaint({"x" * 1_000_000: 1}, SPAWN)) < 700


def test_what_fits_has_no_complaint() -> None:
    assert complaint({"task": "x", "maxToolCalls": 2.0, "after": ["run_a"]}, SPAWN) == ""


LISTS = [
    (tool, name, schema["maxItems"])
    for tool in TOOLS
    for name, schema in tool.input_schema["properties"].items()
    if "maxItems" in schema
]


@pytest.mark.parametrize(("tool", "name", "most"), LISTS, ids=lambda value: getattr(value, "name", value))
@pytest.mark.parametrize("times", [1, 1000])
def test_a_list_that_is_too_long_is_refused_however_long_it_is(tool: Tool, name: str, most: int, times: int) -> None:
    items = [f"item {number}" for number in range(most * times + 1)]
    assert complaint({name: items}, tool.input_schema) == f"{name}: {len(items)} items are too many (maxItems: {most})"


def test_every_list_of_a_spawn_can_be_as_long_as_it_may() -> None:
    lists = {name: [f"item {number}" for number in range(most)] for tool, name, most in LISTS if tool.name == "spawn"}
    assert len(lists) == 4
    assert complaint({"task": "x", **lists}, SPAWN) == ""


def test_what_is_too_much_to_be_judged_is_refused() -> None:
    schema = {"type": "object", "properties": {"items": {"type": "array", "items": {"type": "string"}}}}
    assert complaint({"items": ["x"] * 100_000}, schema) == TOO_MUCH


TEXTS = [
    (tool, name)
    for tool in TOOLS
    for name, schema in tool.input_schema["properties"].items()
    if schema["type"] == "string" and not {"enum", "maxLength"} & schema.keys()
]


@pytest.mark.parametrize(("tool", "name"), TEXTS, ids=lambda value: getattr(value, "name", value))
def test_a_text_may_be_as_long_as_a_request(tool: Tool, name: str) -> None:
    schema = {"type": "object", "properties": tool.input_schema["properties"]}
    assert complaint({name: "x" * REQUEST_CHARS}, schema) == ""


COUNTS = [(tool, name, schema) for tool in TOOLS for name, schema in tool.input_schema["properties"].items()]


@pytest.mark.parametrize(
    ("tool", "name", "schema"),
    [each for each in COUNTS if each[2]["type"] in ("integer", "number") and each[1] != "timeout"],
    ids=lambda value: getattr(value, "name", value) if isinstance(value, Tool | str) else "",
)
def test_a_number_that_others_could_not_read_is_refused(tool: Tool, name: str, schema: dict[str, int]) -> None:
    arguments = {"type": "object", "properties": tool.input_schema["properties"]}
    assert schema["maximum"] < 2**53
    assert complaint({name: schema["maximum"]}, arguments) == ""
    assert "is greater than the maximum" in complaint({name: schema["maximum"] + 1}, arguments)


def test_what_no_parser_carries_on_is_refused() -> None:
    assert "surrogate" in complaint({"task": "\ud800"}, SPAWN)


@pytest.mark.parametrize("tool", TOOLS, ids=lambda tool: tool.name)
def test_every_parameter_says_what_it_is_for(tool: Tool) -> None:
    properties = tool.input_schema["properties"]
    assert [name for name, schema in properties.items() if not schema.get("description")] == []
