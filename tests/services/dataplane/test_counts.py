from luftpause.core.dialects.edits import Edit
from luftpause.core.model.turns import ServiceClass
from luftpause.services.dataplane.counts import GONE, DoorCounts


def test_requests_are_counted_by_class_and_status() -> None:
    counts = DoorCounts()
    for status in ("200", "200", "503"):
        counts.of(ServiceClass.BATCH).answered(status)
    counts.of(None).answered(GONE)

    assert {kind: each.statuses for kind, each in counts.by_class.items() if each.statuses} == {
        ServiceClass.BATCH: {"200": 2, "503": 1},
        None: {GONE: 1},
    }


def test_a_tool_is_new_once() -> None:
    counts = DoorCounts()

    assert [counts.left_out(tools) for tools in (["web"], ["web"], ["web", "mcp"], [])] == [True, False, True, False]
    assert counts.tools_left_out == {"web": 3, "mcp": 1}


def test_a_change_to_a_request_is_new_once() -> None:
    counts = DoorCounts()

    assert [counts.edited(edits) for edits in ([Edit.MODEL], [Edit.MODEL], [Edit.MODEL, Edit.ID_SLOT], [])] == [
        True,
        False,
        True,
        False,
    ]
    assert counts.edits == {Edit.MODEL: 3, Edit.ID_SLOT: 1}
