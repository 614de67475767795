"""What the scheduler service can be told at its start, every value with its default."""

from dataclasses import dataclass, field

from luftpause.core.scheduling.routing import Routing
from luftpause.core.scheduling.state import Limits


@dataclass(frozen=True, slots=True, kw_only=True)
class SchedulerSettings:
    """Periods and timeouts, seconds.

    Attributes:
        policy: the name under which the policy is shown.
        routing: where turns of unknown models go.
        limits: when turns and runs expire.
        tool_call_memory_s: how long a run is recognised by the tool-call ids that its turns ended in.
        probe_period_s: from one probe of a replica to the next; admission follows an engine's load with this delay.
        probe_timeout_s: the longest that one request of a probe may take.
        probe_eager_s: from one probe to the next until a new replica is healthy for the first time.
        not_ready_warning_s: a new replica that is not healthy by then is warned about, once.
    """

    policy: str = "turn-admission"
    limits: Limits = field(default_factory=Limits)
    routing: Routing = field(default_factory=Routing)
    tool_call_memory_s: float = 1800.0
    probe_period_s: float = 2.0
    probe_timeout_s: float = 2.0
    probe_eager_s: float = 0.25
    not_ready_warning_s: float = 5.0
