"""Tool calls that wait for a person: who asks, and what was answered."""

from luftpause.core.model.ids import PrincipalId, RunId, ToolCallId
from luftpause.core.runs.approvals import pending_calls
from luftpause.core.runs.events import ApprovalDecided, ApprovalScope
from luftpause.core.runs.go_on import ended_by_others
from luftpause.services.runtime.ledger import Ledger
from luftpause.services.runtime.lives import Lives
from luftpause.services.runtime.waits import Waits


class Approvals:
    """Takes decisions, and sees to it that one waiter at a time asks the person."""

    def __init__(self, ledger: Ledger, lives: Lives, waits: Waits) -> None:
        self._ledger = ledger
        self._lives = lives
        self._waits = waits
        self._claims: set[tuple[RunId, ToolCallId]] = set()

    async def approve(
        self,
        principal: PrincipalId | None,
        handle: str,
        call: ToolCallId | None,
        *,
        allow: bool,
        by: str,
        scope: ApprovalScope = ApprovalScope.ONCE,
    ) -> bool:
        """Decide on a call of a run that waits, with None on the first one; return False if nothing was waiting.

        Once it returns the decision is durable and the run's view shows it. Without a principal, of anybody's run.

        Raises:
            UnknownHandleError: the principal has no such run.
            NotKeptError: it could not be recorded, so the call does not go.
        """
        run = self._ledger.find(principal, handle)
        waiting = [pending.asked.call for pending in pending_calls(self._ledger.state, run)]
        chosen = waiting[0] if call is None and waiting else call
        # What is about to end takes no decision any more, though its end is not on record yet.
        if chosen not in waiting or ended_by_others(self._ledger.state, run, self._ledger.now(run.tree)):
            return False
        name = run.spawn.run
        decided = ApprovalDecided(run=name, call=chosen, allow=allow, by=by, scope=scope)
        effective = await self._lives.tell(run.tree, decided)
        self._claims.discard((name, chosen))
        return effective

    def claim(self, principal: PrincipalId, handle: str, call: ToolCallId) -> bool:
        """Return whether whoever calls is the one to ask the person about this waiting call.

        Hold the claim until it was answered, else `release` it: waiters with `or_approval` are woken then.

        Raises:
            UnknownHandleError: the principal has no such run.
        """
        run = self._ledger.find(principal, handle)
        if call not in self.unclaimed(run.spawn.run):
            return False
        self._claims.add((run.spawn.run, call))
        return True

    def release(self, principal: PrincipalId, handle: str, call: ToolCallId) -> None:
        """Give up asking about a call; one that was decided meanwhile needs nothing.

        Raises:
            UnknownHandleError: the principal has no such run.
        """
        run = self._ledger.find(principal, handle).spawn.run
        self._claims.discard((run, call))
        self._waits.ring(run)

    def unclaimed(self, run: RunId) -> tuple[ToolCallId, ...]:
        """Return the waiting calls of a run that nobody asks about yet."""
        known = self._ledger.state.runs.get(run)
        pending = () if known is None else pending_calls(self._ledger.state, known)
        return tuple(each.asked.call for each in pending if (run, each.asked.call) not in self._claims)
