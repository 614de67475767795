"""The prefix cache of the modelled engine: a paged, reference-counted tree with least-recently-used leaves evicted.

A prompt is a chain of segments, such as a system prompt that many runs share and one run's conversation. A segment
only ever grows, so one node per segment is a whole radix tree's worth of knowledge here: which leading tokens of it
still have their KV. Pages go from the end of a leaf. Counts tokens; knows no requests and no time.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from heapq import heappop, heappush
from itertools import count
from typing import TypeAlias

Chain: TypeAlias = Sequence[tuple[str, int]]
"""Segments from the root down: name and tokens. A name always stands below the same parent."""


class Node:
    """A segment with KV. `pins`: running requests that need it; `used` orders nodes by their last use."""

    __slots__ = ("children", "key", "parent", "pins", "tokens", "used")

    def __init__(self, key: str, parent: "Node | None") -> None:
        self.key = key
        self.parent = parent
        self.tokens = 0
        self.pins = 0
        self.children = 0
        self.used = 0


@dataclass(frozen=True, slots=True)
class Pinned:
    """A chain's nodes that cannot be evicted until `unpin`, and the tokens of the chain that they hold."""

    nodes: tuple[Node, ...] = ()
    tokens: int = 0


class PrefixTree:
    """Which prefixes are kept. `tokens` counts all of them, `idle_tokens` those that may be evicted."""

    def __init__(self, page_tokens: int) -> None:
        self._page = page_tokens
        self._nodes: dict[str, Node] = {}
        self._leaves: list[tuple[int, int, Node]] = []
        self._uses = count(1)
        self._numbers = count()
        self.tokens = 0
        self.idle_tokens = 0

    def match(self, chain: Chain) -> tuple[int, int]:
        """Return how many leading tokens of the chain are kept, and how many tokens pinning them would protect."""
        found = protected = 0
        for key, tokens in chain:
            node, whole = self._nodes.get(key), self._whole_pages(tokens)
            if node is None or not (whole or node.children):
                break
            kept = min(node.tokens, whole)
            found += kept
            if not node.pins:
                protected += node.tokens if node.children else kept
            if node.tokens < whole:
                break
        return found, protected

    def pin(self, chain: Chain) -> Pinned:
        """Protect what `match` finds, and make it the freshest. What a shortened conversation has lost is dropped."""
        nodes: list[Node] = []
        for key, tokens in chain:
            node, whole = self._nodes.get(key), self._whole_pages(tokens)
            if node is None or not (whole or node.children):
                break  # nothing is kept, or the chain is still too short to say anything about it
            if node.tokens > whole and not node.pins and not node.children:
                self._cut(node, node.tokens - whole)
            self._add_pin(node)
            nodes.append(node)
            if node.tokens < whole:
                break
        self._touch(nodes)
        return Pinned(tuple(nodes), self._held(chain, nodes))

    def grow(self, pinned: Pinned, chain: Chain) -> Pinned:
        """Keep the whole pages of a chain, of which `pinned` is the beginning, and protect them all.

        Where somebody has kept more of a segment than the chain has, and nobody needs it now, the chain ends: it would
        protect more than its own. The caller owns the memory of what is added: compare `tokens` before and after.
        """
        nodes = list(pinned.nodes)
        for place, (key, tokens) in enumerate(chain):
            whole = self._whole_pages(tokens)
            if place == len(nodes):
                kept = self._nodes.get(key)
                if kept is not None and not kept.pins and kept.tokens > whole:
                    break
                nodes.append(self._node(key, nodes[-1] if nodes else None))
            node = nodes[place]
            more = whole - node.tokens
            if more > 0:
                node.tokens += more
                self.tokens += more
        self._touch(nodes)
        return Pinned(tuple(nodes), self._held(chain, nodes))

    def unpin(self, pinned: Pinned) -> None:
        """Undo one `pin`, and what `grow` added to it."""
        for node in reversed(pinned.nodes):
            node.pins -= 1
            if node.pins == 0:
                self.idle_tokens += node.tokens
                self._offer(node)

    def evict(self, tokens: int) -> None:
        """Free at least so many tokens, whole pages, least recently used first. There must be as many idle ones."""
        while tokens > 0:
            used, _, node = heappop(self._leaves)
            if node.pins or node.children or node.used != used or not node.tokens:
                continue  # it changed since it was offered
            pages = -(-tokens // self._page)
            freed = min(node.tokens, pages * self._page)
            self._cut(node, freed)
            tokens -= freed
            self._offer(node)

    def _held(self, chain: Chain, nodes: Sequence[Node]) -> int:
        return sum(min(node.tokens, self._whole_pages(tokens)) for node, (_, tokens) in zip(nodes, chain, strict=False))

    def _node(self, key: str, parent: Node | None) -> Node:
        """Return the segment's node, pinned; another request may have made it meanwhile."""
        node = self._nodes.get(key)
        if node is None:
            node = self._nodes[key] = Node(key, parent)
            if parent is not None:
                parent.children += 1
        self._add_pin(node)
        return node

    def _add_pin(self, node: Node) -> None:
        if node.pins == 0:
            self.idle_tokens -= node.tokens
        node.pins += 1

    def _cut(self, node: Node, tokens: int) -> None:
        """Free the end of an idle leaf."""
        node.tokens -= tokens
        self.tokens -= tokens
        self.idle_tokens -= tokens

    def _touch(self, nodes: Sequence[Node]) -> None:
        """Leaf first, so that a node is always fresher than those below it."""
        for node in reversed(nodes):
            node.used = next(self._uses)

    def _offer(self, node: Node) -> None:
        """List an idle leaf for eviction; one that is less than a page has nothing to evict and goes at once."""
        if node.pins or node.children:
            return
        if not node.tokens:
            self._drop(node)
        else:
            heappush(self._leaves, (node.used, next(self._numbers), node))

    def _drop(self, node: Node) -> None:
        del self._nodes[node.key]
        if node.parent is not None:
            node.parent.children -= 1
            self._offer(node.parent)

    def _whole_pages(self, tokens: int) -> int:
        return tokens - tokens % self._page
