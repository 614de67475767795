"""What a worker is held by; its life is told in `test_foreman`."""

from luftpause.adapters.crew.worker import WorkerPlan
from luftpause.core.processes.state import Limits


def test_a_plan_does_not_show_the_tokens_in_its_order() -> None:
    limits = Limits(readiness_timeout_s=1, stop_grace_s=1)
    assert "secret" not in repr(WorkerPlan(number=1, command=("x",), order=b"secret", limits=limits))
