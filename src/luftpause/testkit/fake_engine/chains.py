"""From a prompt's messages to the chain of segments that the engine model keeps, finds and evicts. Pure.

Engines count pages from the beginning of the prompt, so a page belongs to the message in which it ends, and a message
in which none ends has no segment of its own. What is left at the end, less than a page, opens the reply's segment:
the next prompt, which echoes the reply, finds the whole pages of both there.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from luftpause.testkit.engine_model.prefix_tree import Chain


@dataclass(frozen=True, slots=True)
class Piece:
    """One message of a prompt: `prefix` names it together with all before it; `tokens` is its own length."""

    prefix: str
    tokens: int


def chain_of(prompt: Sequence[Piece], reply: str, page_tokens: int) -> Chain:
    """Return a prompt's segments; `reply` names the conversation with the reply appended."""
    chain: list[tuple[str, int]] = []
    end = paged = 0
    for piece in prompt:
        end += piece.tokens
        whole = end - end % page_tokens
        if whole > paged:
            chain.append((piece.prefix, whole - paged))
            paged = whole
    return (*chain, (reply, end - paged))
