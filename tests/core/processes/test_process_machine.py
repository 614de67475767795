"""Any order of events: the machine stays in a state that can be, and a simple account of it agrees."""

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from luftpause.core.model.ids import Instant
from luftpause.core.processes.actions import (
    Deregister,
    ProbeProcess,
    Register,
    ReportFailure,
    ReportStopped,
    SignalProcess,
    StartProcess,
    StopSignal,
)
from luftpause.core.processes.decide import decide, next_deadline
from luftpause.core.processes.events import (
    Event,
    ProbeFailed,
    ProbeSucceeded,
    ProcessExited,
    ProcessStarted,
    ProgressSeen,
    StartRequested,
    StopRequested,
    WokeUp,
)
from luftpause.core.processes.invariants import check
from luftpause.core.processes.state import Exited, Limits, Ready, never_started

LIMITS = Limits(readiness_timeout_s=10.0, stop_grace_s=3.0, probe_period_s=1.0, silent_s=6.0)


class EngineLife(RuleBasedStateMachine):
    """A world with one engine: it performs the actions and remembers only what it sees of them."""

    def __init__(self) -> None:
        super().__init__()
        self.now = 0.0
        self.state = never_started(LIMITS, Instant(0.0))
        self.spawning: int | None = None
        self.alive: int | None = None
        self.probing: list[int] = []
        self.declared = False
        self.wanted = False
        self.starts_since_ready = 0
        self.termed_at: float | None = None

    def tell(self, event: Event) -> None:
        decision = decide(self.state, event, Instant(self.now))
        again = decide(self.state, event, Instant(self.now))
        assert decision == again, "the same event in the same state decides the same"
        self.state = decision.state
        for action in decision.actions:
            match action:
                case StartProcess(attempt=attempt):
                    assert self.spawning is None, "two spawns of one engine"
                    assert self.alive is None, "two processes of one engine"
                    assert self.wanted, "a stopped engine came back"
                    self.starts_since_ready += 1
                    assert self.starts_since_ready <= 4, "more than three restarts in a row"
                    self.spawning = attempt
                    self.termed_at = None
                case ProbeProcess(attempt=attempt):
                    assert attempt == self.alive
                    assert attempt not in self.probing, "two probes at once"
                    self.probing.append(attempt)
                case SignalProcess(attempt=attempt, signal=signal):
                    assert attempt == self.alive, "signalled what does not run"
                    if signal is StopSignal.TERM:
                        assert self.termed_at is None, "asked twice"
                        self.termed_at = self.now
                    else:
                        assert self.termed_at is not None, "killed without being asked"
                        assert self.now >= self.termed_at + LIMITS.stop_grace_s, "killed within the grace"
                case Register(attempt=attempt):
                    assert attempt == self.alive
                    self.declared = True
                case Deregister():
                    assert self.declared, "took away what was not declared"
                    self.declared = False
                case ReportFailure():
                    assert self.alive is None
                case ReportStopped():
                    assert self.alive is None
                    assert self.spawning is None
                    assert not self.declared
                    assert not self.wanted

    @rule(seconds=st.sampled_from((0.0, 0.5, 1.0, 2.0, 3.0, 11.0)))
    def time_passes(self, seconds: float) -> None:
        self.now += seconds
        self.tell(WokeUp())

    @rule()
    def the_next_deadline_passes(self) -> None:
        deadline = next_deadline(self.state)
        if deadline is not None:
            self.now = max(self.now, deadline)
            self.tell(WokeUp())

    @rule()
    def someone_starts_it(self) -> None:
        running = self.alive is not None or self.spawning is not None
        if not running:
            self.wanted = True
            if isinstance(self.state.phase, Exited):
                self.starts_since_ready = 0
        self.tell(StartRequested())

    @rule()
    def someone_stops_it(self) -> None:
        self.wanted = False
        self.tell(StopRequested())

    @precondition(lambda self: self.spawning is not None)
    @rule(works=st.booleans())
    def the_spawn_ends(self, works: bool) -> None:
        attempt, self.spawning = self.spawning, None
        assert attempt is not None
        if works:
            self.alive = attempt
            self.tell(ProcessStarted(attempt=attempt))
        else:
            self.tell(ProcessExited(attempt=attempt, code=None, tail=("missing",)))

    @precondition(lambda self: self.alive is not None)
    @rule(code=st.sampled_from((0, 1, -9)))
    def the_process_ends(self, code: int) -> None:
        attempt, self.alive = self.alive, None
        assert attempt is not None
        self.tell(ProcessExited(attempt=attempt, code=code, tail=()))

    @precondition(lambda self: self.alive is not None)
    @rule()
    def its_load_gets_further(self) -> None:
        assert self.alive is not None
        self.tell(ProgressSeen(attempt=self.alive))

    @precondition(lambda self: self.probing)
    @rule(answered=st.booleans(), worked_s=st.sampled_from((None, 1.0, 5.0)))
    def a_probe_ends(self, answered: bool, worked_s: float | None) -> None:
        attempt = self.probing.pop(0)
        if answered and attempt == self.alive:
            self.tell(ProbeSucceeded(attempt=attempt))
        else:
            self.tell(ProbeFailed(attempt=attempt, worked_s=worked_s))
        if isinstance(self.state.phase, Ready):
            self.starts_since_ready = 0

    @invariant()
    def its_state_is_one_that_can_be(self) -> None:
        check(self.state)
        assert self.state.registered == self.declared

    @invariant()
    def it_never_waits_for_nothing(self) -> None:
        settled = isinstance(self.state.phase, Exited | Ready)
        pending = self.spawning is not None or self.alive is not None
        assert settled or pending or next_deadline(self.state) is not None

    def teardown(self) -> None:
        """Once stopped, and with a process that obeys SIGKILL at the latest, it always comes to its end."""
        self.someone_stops_it()
        if self.spawning is not None:
            self.the_spawn_ends(works=True)
        if self.alive is not None:
            self.the_next_deadline_passes()
            self.the_process_ends(code=-9)
        assert isinstance(self.state.phase, Exited)
        assert not self.declared


EngineLife.TestCase.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)
TestEngineLife = EngineLife.TestCase
