"""Official clients run their tool loops at a real `luftpause up`, and each loop is one run without any header."""

import sys
from dataclasses import replace
from pathlib import Path

import pytest

from clients.case import Case
from clients.cases import PYTHON
from clients.run import tried

pytestmark = pytest.mark.timeout(120)

HERE = Path(sys.prefix)
CASES = [replace(case, folder=HERE.name) for case in PYTHON if case.package in ("openai", "anthropic")]


@pytest.mark.parametrize("case", CASES, ids=[f"{case.name}-{case.wire}" for case in CASES])
def test_a_tool_loop_is_one_run(case: Case) -> None:
    outcome = tried(HERE.parent, case)
    assert outcome.faults == []
    assert (len(outcome.seen.runs), outcome.seen.turns, outcome.seen.calls) == (1, 3, 4)
