import pytest

from luftpause.core.model.ids import RunId, ToolCallId
from luftpause.core.runs.call_keys import key_of, run_in


@pytest.mark.parametrize("call", ["c1", "", "a/b", "x" * 999])
def test_a_key_says_which_run_is_calling(call: str) -> None:
    assert run_in(key_of(RunId("run_1"), 3, ToolCallId(call))) == RunId("run_1")


@pytest.mark.parametrize("other", ["", "run_1", "/1/c1", "order 5"])
def test_a_key_of_somebody_else_names_no_run(other: str) -> None:
    assert run_in(other) is None
