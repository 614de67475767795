import pytest

from core.dialects.gemini.exchanges import Object, said
from luftpause.core.dialects.request import BadRequestError

LOOK: Object = {"name": "look", "description": "Looks.", "parameters": {"type": "OBJECT", "properties": {}}}
SEE: Object = {"name": "see", "parametersJsonSchema": {"type": "object", "x": "STRING"}}
BOTH = [{"functionDeclarations": [LOOK, SEE]}]


def names(chat: Object) -> list[str]:
    return [tool["function"]["name"] for tool in chat["tools"]]


def chosen(mode: str, *allowed: str) -> Object:
    config = {"mode": mode, **({"allowedFunctionNames": allowed} if allowed else {})}
    return said(tools=BOTH, toolConfig={"functionCallingConfig": config})


def test_functions_are_declared_in_both_forms_of_schema() -> None:
    assert [tool["function"] for tool in said(tools=BOTH)["tools"]] == [
        {"name": "look", "description": "Looks.", "parameters": {"type": "object", "properties": {}}},
        {"name": "see", "parameters": {"type": "object", "x": "STRING"}},
    ]
    (bare,) = said(tools=[{"function_declarations": [{"name": "f"}]}])["tools"]
    assert bare["function"]["parameters"] == {"type": "object", "properties": {}}


@pytest.mark.parametrize(
    ("mode", "choice"),
    [("AUTO", "auto"), ("ANY", "required"), ("NONE", "none"), ("VALIDATED", "auto"), ("any", "required")],
)
def test_how_functions_are_called(mode: str, choice: str) -> None:
    chat = chosen(mode)
    assert (chat["tool_choice"], names(chat)) == (choice, ["look", "see"])


def test_only_what_has_to_be_left_out_is_left_out_for_the_sake_of_the_cached_prompt() -> None:
    one = chosen("ANY", "see")
    assert (one["tool_choice"], names(one)) == ({"type": "function", "function": {"name": "see"}}, ["look", "see"])
    assert names(chosen("VALIDATED", "see")) == ["see"]
    assert names(chosen("ANY", "see", "look")) == ["look", "see"]
    assert names(chosen("NONE", "see")) == ["look", "see"]


def test_what_cannot_be_chosen_is_refused() -> None:
    with pytest.raises(BadRequestError, match="'hear', which the request does not declare"):
        chosen("ANY", "hear")
    with pytest.raises(BadRequestError, match="mode 'SOMETIMES'"):
        chosen("SOMETIMES")


def test_a_choice_without_functions_is_none() -> None:
    assert "tool_choice" not in said(toolConfig={"functionCallingConfig": {"mode": "ANY"}})


@pytest.mark.parametrize("name", ["googleSearch", "google_search", "codeExecution", "urlContext"])
def test_what_google_runs_is_left_out_beside_functions_and_refused_alone(name: str) -> None:
    assert names(said(tools=[{name: {}}, *BOTH])) == ["look", "see"]
    assert names(said(tools=[{name: {}, "functionDeclarations": [LOOK]}])) == ["look"]
    with pytest.raises(BadRequestError, match="offers no other tools"):
        said(tools=[{name: {}}])


@pytest.mark.parametrize("name", ["computerUse", "fileSearch", "mcpServers", "retrieval"])
def test_what_a_model_cannot_go_on_without_is_refused_always(name: str) -> None:
    with pytest.raises(BadRequestError, match=f"offers the tool '{name}'"):
        said(tools=[{name: {}}, *BOTH])


def test_a_declaration_without_a_name_is_refused() -> None:
    with pytest.raises(BadRequestError, match="does not fit"):
        said(tools=[{"functionDeclarations": [{"description": "x"}]}])
