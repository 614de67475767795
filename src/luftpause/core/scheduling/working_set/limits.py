"""What an operator may set of policy `working-set`, and what a bench may take away from it, piece by piece."""

from dataclasses import dataclass

from luftpause.core.scheduling.working_set.weights import EVEN, Weights


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkingSetLimits:
    """The policy's parameters. Every switch takes one piece away, so that its worth can be measured.

    Attributes:
        gate: new runs start only where their tokens fit.
        fill: share of a replica's memory that batch runs may fill; the rest is for what runs grow by.
        fill_interactive: the same for interactive runs.
        first_tokens: so many turns of a replica may wait for their first token; 0 for any number.
        forget: a paused run's place is kept only while that pays; else as long as it is paused.
        interactive_weight: how much more an interactive run's return to its place is worth than a batch run's.
        learn: a replica's memory is learned from what it finds in its cache.
        by_service: callers are served in order of what they had, in tokens; else by their turns in flight.
        weights: whose service counts for less or more than others'.
        trees: runs stand where their tree stands, see `trees.py`.
        guests: others make way for who has little in flight beside them, see `guests.py`.
        fill_beside: share of a replica's memory that is filled where a guest is at work, if anybody else is.
        claim: the first in line that fits nowhere closes a replica to those behind it.
        placement: who begins goes where it waits least, a saved prefill counted, and most is free; else where fewest
            turns are in flight.
        moves: who waits at home for longer than its prefill elsewhere takes may begin elsewhere.
        recalls: so often a batch turn without a first token may be taken back for an interactive one; 0 for never.
        agent_replies: an answer is charged as the longer ones of its agent; else as the mean of its model.
        corrections: an answer that becomes longer than its charge is charged with more while it is made.
        reply_caps: where a request says nothing of it, its engine is told how long its answer may become at most.
        native_priority: engines that take priorities are told them; a client's own counts for nothing.
    """

    gate: bool = True
    fill: float = 0.75
    fill_interactive: float = 0.85
    first_tokens: int = 3
    forget: bool = True
    interactive_weight: float = 4.0
    learn: bool = True
    by_service: bool = True
    weights: Weights = EVEN
    trees: bool = True
    guests: bool = True
    fill_beside: float = 0.5
    claim: bool = True
    placement: bool = True
    moves: bool = True
    recalls: int = 1
    native_priority: bool = True
    agent_replies: bool = True
    corrections: bool = True
    reply_caps: bool = False
