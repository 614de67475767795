from luftpause.core.dialects.edits import Edit
from luftpause.core.model.turns import ServiceClass
from luftpause.services.dataplane.counts import GONE, DoorCounts
from luftpause.services.dataplane.metrics import DataplaneMetrics
from luftpause.telemetry.exposition import counts_of, rendered


def test_each_dataplane_counts_for_itself() -> None:
    one, other = DoorCounts(), DoorCounts()

    one.of(ServiceClass.BATCH).answered("200")
    one.of(ServiceClass.BATCH).answered("200")
    one.of(None).answered(GONE)
    one.of(ServiceClass.BATCH).held.add(0.2)
    one.of(ServiceClass.BATCH).first_byte.add(0.3)

    text = rendered(counts_of(DataplaneMetrics(one, lambda: 3))).decode()
    assert 'luftpause_dataplane_requests_total{class="batch",status="200"} 2.0' in text
    assert 'luftpause_dataplane_requests_total{class="",status="gone"} 1.0' in text
    assert 'luftpause_dataplane_held_seconds_sum{class="batch"} 0.2' in text
    assert 'luftpause_dataplane_first_byte_seconds_sum{class="batch"} 0.3' in text
    assert "luftpause_dataplane_open_turns 3.0" in text
    assert 'status="200"' not in rendered(counts_of(DataplaneMetrics(other, lambda: 0))).decode()


def test_what_is_left_out_is_counted_and_new_once() -> None:
    counts = DoorCounts()

    assert counts.left_out(["web_search"])
    assert not counts.left_out(["web_search"])
    assert counts.left_out(["web_search", "mcp"])

    text = rendered(counts_of(DataplaneMetrics(counts, lambda: 0))).decode()
    assert 'luftpause_dataplane_tools_left_out_total{tool="web_search"} 3.0' in text
    assert 'luftpause_dataplane_tools_left_out_total{tool="mcp"} 1.0' in text


def test_what_is_changed_in_a_request_is_counted_by_member() -> None:
    counts = DoorCounts()
    counts.edited([Edit.STREAM, Edit.INCLUDE_USAGE])
    counts.edited([Edit.STREAM])

    text = rendered(counts_of(DataplaneMetrics(counts, lambda: 0))).decode()
    assert 'luftpause_dataplane_edits_total{member="stream"} 2.0' in text
    assert 'luftpause_dataplane_edits_total{member="stream_options.include_usage"} 1.0' in text
