"""What is true of every state that can be reached, for tests and simulation."""

from luftpause.core.processes.reasons import EndReason, StopReason
from luftpause.core.processes.state import BackingOff, EngineProcess, Exited, Ready, Starting, Stopping


def check(state: EngineProcess) -> None:
    """Assert that the state is one of those that can be.

    Raises:
        AssertionError: it is not; the message names the broken rule.
    """
    restarts_max = len(state.limits.backoff_s)
    assert state.attempt >= 0, "attempts are counted from 1"
    assert 0 <= state.failures <= restarts_max + 1, "one failure more than restarts ends it"
    match state.phase:
        case Exited(why=why, failure=failure):
            assert not state.registered, "a replica without an engine stays declared"
            assert (failure is not None) == (why is EndReason.GAVE_UP), "only what was given up has a failure"
            assert (state.attempt == 0) == (why is EndReason.NEVER_STARTED), "a start leaves its number behind"
        case Starting(spawned=spawned, probe_at=probe_at):
            assert spawned or probe_at is None, "nothing to probe before the process exists"
        case Ready():
            assert state.registered, "a ready engine is declared"
            assert state.failures == 0, "readiness clears the failures"
        case Stopping(why=why, spawned=spawned, kill_at=kill_at):
            assert spawned or kill_at is None, "nothing to kill before the process exists"
            assert not (state.registered and why is StopReason.REQUESTED), "no turn may go to what is being stopped"
        case BackingOff(since=since, until=until):
            assert 1 <= state.failures <= restarts_max, "a pause follows a failure that may be retried"
            assert since <= until, "a pause ends after it began"
