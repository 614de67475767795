"""What policy `working-set` knows, as values: what each replica's memory is charged with, and how long texts are.

Nothing here decides. `draft.py` is the only writer, `soundness.py` proves that it equals a scan of the facts.
"""

from typing import Final, NamedTuple

from immutables import Map

from luftpause.core.model.ids import Instant, ModelName, ReplicaId, RunId, ToolName, TurnId
from luftpause.core.scheduling.wheel import Wheel
from luftpause.core.scheduling.working_set.askers import Asked, Asker
from luftpause.core.scheduling.working_set.replies import Agent, Replies

LEASE_STEP_S: Final = 0.125
"""A place is kept at most this much too long."""


class Awaiting(NamedTuple):
    """A turn in flight without a first token.

    Attributes:
        tokens: that it is expected to prefill.
        until: by then it is taken to be under way all the same: not every answer tells of its first token.
    """

    turn: TurnId
    tokens: int
    until: Instant


class Seat(NamedTuple):
    """A replica's memory, in tokens.

    Attributes:
        in_flight: of the turns in flight, prompts and expected replies.
        kept: contexts of runs that are out on a tool and expected back.
        awaiting: turns in flight without a first token, in order of placement.
        claimed_by: the held turn that the replica is closed for until it fits: no other run begins here meanwhile.
        pool: what its engine says that it has; None where it does not say.
        window: what it bears, as far as it was learned; None while nothing speaks against more.
        window_heard: the same when its engine last told of itself, in the life that it is in as far as we know.
        hits: of what runs expected to find in its cache, the share that they found lately.
        speed: tokens that it prefills in a second.
        excess_s: how much longer first tokens took lately than their prefill: its engine's queue.
        shrunk_at: when its window was made smaller last.
        preemptions: as its engine counted them last.
        guests: tokens in flight of interactive turns that others make way for.
        batch_guests: the same of batch turns.
        overfilled_at: when last more was in flight and kept than it bears: what was kept until then may be gone since.
        turn: tokens of an answered turn, prompt and answer, lately: what others' requests are taken to need.
    """

    in_flight: int = 0
    kept: int = 0
    awaiting: tuple[Awaiting, ...] = ()
    claimed_by: TurnId | None = None
    pool: int | None = None
    window: int | None = None
    window_heard: int | None = None
    hits: float = 1.0
    speed: float = 0.0
    excess_s: float = 0.0
    shrunk_at: Instant | None = None
    preemptions: int | None = None
    guests: int = 0
    batch_guests: int = 0
    turn: float = 0.0
    overfilled_at: Instant | None = None

    @property
    def charged(self) -> int:
        """Tokens that are spoken for."""
        return self.in_flight + self.kept

    @property
    def capacity(self) -> int | None:
        """Tokens that it bears; None where nobody knows."""
        if self.pool is None or (self.window is not None and self.window < self.pool):
            return self.window
        return self.pool


class Lengths(NamedTuple):
    """How long the texts of one model are.

    Attributes:
        bytes_per_token: of a request's body, for one token of its prompt.
        reply: tokens of an answer.
        streamed: share of answers whose first token was told before their end.
    """

    bytes_per_token: float = 4.0
    reply: float = 200.0
    streamed: float = 1.0


class Measure(NamedTuple):
    """What a run's last answered turn came to.

    Attributes:
        text_bytes: of its request, without pictures; those came to about `pictures` tokens.
        prompt: tokens of it.
        context: tokens of prompt and answer: what its replica may have in its cache.
    """

    text_bytes: int = 0
    prompt: int = 0
    context: int = 0
    pictures: int = 0


class Patience(NamedTuple):
    """How long runs are waited for that are out alike and whose return is worth about as much.

    Attributes:
        returned: how often runs had come back from it when that was found out; of an asker how many answers it had had.
        worth_s: what a return was worth then.
        seconds: how long.
    """

    returned: int
    worth_s: float
    seconds: float


class WorkingSet(NamedTuple):
    """What is known beside replicas and runs.

    Attributes:
        lengths: of each model's texts.
        patience: of each tool and step of worth, as it was found out last; empty stands for a tool that nobody knows.
        leases: when to look at a run whose place is kept.
        silences: when to look at a replica that as many turns await their first token of as may.
        replies: of each agent that had some.
        askers: what is known of them; `after_answers` is their patience, as `patience` is that of tools.
    """

    leases: Wheel[tuple[RunId, ModelName]]
    silences: Wheel[ReplicaId]
    lengths: Map[ModelName, Lengths] = Map()
    patience: Map[tuple[ToolName, int], Patience] = Map()
    replies: Map[Agent, Replies] = Map()
    askers: Map[Asker, Asked] = Map()
    after_answers: Map[tuple[Asker, int], Patience] = Map()

    def next_at(self) -> Instant | None:
        """Return when to look at something next; None when there is nothing to look at."""
        leases_at, silences_at = self.leases.next_at(), self.silences.next_at()
        if leases_at is None or (silences_at is not None and silences_at < leases_at):
            return silences_at
        return leases_at

    def without(self, part: tuple[RunId, ModelName]) -> "WorkingSet":
        """Return the rest when a run is forgotten."""
        leases = self.leases.drop(part)
        return self if leases is self.leases else self._replace(leases=leases)
