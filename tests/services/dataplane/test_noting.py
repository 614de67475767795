"""How a request went on is counted, logged the first time, and told its client where something was left out."""

import logging

import pytest

from luftpause.core.dialects.edits import Edit
from luftpause.core.model.ids import ReplicaId
from luftpause.ports.engines import EngineRequest
from luftpause.services.dataplane.counts import DoorCounts
from luftpause.services.dataplane.forwarding import Forwarded
from luftpause.services.dataplane.headers import LEFT_OUT_HEADER
from luftpause.services.dataplane.noting import note

REQUEST = EngineRequest(method=b"POST", path=b"/", headers=(), body=b"{}")


def test_what_was_changed_is_counted_each_time_and_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    counts, capped = DoorCounts(), Forwarded(request=REQUEST, back=None, edits=(Edit.MAX_TOKENS,), reply_cap=9)
    with caplog.at_level(logging.INFO):
        assert [note(counts, capped, "chat", ReplicaId("a")) for _ in range(2)] == [(), ()]
    assert counts.edits == {Edit.MAX_TOKENS: 2}
    assert [record.message for record in caplog.records] == ["request_edited"]


def test_what_was_left_out_is_told_each_time(caplog: pytest.LogCaptureFixture) -> None:
    counts, forwarded = DoorCounts(), Forwarded(request=REQUEST, back=None, left_out=("web", "mcp"))
    with caplog.at_level(logging.INFO):
        told = [note(counts, forwarded, "responses", ReplicaId("a")) for _ in range(2)]
    assert told == [((LEFT_OUT_HEADER, b"web, mcp"),)] * 2
    assert counts.tools_left_out == {"web": 2, "mcp": 2}
    assert [record.message for record in caplog.records] == ["tools_left_out"]


def test_of_one_that_went_on_as_it_came_nothing_is_kept() -> None:
    counts = DoorCounts()
    assert note(counts, Forwarded(request=REQUEST, back=None), "chat", ReplicaId("a")) == ()
    assert (counts.edits, counts.tools_left_out) == ({}, {})
