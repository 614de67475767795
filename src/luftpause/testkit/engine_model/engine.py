"""The engine model: a queue, continuous batching with chunked prefill, paged KV memory, and how long each step takes.

    step = step_s + decodes * decode_s + prefilled tokens / prefill_tps + decoded context * context_s
         + prefilled tokens * what stands before each * prefill_context_s + prompts begun * request_s

Every step, each running request that is past its prefill makes one token, and one budget of prompt tokens is prefilled
beside them, first admitted first. Steps that only decode are skipped over until the first of them ends, memory runs
out or something is submitted: only instants that somebody outside could notice are visited. An engine told to visit
each step does the same at the same instants, and tells of every token: so one that streams can be made of it.

Memory is counted in tokens: what the prefix tree keeps, by whole pages, and what running requests own besides. A
request is admitted when its prompt and a share of its longest reply fit into what is free or can be evicted, after
what the running ones still have reserved; who does not fit holds up those behind. When a step has no memory left, the
request admitted last loses its own KV and goes back to the head of the queue. Deterministic; knows no clock.
"""

from bisect import insort
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from itertools import count
from typing import Final

from luftpause.core.model.charges import still_to_come
from luftpause.testkit.engine_model.figures import EngineFigures
from luftpause.testkit.engine_model.prefix_tree import Chain, Pinned, PrefixTree
from luftpause.testkit.engine_model.sequence import Request, Sequence
from luftpause.testkit.engine_model.stretch import Stretch


class Outcome(Enum):
    """What can be seen of a request from outside."""

    FIRST_TOKEN = "first token"
    GREW = "grew"
    """It has become as long as its client wanted to hear of."""
    TOKEN = "token"
    """One more; only of an engine that visits each step."""
    DONE = "done"
    DIED = "died"


@dataclass(frozen=True, slots=True)
class Progress:
    """Something that a request's client notices.

    Attributes:
        key: of the request.
        outcome: what it is.
        made: tokens made so far.
        cached_tokens: of its prompt, found when it was first admitted.
    """

    key: int
    outcome: Outcome
    made: int
    cached_tokens: int


@dataclass(slots=True, kw_only=True)
class EngineTotals:
    """Counts since the engine's start."""

    prefilled_tokens: int = 0
    cached_tokens: int = 0
    generated_tokens: int = 0
    retractions: int = 0
    steps: int = 0


def _by_arrival(sequence: Sequence) -> tuple[int, int]:
    return 0, sequence.number


def _by_priority(sequence: Sequence) -> tuple[int, int]:
    return sequence.request.priority, sequence.number


_ORDER: Final[dict[str, Callable[[Sequence], tuple[int, int]]]] = {"fcfs": _by_arrival, "priority": _by_priority}

_STEPS_MAX: Final = 1 << 30


class Engine:
    """One replica's engine. Its owner calls `advance` at `next_at`, which any other call may change.

    With `each_step` it visits every step and tells of every token; what else happens is the same, at the same instants.
    """

    def __init__(self, figures: EngineFigures, *, each_step: bool = False) -> None:
        self._figures = figures
        self._each_step = each_step
        self._order = _ORDER[figures.queue]
        self._tree = PrefixTree(figures.page_tokens)
        self._waiting: list[Sequence] = []
        self._running: list[Sequence] = []
        self._owned = 0
        self._numbers = count()
        self._retracted = count(-1, -1)
        self._stretch: Stretch | None = None
        self._decodes: list[Sequence] = []
        self._prefills: list[tuple[Sequence, int]] = []
        self.totals = EngineTotals()

    @property
    def next_at(self) -> float | None:
        """When something happens next; None while there is nothing to do."""
        return None if self._stretch is None else self._stretch.ends_at

    @property
    def kv_used(self) -> int:
        """Tokens of KV memory in use, kept prefixes included."""
        return self._tree.tokens + self._owned

    @property
    def kv_held(self) -> int:
        """Tokens of KV memory that running requests need: the rest of what is used can be evicted."""
        return self.kv_used - self._tree.idle_tokens

    def fits(self, request: Request) -> bool:
        """Say whether the request could ever run here."""
        return request.prompt_tokens + request.reply_tokens_max <= self._figures.kv_tokens

    def submit(self, request: Request, now: float) -> None:
        """Queue a request that fits; it is looked at when the step under way ends."""
        assert self.fits(request), f"request {request.key} is larger than the whole memory"
        sequence = Sequence(request, next(self._numbers), now)
        insort(self._waiting, sequence, key=self._order)
        if self._stretch is None or self._waiting[0] is sequence:
            self._look_again(now)

    def take_back(self, chain: Chain) -> bool:
        """Keep a chain as if it had been computed here; say whether there was room for it."""
        tokens = sum(tokens for _, tokens in chain)
        found, protected = self._tree.match(chain)
        if tokens - found > self._free() + self._tree.idle_tokens - protected:
            return False
        pinned = self._tree.pin(chain)
        self._tree.evict(tokens - pinned.tokens - self._free())
        self._tree.unpin(self._tree.grow(pinned, chain))
        return True

    def abort(self, key: int, now: float) -> None:
        """Drop a request. What it owns is free when the step under way ends; an unknown one changes nothing."""
        for sequence in self._running:
            if sequence.request.key == key:
                sequence.aborted = True
                self._look_again(now)
                return
        was_first = bool(self._waiting) and self._waiting[0].request.key == key
        self._waiting = [waiting for waiting in self._waiting if waiting.request.key != key]
        if was_first:
            self._look_again(now)  # those behind it may fit

    def advance(self, now: float) -> list[Progress]:
        """Carry out the steps that end now, plan the next ones, and return what clients notice."""
        stretch = self._stretch
        assert stretch is not None, "there is nothing to do"
        assert now == stretch.ends_at, f"called at {now}, not at {stretch.ends_at}"
        self._carry_out(stretch.steps)
        progress = self._collect()
        self._begin(now)
        return progress

    def gauges(self, now: float) -> tuple[int, int]:
        """Return how many requests run and wait, as the engine counted them when its last step ended."""
        counted_at = now if self._stretch is None else self._stretch.last_end(now)
        return len(self._running), sum(sequence.queued_at <= counted_at for sequence in self._waiting)

    def report(self, now: float) -> tuple[int, int, int]:
        """Return the gauges, and the tokens that it has prefilled since its start."""
        return (*self.gauges(now), self.totals.prefilled_tokens)

    def open_keys(self) -> list[int]:
        """Return the requests that have not ended, running ones first."""
        return [sequence.request.key for sequence in (*self._running, *self._waiting) if not sequence.aborted]

    def _carry_out(self, steps: int) -> None:
        decodes, totals = self._decodes, self.totals
        for sequence in decodes:
            sequence.made += steps
            sequence.owned += steps
        made = steps * len(decodes)
        self._owned += made
        for sequence, tokens in self._prefills:
            sequence.prefill_left -= tokens
            totals.prefilled_tokens += tokens
            if sequence.prefill_left == 0:
                self._share_prompt(sequence)
                if sequence.made < sequence.stop:
                    sequence.made += 1
                    sequence.owned += 1
                    self._owned += 1
                    made += 1
        totals.generated_tokens += made
        totals.steps += steps
        self._tree.evict(self._tree.tokens + self._owned - self._figures.kv_tokens)

    def _collect(self) -> list[Progress]:
        """Return what changed for clients, in order of admission, and let go of those that ended."""
        progress: list[Progress] = []
        going_on: list[Sequence] = []
        for sequence in self._running:
            if sequence.aborted:
                self._release(sequence)
                continue
            if sequence.made > sequence.told:
                if not sequence.told:
                    progress.append(_progress(sequence, Outcome.FIRST_TOKEN))
                elif self._each_step:
                    progress.append(_progress(sequence, Outcome.TOKEN))
                sequence.told = sequence.made
                if 0 < sequence.spoken_of <= sequence.made < sequence.end:
                    progress.append(_progress(sequence, Outcome.GREW))
                    sequence.spoken_of = sequence.made + still_to_come(sequence.made)
            if sequence.made < sequence.end or sequence.prefill_left:
                going_on.append(sequence)
            elif sequence.dies:
                self._release(sequence)
                progress.append(_progress(sequence, Outcome.DIED))
            else:
                self._keep(sequence)
                progress.append(_progress(sequence, Outcome.DONE))
        self._running = going_on
        return progress

    def _begin(self, now: float) -> None:
        """Admit who may run, and plan the steps until something changes."""
        if self._waiting:
            self._admit()
        running = self._running
        if not running:
            assert not self._waiting, "an empty engine takes what fits into it"
            self._stretch = None
            return
        retracted = self._make_room()
        decodes = [sequence for sequence in running if not sequence.prefill_left and sequence.made < sequence.stop]
        prefills: list[tuple[Sequence, int]] = []
        tokens = 0
        if len(decodes) < len(running):
            budget = max(1, self._figures.chunk_tokens - len(decodes))
            for sequence in running:
                if sequence.prefill_left and tokens < budget:
                    chunk = min(sequence.prefill_left, budget - tokens)
                    prefills.append((sequence, chunk))
                    tokens += chunk
        self._decodes, self._prefills = decodes, prefills
        if not decodes and not prefills:
            self._stretch = None  # whoever runs has stalled
            return
        steps_max = 1 if retracted or self._each_step else _STEPS_MAX  # who waits may fit into what was taken back
        self._stretch = self._plan(now, steps_max)

    def _plan(self, now: float, steps_max: int) -> Stretch:
        figures, decodes = self._figures, self._decodes
        seconds = figures.step_s + figures.decode_s * len(decodes)
        if figures.context_s:
            seconds += figures.context_s * sum(sequence.context for sequence in decodes)
        if self._prefills:
            return Stretch(now, 1, seconds + self._prefill_s(), 0.0)
        steps = min(_steps_of(sequence) for sequence in decodes)
        steps = min(steps, (self._free() + self._tree.idle_tokens) // len(decodes), steps_max)
        return Stretch(now, max(1, steps), seconds, figures.context_s * len(decodes))

    def _prefill_s(self) -> float:
        """Return what the prompts add to the step that is about to begin."""
        figures = self._figures
        seconds = sum(tokens for _, tokens in self._prefills) / figures.prefill_tps
        for sequence, tokens in self._prefills:
            if figures.prefill_context_s:
                before = sequence.context - sequence.prefill_left + tokens / 2
                seconds += figures.prefill_context_s * tokens * before
            if not sequence.begun:
                sequence.begun = True
                seconds += figures.request_s
        return seconds

    def _admit(self) -> None:
        reserved = sum(self._reserve(sequence) for sequence in self._running)
        while self._waiting and len(self._running) < self._figures.max_running:
            sequence = self._waiting[0]
            chain = sequence.chain()
            found, protected = self._tree.match(chain)
            own_reserve = self._reserve(sequence)
            # One more token for each: who only just fits would be taken back at once.
            needed = sequence.context - found + own_reserve + len(self._running) + 1
            if self._running and needed + reserved > self._free() + self._tree.idle_tokens - protected:
                return
            reserved += own_reserve
            del self._waiting[0]
            self._start(sequence, chain)

    def _start(self, sequence: Sequence, chain: Chain) -> None:
        sequence.pinned = self._tree.pin(chain)
        sequence.owned = sequence.context - sequence.pinned.tokens
        self._owned += sequence.owned
        self._tree.evict(-self._free())
        # The last token is always computed: what comes after it is the next token of the reply.
        found = min(sequence.pinned.tokens, sequence.context - 1)
        sequence.prefill_left = sequence.context - found
        if sequence.cached_tokens < 0:
            sequence.cached_tokens = found
            self.totals.cached_tokens += found
        self._running.append(sequence)

    def _make_room(self) -> bool:
        """Leave room for one token of each running request, if need be by taking the last in line back; say if it was.

        That is the youngest of the least urgent.
        """
        before = self.totals.retractions
        while len(self._running) > 1 and self._is_short():
            last = max(range(len(self._running)), key=lambda place: (self._order(self._running[place])[0], place))
            taken = self._running.pop(last)
            self._release(taken)
            taken.prefill_left = 0
            taken.begun = False
            taken.number = next(self._retracted)
            insort(self._waiting, taken, key=self._order)
            self.totals.retractions += 1
        return self.totals.retractions > before

    def _is_short(self) -> bool:
        room = self._free() + self._tree.idle_tokens
        if room >= len(self._running):
            return False
        return room < sum(sequence.made < sequence.stop for sequence in self._running)  # who has stalled makes none

    def _share_prompt(self, sequence: Sequence) -> None:
        """The prompt is computed: from now on others may build on it."""
        self._settle(sequence, self._tree.grow(sequence.pinned, sequence.chain()))

    def _keep(self, sequence: Sequence) -> None:
        """Leave the whole conversation in the tree, then let go."""
        self._settle(sequence, self._tree.grow(sequence.pinned, sequence.chain()))
        self._release(sequence)

    def _settle(self, sequence: Sequence, pinned: Pinned) -> None:
        owned = sequence.context - pinned.tokens
        self._owned += owned - sequence.owned
        sequence.owned, sequence.pinned = owned, pinned

    def _release(self, sequence: Sequence) -> None:
        self._tree.unpin(sequence.pinned)
        sequence.pinned = Pinned()
        self._owned -= sequence.owned
        sequence.owned = 0

    def _reserve(self, sequence: Sequence) -> int:
        return int(self._figures.reserve * (sequence.request.reply_tokens_max - sequence.made))

    def _free(self) -> int:
        return self._figures.kv_tokens - self._tree.tokens - self._owned

    def _look_again(self, now: float) -> None:
        """Look at what changed when the step under way ends; at once where none is."""
        stretch = self._stretch
        if stretch is None:
            self._collect()
            self._begin(now)
        elif stretch.steps > 1:
            self._stretch = stretch.cut(stretch.step_end_after(now))


def _steps_of(sequence: Sequence) -> int:
    """Return how many tokens a sequence makes until something of it is to be told."""
    left = sequence.stop - sequence.made
    return min(left, sequence.spoken_of - sequence.made) if sequence.spoken_of > sequence.made else left


def _progress(sequence: Sequence, outcome: Outcome) -> Progress:
    return Progress(sequence.request.key, outcome, sequence.made, sequence.cached_tokens)
