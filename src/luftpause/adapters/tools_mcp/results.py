"""What a tool server answered, as the text that the model is told."""

from collections.abc import Sequence
from typing import Final

import msgspec
from mcp_types import CallToolResult, ContentBlock, EmbeddedResource, TextContent, TextResourceContents

from luftpause.ports.tools import ToolOutcome

TEXT_MAX: Final = 200_000
"""Characters of a result; a model's context is smaller than that anyway."""


def outcome_of(result: CallToolResult) -> ToolOutcome:
    """Return a tool's answer. What is no text is named, not passed on."""
    text = "\n".join(_texts(result.content))
    if not text and result.structured_content is not None:
        text = msgspec.json.encode(result.structured_content).decode()
    if result.is_error:
        return failure(text or "the tool failed and did not say why")
    return ToolOutcome(text=_bounded(text))


def failure(text: str, *, unknown: bool = False) -> ToolOutcome:
    """Return a failed outcome, marked as one for the model."""
    return ToolOutcome(text=_bounded(f"Error: {text}"), failed=True, unknown=unknown)


def _texts(blocks: Sequence[ContentBlock]) -> list[str]:
    texts: list[str] = []
    for block in blocks:
        if isinstance(block, TextContent):
            texts.append(block.text)
        elif isinstance(block, EmbeddedResource) and isinstance(block.resource, TextResourceContents):
            texts.append(block.resource.text)
        else:
            texts.append(f"[{block.type}, not shown]")
    return texts


def _bounded(text: str) -> str:
    # Half a surrogate pair cannot be journaled nor sent on.
    sound = text.encode("utf-8", "replace").decode("utf-8")
    if len(sound) <= TEXT_MAX:
        return sound
    return f"{sound[:TEXT_MAX]}\n[cut: {len(sound) - TEXT_MAX} more characters]"
