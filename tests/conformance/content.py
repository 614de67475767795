"""What the conformance suite reads and nothing else: plain tools, resources, prompts, completions and log levels.

Everything is as the suite's scenarios describe it. The product has none of this.
"""

import base64
import struct
import zlib
from collections.abc import Awaitable, Callable
from typing import Any, Final

from mcp.server.lowlevel import Server
from mcp.server.subscriptions import PromptsListChanged, ServerEvent, SubscriptionBus, ToolsListChanged
from mcp.shared.exceptions import MCPError
from mcp_types import (
    INVALID_PARAMS,
    MISSING_REQUIRED_CLIENT_CAPABILITY,
    AudioContent,
    BlobResourceContents,
    CallToolResult,
    CompleteRequestParams,
    CompleteResult,
    Completion,
    ContentBlock,
    EmbeddedResource,
    EmptyResult,
    GetPromptRequestParams,
    GetPromptResult,
    ImageContent,
    InputRequiredResult,
    ListPromptsResult,
    ListResourcesResult,
    ListResourceTemplatesResult,
    LoggingMessageNotification,
    LoggingMessageNotificationParams,
    PaginatedRequestParams,
    Prompt,
    PromptArgument,
    PromptMessage,
    ReadResourceRequestParams,
    ReadResourceResult,
    Resource,
    ResourceTemplate,
    SetLevelRequestParams,
    SubscribeRequestParams,
    TextContent,
    TextResourceContents,
    Tool,
    UnsubscribeRequestParams,
)

from luftpause.services.runtime.mcp_door.calls import Context, OfferedTool, ToolCall

Schema = dict[str, Any]
NOTHING: Final[Schema] = {"type": "object", "properties": {}}
WIDE: Final[Schema] = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "$defs": {
        "address": {
            "$anchor": "addressDef",
            "type": "object",
            "properties": {"street": {"type": "string"}, "city": {"type": "string"}},
        }
    },
    "properties": {
        "name": {"type": "string"},
        "address": {"$ref": "#/$defs/address"},
        "contactMethod": {"type": "string", "enum": ["phone", "email"]},
        "phone": {"type": "string"},
        "email": {"type": "string"},
    },
    "allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
    "if": {"properties": {"contactMethod": {"const": "phone"}}, "required": ["contactMethod"]},
    "then": {"required": ["phone"]},
    "else": {"required": ["email"]},
    "additionalProperties": False,
}
HEADED: Final[Schema] = {
    "type": "object",
    "properties": {"region": {"type": "string", "x-mcp-header": "Region"}},
    "required": ["region"],
}


def offered(
    name: str, answer: Callable[[ToolCall], Awaitable[Any]], schema: Schema = NOTHING, description: str = ""
) -> OfferedTool:
    tool = Tool(name=name, description=description or f"Fixture {name}", input_schema=schema)
    return OfferedTool(tool=tool, answer=answer)


def text(said: str, *, is_error: bool = False) -> CallToolResult:
    return CallToolResult(content=[TextContent(text=said)], is_error=is_error)


def png() -> str:
    """Return one red pixel."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    head = struct.pack(">IIBBBBB", 1, 1, 8, 2, 0, 0, 0)
    body = chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(b"\0\xff\0\0")) + chunk(b"IEND", b"")
    return base64.b64encode(b"\x89PNG\r\n\x1a\n" + body).decode()


def wav() -> str:
    """Return a moment of silence."""
    data = bytes(8)
    layout = b"WAVEfmt " + struct.pack("<IHHIIHH", 16, 1, 1, 8000, 8000, 1, 8) + b"data" + struct.pack("<I", len(data))
    return base64.b64encode(b"RIFF" + struct.pack("<I", len(layout) + len(data)) + layout + data).decode()


def resource(uri: str, said: str, kind: str = "text/plain") -> EmbeddedResource:
    return EmbeddedResource(resource=TextResourceContents(uri=uri, mime_type=kind, text=said))


IMAGE: Final = ImageContent(data=png(), mime_type="image/png")
MIXED: Final = resource("test://mixed-content-resource", '{"test":"data","value":123}', "application/json")
CONTENTS: Final[dict[str, list[ContentBlock]]] = {
    "test_simple_text": [TextContent(text="This is a simple text response for testing.")],
    "test_image_content": [IMAGE],
    "test_audio_content": [AudioContent(data=wav(), mime_type="audio/wav")],
    "test_embedded_resource": [resource("test://embedded-resource", "This is an embedded resource content.")],
    "test_multiple_content_types": [TextContent(text="Multiple content types test:"), IMAGE, MIXED],
}


async def _content(call: ToolCall) -> CallToolResult:
    return CallToolResult(content=CONTENTS[call.params.name])


async def _fail(_call: ToolCall) -> CallToolResult:
    return text("This tool intentionally returns an error for testing", is_error=True)


async def _log_thrice(call: ToolCall) -> CallToolResult:
    for said in ("Tool execution started", "Tool processing data", "Tool execution completed"):
        await _log(call.context, said)
    return text("logged")


async def _report(call: ToolCall) -> CallToolResult:
    for done in (0, 50, 100):
        await call.context.session.report_progress(done, 100)
    return text("reported")


async def _greet(call: ToolCall) -> CallToolResult:
    return text(f"Hello, {call.arguments.get('name')}!")


async def _echo(call: ToolCall) -> CallToolResult:
    return text(str(dict(call.arguments)))


async def _need_sampling(call: ToolCall) -> CallToolResult:
    capabilities = call.context.session.client_capabilities
    if capabilities is None or capabilities.sampling is None:
        needed: Schema = {"requiredCapabilities": {"sampling": {}}}
        raise MCPError(MISSING_REQUIRED_CLIENT_CAPABILITY, "sampling is needed", needed)
    return text("sampled")


def plain_tools(bus: SubscriptionBus) -> list[OfferedTool]:
    """Return the tools that only answer."""

    def publish(event: ServerEvent) -> Callable[[ToolCall], Awaitable[CallToolResult]]:
        async def answer(_call: ToolCall) -> CallToolResult:
            await bus.publish(event)
            return text("changed")

        return answer

    named: Schema = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}
    return [
        *(offered(name, _content) for name in CONTENTS),
        offered("test_error_handling", _fail),
        offered("test_tool_with_logging", _log_thrice),
        offered("test_logging_tool", _log_thrice),
        offered("test_tool_with_progress", _report),
        offered("greet", _greet, named),
        offered("json_schema_2020_12_tool", _echo, WIDE, "Tool with JSON Schema 2020-12 features"),
        offered("test_header_tool", _echo, HEADED),
        offered("test_trigger_tool_change", publish(ToolsListChanged())),
        offered("test_trigger_prompt_change", publish(PromptsListChanged())),
        offered("test_missing_capability", _need_sampling),
    ]


async def _log(context: Context, said: str) -> None:
    # In the sessionless era a log goes only to who asked for it, which no scenario does.
    if context.protocol_version < "2026":
        told = LoggingMessageNotification(params=LoggingMessageNotificationParams(level="info", data=said))
        await context.session.send_notification(told, related_request_id=context.request_id)


RESOURCES: Final = [
    Resource(uri="test://static-text", name="static-text", description="Text", mime_type="text/plain"),
    Resource(uri="test://static-binary", name="static-binary", description="An image", mime_type="image/png"),
    Resource(uri="test://watched-resource", name="watched", description="Watched", mime_type="text/plain"),
]
TEMPLATE: Final = ResourceTemplate(
    uri_template="test://template/{id}/data", name="template", description="Data by id", mime_type="application/json"
)


async def _read(_context: Context, params: ReadResourceRequestParams) -> ReadResourceResult:
    uri = str(params.uri)
    contents: TextResourceContents | BlobResourceContents
    if uri in ("test://static-text", "test://watched-resource"):
        said = "This is the content of the static text resource."
        contents = TextResourceContents(uri=uri, mime_type="text/plain", text=said)
    elif uri == "test://static-binary":
        contents = BlobResourceContents(uri=uri, mime_type="image/png", blob=png())
    elif uri.startswith("test://template/") and uri.endswith("/data"):
        number = uri.split("/")[3]
        said = f'{{"id":"{number}","templateTest":true,"data":"Data for ID: {number}"}}'
        contents = TextResourceContents(uri=uri, mime_type="application/json", text=said)
    else:
        raise MCPError(INVALID_PARAMS, "Resource not found", {"uri": uri})
    return ReadResourceResult(contents=[contents])


def _argument(name: str) -> PromptArgument:
    return PromptArgument(name=name, description=name, required=True)


PROMPTS: Final = [
    Prompt(name="test_simple_prompt", description="Simple"),
    Prompt(name="test_prompt_with_arguments", description="Two", arguments=[_argument("arg1"), _argument("arg2")]),
    Prompt(name="test_prompt_with_embedded_resource", description="Embedded", arguments=[_argument("resourceUri")]),
    Prompt(name="test_prompt_with_image", description="Image"),
    Prompt(name="test_input_required_result_prompt", description="Asks first"),
]


def _user(*blocks: ContentBlock) -> GetPromptResult:
    return GetPromptResult(messages=[PromptMessage(role="user", content=block) for block in blocks])


async def _prompt(
    ask: Callable[[GetPromptRequestParams], InputRequiredResult | str], params: GetPromptRequestParams
) -> GetPromptResult | InputRequiredResult:
    given = params.arguments or {}
    match params.name:
        case "test_simple_prompt":
            return _user(TextContent(text="This is a simple prompt for testing."))
        case "test_prompt_with_arguments":
            said = f"Prompt with arguments: arg1='{given.get('arg1')}', arg2='{given.get('arg2')}'"
            return _user(TextContent(text=said))
        case "test_prompt_with_embedded_resource":
            embedded = resource(given["resourceUri"], "Embedded resource content for testing.")
            return _user(embedded, TextContent(text="Please process the embedded resource above."))
        case "test_prompt_with_image":
            return _user(IMAGE, TextContent(text="Please analyze the image above."))
        case "test_input_required_result_prompt":
            heard = ask(params)
            return heard if isinstance(heard, InputRequiredResult) else _user(TextContent(text=heard))
        case _:
            raise MCPError(INVALID_PARAMS, "there is no such prompt")


def serve_content(server: Server[object], ask: Callable[[GetPromptRequestParams], InputRequiredResult | str]) -> None:
    """Add resources, prompts, completions and log levels to a server. `ask` asks for what one prompt needs."""

    async def resources(_context: Context, _params: PaginatedRequestParams) -> ListResourcesResult:
        return ListResourcesResult(resources=RESOURCES, ttl_ms=1000, cache_scope="public")

    async def templates(_context: Context, _params: PaginatedRequestParams) -> ListResourceTemplatesResult:
        return ListResourceTemplatesResult(resource_templates=[TEMPLATE], ttl_ms=1000, cache_scope="public")

    async def read(context: Context, params: ReadResourceRequestParams) -> ReadResourceResult:
        return (await _read(context, params)).model_copy(update={"ttl_ms": 1000, "cache_scope": "public"})

    async def prompts(_context: Context, _params: PaginatedRequestParams) -> ListPromptsResult:
        return ListPromptsResult(prompts=PROMPTS, ttl_ms=1000, cache_scope="public")

    async def prompt(_context: Context, params: GetPromptRequestParams) -> GetPromptResult | InputRequiredResult:
        return await _prompt(ask, params)

    async def complete(_context: Context, _params: CompleteRequestParams) -> CompleteResult:
        return CompleteResult(completion=Completion(values=["paris", "park", "party"], total=3, has_more=False))

    async def done(_context: Context, _params: object) -> EmptyResult:
        return EmptyResult()

    server.add_request_handler("resources/list", PaginatedRequestParams, resources)
    server.add_request_handler("resources/templates/list", PaginatedRequestParams, templates)
    server.add_request_handler("resources/read", ReadResourceRequestParams, read)
    server.add_request_handler("resources/subscribe", SubscribeRequestParams, done)
    server.add_request_handler("resources/unsubscribe", UnsubscribeRequestParams, done)
    server.add_request_handler("prompts/list", PaginatedRequestParams, prompts)
    server.add_request_handler("prompts/get", GetPromptRequestParams, prompt)
    server.add_request_handler("completion/complete", CompleteRequestParams, complete)
    server.add_request_handler("logging/setLevel", SetLevelRequestParams, done)
