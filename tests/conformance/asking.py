"""Fixture tools that ask their client back, in the way of either era."""

from collections.abc import Callable
from typing import Any, Final

from mcp.shared.message import ServerMessageMetadata
from mcp_types import (
    CallToolResult,
    CreateMessageRequest,
    CreateMessageRequestParams,
    CreateMessageResult,
    ElicitRequest,
    ElicitRequestFormParams,
    ElicitResult,
    GetPromptRequestParams,
    InputRequiredResult,
    ListRootsRequest,
    SamplingMessage,
    TextContent,
)

from conformance.content import Schema, offered, text
from luftpause.services.runtime.mcp_door.calls import OfferedTool, ToolCall

Asked = ElicitRequest | CreateMessageRequest | ListRootsRequest


def form(message: str, **properties: Schema) -> ElicitRequest:
    schema: Schema = {"type": "object", "properties": properties, "required": list(properties)}
    return ElicitRequest(params=ElicitRequestFormParams(message=message, requested_schema=schema))


def sample(prompt: str, most: int = 100) -> CreateMessageRequest:
    said = SamplingMessage(role="user", content=TextContent(text=prompt))
    return CreateMessageRequest(params=CreateMessageRequestParams(messages=[said], max_tokens=most))


STRING: Final[Schema] = {"type": "string"}
NAME: Final = form("What is your name?", name=STRING)
FRANCE: Final = sample("What is the capital of France?")
ROOTS: Final = ListRootsRequest()
OK: Final = form("Please confirm", ok={"type": "boolean"})


def required(asked: dict[str, Asked], state: str | None = None) -> InputRequiredResult:
    return InputRequiredResult(input_requests=asked, request_state=state)


def responses(call: ToolCall) -> dict[str, Any]:
    return call.params.input_responses or {}


def accepted(call: ToolCall, key: str, name: str) -> object:
    """Return what a form was filled in with, None where it was not."""
    answer = responses(call).get(key)
    return (answer.content or {}).get(name) if isinstance(answer, ElicitResult) else None


def sessionless_tools() -> list[OfferedTool]:
    """Return the tools whose result is a question first."""

    async def name(call: ToolCall) -> CallToolResult | InputRequiredResult:
        given = accepted(call, "user_name", "name")
        return required({"user_name": NAME}) if given is None else text(f"Hello, {given}!")

    async def rounds(call: ToolCall) -> CallToolResult | InputRequiredResult:
        colour = form("Step 2: What is your favorite color?", color=STRING)
        if call.params.request_state == "one" and accepted(call, "step1", "name") is not None:
            return required({"step2": colour}, "two")
        if call.params.request_state == "two" and accepted(call, "step2", "color") is not None:
            return text("both told")
        return required({"step1": form("Step 1: What is your name?", name=STRING)}, "one")

    async def able(call: ToolCall) -> CallToolResult | InputRequiredResult:
        if responses(call):
            return text("told")
        capabilities = call.context.session.client_capabilities
        asked: dict[str, Asked] = {}
        if capabilities is not None and capabilities.elicitation is not None:
            asked["name"] = NAME
        if capabilities is not None and capabilities.sampling is not None:
            asked["capital"] = FRANCE
        return required(asked) if asked else text("nothing can be asked")

    greeting: dict[str, Asked] = {"user_name": NAME, "greeting": sample("Generate a greeting", 50)}
    prefix = "test_input_required_result_"
    return [
        offered(f"{prefix}elicitation", name),
        offered(f"{prefix}sampling", _until({"capital_question": FRANCE})),
        offered(f"{prefix}list_roots", _until({"client_roots": ROOTS})),
        offered(f"{prefix}request_state", _until({"confirm": OK}, "state-ok")),
        offered(f"{prefix}multiple_inputs", _until({**greeting, "client_roots": ROOTS}, "several")),
        offered(f"{prefix}multi_round", rounds),
        offered(f"{prefix}tampered_state", _until({"confirm": OK}, "untampered")),
        offered(f"{prefix}capabilities", able),
        offered("test_streaming_elicitation", _until({"name": NAME})),
    ]


def _until(asked: dict[str, Asked], state: str | None = None) -> Callable[[ToolCall], Any]:
    """Return a tool that asks until all is answered."""

    async def answer(call: ToolCall) -> CallToolResult | InputRequiredResult:
        if set(asked) <= set(responses(call)) and call.params.request_state == state:
            return text(f"told, {state}")
        return required(asked, state)

    return answer


def ask_prompt(params: GetPromptRequestParams) -> InputRequiredResult | str:
    """Ask for what the one prompt needs, or return its text."""
    answer = (params.input_responses or {}).get("user_context")
    if isinstance(answer, ElicitResult) and answer.content:
        return f"Context: {answer.content.get('context')}"
    return required({"user_context": form("What context should the prompt use?", context=STRING)})


ONE_TWO: Final = ["option1", "option2", "option3"]
DEFAULTS: Final[Schema] = {
    "name": {"type": "string", "default": "John Doe"},
    "age": {"type": "integer", "default": 30},
    "score": {"type": "number", "default": 95.5},
    "status": {"type": "string", "enum": ["active", "inactive", "pending"], "default": "active"},
    "verified": {"type": "boolean", "default": True},
}


def _titled(*titles: str) -> list[Schema]:
    return [{"const": f"value{place}", "title": title} for place, title in enumerate(titles, 1)]


ENUMS: Final[Schema] = {
    "untitledSingle": {"type": "string", "enum": ONE_TWO},
    "titledSingle": {"type": "string", "oneOf": _titled("First Option", "Second Option", "Third Option")},
    "legacyEnum": {
        "type": "string",
        "enum": ["opt1", "opt2", "opt3"],
        "enumNames": ["Option One", "Option Two", "Option Three"],
    },
    "untitledMulti": {"type": "array", "items": {"type": "string", "enum": ONE_TWO}},
    "titledMulti": {"type": "array", "items": {"anyOf": _titled("First Choice", "Second Choice", "Third Choice")}},
}


def session_tools() -> list[OfferedTool]:
    """Return the tools that ask in the middle of their work."""

    def elicit(message: str, properties: Schema) -> Callable[[ToolCall], Any]:
        async def answer(call: ToolCall) -> CallToolResult:
            schema = {"type": "object", "properties": properties, "required": []}
            asked = str(call.arguments.get("message", message))
            result = await call.context.session.elicit_form(asked, schema, call.context.request_id)
            return text(f"Elicitation completed: action={result.action}, content={result.content}")

        return answer

    async def sampled(call: ToolCall) -> CallToolResult:
        request = sample(str(call.arguments.get("prompt")))
        result = await call.context.session.send_request(
            request, CreateMessageResult, metadata=ServerMessageMetadata(related_request_id=call.context.request_id)
        )
        said = result.content.text if isinstance(result.content, TextContent) else ""
        return text(f"LLM response: {said}")

    user = {"username": STRING, "email": STRING}
    asking: Schema = {"type": "object", "properties": {"message": STRING}, "required": ["message"]}
    prompting: Schema = {"type": "object", "properties": {"prompt": STRING}, "required": ["prompt"]}
    return [
        offered("test_elicitation", elicit("", user), asking),
        offered("test_elicitation_sep1034_defaults", elicit("Defaults", DEFAULTS)),
        offered("test_elicitation_sep1330_enums", elicit("Choices", ENUMS)),
        offered("test_sampling", sampled, prompting),
    ]
