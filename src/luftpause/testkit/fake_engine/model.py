"""A small model of a batching engine: what runs, what waits, how long each step takes, which KV is still there.

Pure: time is passed in, nothing sleeps. A shell asks `begin_step` when the next step ends, waits until then, and takes
what `end_step` made. Per step every decoding request makes one token, while one budget of prompt tokens is prefilled
beside them, first come first served; so long prompts slow their neighbours, as in the real thing.
Knows no HTTP and no text.
"""

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, replace

from luftpause.testkit.fake_engine.prefix_cache import Piece, PrefixCache

STEP_PREFILL_S_MAX = 0.05
"""A step prefills at most this long, seconds, so that arrivals and departures show soon at any speed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """How fast and how large the engine is.

    Attributes:
        slots: requests that run at the same time.
        ttft_s: fixed delay of every request before its prefill may begin, seconds.
        token_s: a decoding step with one request, seconds.
        crowd_s: what every further decoding request adds to a step, seconds.
        prefill_tps: prompt tokens per second.
        kv_tokens: tokens of KV memory, for running requests and kept prefixes together.
    """

    slots: int = 8
    ttft_s: float = 0.03
    token_s: float = 0.01
    crowd_s: float = 0.0005
    prefill_tps: float = 20_000.0
    kv_tokens: int = 131_072

    def sped_up(self, factor: float) -> "Figures":
        """Return the same engine, `factor` times as fast."""
        return replace(
            self,
            ttft_s=self.ttft_s / factor,
            token_s=self.token_s / factor,
            crowd_s=self.crowd_s / factor,
            prefill_tps=self.prefill_tps * factor,
        )

    @property
    def step_prefill_tokens(self) -> int:
        """Prompt tokens that one step may prefill."""
        return min(2048, max(16, int(self.prefill_tps * STEP_PREFILL_S_MAX)))


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """A request as the model sees it.

    Attributes:
        key: unique among requests.
        prompt: its messages as a chain of pieces, not empty.
        reply_tokens: tokens that it will make, at least 1.
        reply_prefix: name of the conversation with the reply appended.
        stalls_after: after so many tokens it makes no more but keeps its slot; None: never.
    """

    key: int
    prompt: tuple[Piece, ...]
    reply_tokens: int
    reply_prefix: str
    stalls_after: int | None = None

    @property
    def prompt_tokens(self) -> int:
        """Length of the whole prompt, tokens."""
        return sum(piece.tokens for piece in self.prompt)


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """One request made one token. `made` counts from 1; `cached_tokens` of its prompt were not computed again."""

    key: int
    made: int
    cached_tokens: int
    done: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Gauges:
    """What the engine says of itself. Token counts; the last five are totals since its start."""

    running: int
    waiting: int
    kv_tokens: int
    kv_used: int
    prompt_tokens: int
    cached_tokens: int
    generated_tokens: int
    finished: int
    aborted: int


@dataclass(slots=True, kw_only=True)
class _Sequence:
    """A request under way: `private` tokens of KV are its own, `pinned` pieces are shared through the cache."""

    request: Request
    ready_at: float
    cached_tokens: int = 0
    prefill_left: int = 0
    made: int = 0
    private: int = 0
    pinned: tuple[Piece, ...] = ()

    @property
    def stalled(self) -> bool:
        """It keeps its slot and makes nothing."""
        return self.request.stalls_after is not None and self.made >= self.request.stalls_after


class EngineModel:
    """The engine's state. One owner calls it; every method returns at once."""

    def __init__(self, figures: Figures) -> None:
        self._figures = figures
        self._cache = PrefixCache()
        self._waiting: deque[_Sequence] = deque()
        self._running: dict[int, _Sequence] = {}
        self._planned: list[tuple[_Sequence, int]] = []
        self._private = 0
        self._prompt_tokens = self._cached_tokens = self._generated_tokens = self._finished = self._aborted = 0

    def fits(self, request: Request) -> bool:
        """Whether the request could ever run here."""
        return request.prompt_tokens + request.reply_tokens <= self._figures.kv_tokens

    def submit(self, request: Request, now: float) -> None:
        """Queue a request that fits."""
        assert self.fits(request)
        self._waiting.append(_Sequence(request=request, ready_at=now + self._figures.ttft_s))

    def abort(self, key: int) -> None:
        """Drop a request wherever it is; its slot is free at once. An unknown key changes nothing."""
        sequence = self._running.get(key)
        if sequence is not None:
            self._release(sequence)
            self._aborted += 1
            return
        kept = [waiting for waiting in self._waiting if waiting.request.key != key]
        self._aborted += len(self._waiting) - len(kept)
        self._waiting = deque(kept)

    def begin_step(self, now: float) -> float | None:
        """Admit who may run, plan a step and return when it ends; None when there is nothing to do."""
        self._admit()
        decodes, prefills = self._plan(now)
        self._planned = [(sequence, 0) for sequence in decodes] + prefills
        if self._planned:
            decode_s = self._figures.token_s + self._figures.crowd_s * (len(decodes) - 1) if decodes else 0.0
            return now + decode_s + sum(tokens for _, tokens in prefills) / self._figures.prefill_tps
        return min((s.ready_at for s in self._running.values() if s.ready_at > now), default=None)

    def end_step(self) -> Sequence[Progress]:
        """Carry out the planned step and return what it made, in order of admission."""
        planned, self._planned = self._planned, []
        made = []
        for sequence, prefilled in planned:
            if sequence.request.key not in self._running:
                continue  # it left during the step
            sequence.prefill_left -= prefilled
            if prefilled and sequence.prefill_left == 0:
                self._share_prompt(sequence)
            if sequence.prefill_left == 0 and not sequence.stalled:
                made.append(self._make_token(sequence))
        return made

    def gauges(self) -> Gauges:
        """Return what the engine says of itself now."""
        return Gauges(
            running=len(self._running),
            waiting=len(self._waiting),
            kv_tokens=self._figures.kv_tokens,
            kv_used=self._cache.tokens + self._private,
            prompt_tokens=self._prompt_tokens,
            cached_tokens=self._cached_tokens,
            generated_tokens=self._generated_tokens,
            finished=self._finished,
            aborted=self._aborted,
        )

    def _admit(self) -> None:
        """Move waiting requests to free slots in order of arrival; who does not fit yet holds up those behind."""
        while self._waiting and len(self._running) < self._figures.slots:
            sequence = self._waiting[0]
            request = sequence.request
            matched = request.prompt[: self._cache.matched(request.prompt)]
            self._cache.pin(matched)
            found = sum(piece.tokens for piece in matched)
            needed = request.prompt_tokens - found + request.reply_tokens
            if not self._cache.shrink_to(self._figures.kv_tokens - self._private - needed):
                self._cache.unpin(matched)
                return
            self._waiting.popleft()
            self._cache.keep(matched)
            sequence.pinned = matched
            sequence.private = needed
            self._private += needed
            # The last prompt token is always computed: its output is the first token of the reply.
            sequence.cached_tokens = min(found, request.prompt_tokens - 1)
            sequence.prefill_left = request.prompt_tokens - sequence.cached_tokens
            self._running[request.key] = sequence
            self._prompt_tokens += request.prompt_tokens
            self._cached_tokens += sequence.cached_tokens

    def _plan(self, now: float) -> tuple[list[_Sequence], list[tuple[_Sequence, int]]]:
        """Return who decodes in this step, and who prefills how many tokens."""
        decodes: list[_Sequence] = []
        prefills: list[tuple[_Sequence, int]] = []
        budget = self._figures.step_prefill_tokens
        for sequence in self._running.values():
            if sequence.ready_at > now or sequence.stalled:
                continue
            if sequence.prefill_left == 0:
                decodes.append(sequence)
            elif budget:
                tokens = min(budget, sequence.prefill_left)
                budget -= tokens
                prefills.append((sequence, tokens))
        return decodes, prefills

    def _share_prompt(self, sequence: _Sequence) -> None:
        """The prompt is computed: from now on others may build on it."""
        request = sequence.request
        computed = sequence.private - request.reply_tokens
        sequence.private -= computed
        self._private -= computed
        self._cache.keep(request.prompt)
        self._cache.pin(request.prompt[len(sequence.pinned) :])
        sequence.pinned = request.prompt

    def _make_token(self, sequence: _Sequence) -> Progress:
        request = sequence.request
        sequence.made += 1
        self._generated_tokens += 1
        done = sequence.made == request.reply_tokens
        if done:
            self._release(sequence)
            self._cache.keep((*request.prompt, Piece(request.reply_prefix, request.reply_tokens)))
            self._finished += 1
        return Progress(key=request.key, made=sequence.made, cached_tokens=sequence.cached_tokens, done=done)

    def _release(self, sequence: _Sequence) -> None:
        """Give back slot, pins and private memory."""
        del self._running[sequence.request.key]
        self._cache.unpin(sequence.pinned)
        self._private -= sequence.private
