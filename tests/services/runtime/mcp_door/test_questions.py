from dataclasses import replace

import pytest

from luftpause.core.model.ids import ANONYMOUS_CALLER, ANONYMOUS_PRINCIPAL, ModelName, RunId, ToolCallId
from luftpause.core.model.turns import ServiceClass
from luftpause.core.runs.events import RunSpawned
from luftpause.core.runs.state import Totals
from luftpause.core.runs.view import PendingApproval, RunStatus, RunView
from luftpause.services.runtime.mcp_door.questions import ARGUMENTS_SHOWN_MAX, FORM, allows, questions_of

PENDING = PendingApproval(call=ToolCallId("c1"), tool="delete", arguments='{"path": "/x"}', reason="it destroys")
VIEW = RunView(
    spawn=RunSpawned(
        run=RunId("run_1"),
        task="clean up",
        model=ModelName("m"),
        service_class=ServiceClass.BATCH,
        caller=ANONYMOUS_CALLER,
        principal=ANONYMOUS_PRINCIPAL,
    ),
    tree=RunId("run_1"),
    status=RunStatus.AWAITING_APPROVAL,
    phase="calling_tools",
    model=ModelName("m"),
    result=None,
    structured=None,
    error=None,
    children=(),
    own=Totals(turns=3),
    subtree=Totals(turns=3),
    pending_approvals=(PENDING, replace(PENDING, call=ToolCallId("c2"))),
    budget=None,
    origin_run=None,
)


def test_a_key_names_run_turn_and_call_so_that_none_comes_twice() -> None:
    later = replace(VIEW, own=Totals(turns=4))
    keys = [question.key for question in questions_of([VIEW, later])]
    assert keys == ["run_1/3/c1", "run_1/3/c2", "run_1/4/c1", "run_1/4/c2"]


def test_a_question_says_what_would_be_called_with_what_and_why() -> None:
    first = questions_of([VIEW])[0]
    assert first.text == (
        'A sub-agent wants to call delete with {"path": "/x"}\nYou are asked because it destroys.\nIts task: clean up'
    )
    request = first.as_request().model_dump(by_alias=True, mode="json", exclude_none=True)
    assert request["params"]["requestedSchema"] == FORM
    assert FORM["required"] == ["allow"]


def test_long_arguments_are_cut_and_their_length_is_told() -> None:
    long = replace(VIEW, pending_approvals=(replace(PENDING, arguments="x" * 100_000),))
    text = questions_of([long])[0].text
    assert len(text) < ARGUMENTS_SHOWN_MAX + 300
    assert "(100000 characters)" in text


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        ({"action": "accept", "content": {"allow": True}}, True),
        ({"action": "accept", "content": {"allow": False}}, False),
        ({"action": "accept", "content": {"allow": "yes"}}, False),
        ({"action": "accept", "content": {"allow": 1}}, False),
        ({"action": "accept"}, False),
        ({"action": "decline", "content": {"allow": True}}, False),
        ({"action": "cancel"}, False),
        ({}, False),
    ],
)
def test_only_a_clear_yes_allows(answer: dict[str, object], expected: bool) -> None:
    assert allows(answer) is expected
