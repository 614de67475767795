"""A request to the modelled engine, as it is asked for and as it is carried out. Decides nothing."""

from dataclasses import dataclass

from luftpause.testkit.engine_model.prefix_tree import Chain, Pinned


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """A turn as the engine sees it.

    Attributes:
        key: unique among requests.
        prompt: segments of the prompt; the last one is the conversation's own, and the reply will extend it.
        reply_tokens: tokens that it will make, at least 1.
        reply_tokens_max: tokens that it may make as far as the engine knows.
        priority: smaller goes first, in an engine that looks at it.
        dies_after: it breaks once it has made so many tokens; None: it does not.
        spoken_of: its client wants to know when it has made so many tokens, and later as a `Charge` grows; 0: it
            does not ask.
        stalls_after: once it has made so many tokens it makes no more, and keeps its place and its memory; None: never.
    """

    key: int
    prompt: Chain
    reply_tokens: int
    reply_tokens_max: int
    priority: int = 0
    dies_after: int | None = None
    stalls_after: int | None = None
    spoken_of: int = 0

    @property
    def prompt_tokens(self) -> int:
        """Length of the whole prompt."""
        return sum(tokens for _, tokens in self.prompt)


class Sequence:
    """A request under way.

    Attributes:
        number: its place among those of its priority.
        end: tokens after which it is over.
        stop: tokens after which it makes no more, of its end or because it stalls.
        cached_tokens: of its prompt, found when it was first admitted; -1 before.
        owned: tokens of KV that are its own; the pinned ones belong to the tree.
        told: tokens that its client was last told of; 0 before the first.
        spoken_of: tokens that its client wants to hear of next; 0: of none.
        begun: its prompt has been begun since it was last admitted.
        aborted: nobody waits for it any more.
    """

    __slots__ = (
        "aborted",
        "begun",
        "cached_tokens",
        "end",
        "made",
        "number",
        "owned",
        "pinned",
        "prefill_left",
        "prompt_tokens",
        "queued_at",
        "request",
        "spoken_of",
        "stop",
        "told",
    )

    def __init__(self, request: Request, number: int, now: float) -> None:
        self.request = request
        self.number = number
        self.queued_at = now
        self.prompt_tokens = request.prompt_tokens
        dies_after = request.dies_after
        self.end = request.reply_tokens if dies_after is None else min(dies_after, request.reply_tokens)
        stalls_after = request.stalls_after
        self.stop = self.end if stalls_after is None else min(stalls_after, self.end)
        self.spoken_of = request.spoken_of
        self.made = 0
        self.cached_tokens = -1
        self.prefill_left = 0
        self.owned = 0
        self.pinned = Pinned()
        self.told = 0
        self.begun = False
        self.aborted = False

    @property
    def dies(self) -> bool:
        """Whether its end is no good one."""
        return self.request.dies_after is not None and self.end == self.request.dies_after

    @property
    def context(self) -> int:
        """Tokens of its prompt and of what it has made."""
        return self.prompt_tokens + self.made

    def chain(self) -> Chain:
        """Return the prompt, lengthened by what was made so far."""
        *shared, (own, tokens) = self.request.prompt
        return (*shared, (own, tokens + self.made))
