import pytest

from core.runs.run_builders import NOW, after, said, spawned
from luftpause.core.model.ids import RunId
from luftpause.core.runs.events import Event, RunCancelled, RunFailed, RunFinished
from luftpause.core.runs.view import RunStatus, view

R = RunId("r")


@pytest.mark.parametrize(
    ("events", "status", "phase", "result", "error"),
    [
        ((), RunStatus.RUNNING, "generating", None, None),
        ((said("", "c1"),), RunStatus.RUNNING, "calling_tools", None, None),
        ((said("42"),), RunStatus.RUNNING, "concluding", None, None),
        ((RunFinished(run=R, result="42"),), RunStatus.FINISHED, "over", "42", None),
        ((RunFailed(run=R, error="gone"),), RunStatus.FAILED, "over", None, "gone"),
        (
            (RunCancelled(run=R, why="on request"),),
            RunStatus.CANCELLED,
            "over",
            None,
            "on request",
        ),
    ],
)
def test_a_run_is_shown_as_it_stands(
    events: tuple[Event, ...], status: RunStatus, phase: str, result: str | None, error: str | None
) -> None:
    shown = view(after(spawned(), *events).state, R, NOW)
    assert (shown.status, shown.phase, shown.result, shown.error) == (status, phase, result, error)


def test_an_unknown_run_has_no_view() -> None:
    with pytest.raises(KeyError):
        view(after().state, R, NOW)
