"""Proving the state sound after every event."""

import logging

import pytest

from core.scheduling.builders import probed, spec
from luftpause.core.model.ids import Instant
from luftpause.core.scheduling.decide import decide
from luftpause.core.scheduling.events import ReplicaAdded
from luftpause.core.scheduling.state import Decision, Limits, empty_state
from luftpause.services.scheduler.validating import Validator


def test_only_an_unsound_state_is_logged_with_what_led_to_it(caplog: pytest.LogCaptureFixture) -> None:
    before = empty_state(Limits())
    event = ReplicaAdded(spec=spec("a"))
    decision = decide(before, event, Instant(1.0))
    validator = Validator()
    with caplog.at_level(logging.ERROR, logger="luftpause.scheduler"):
        validator.decided(before, event, Instant(1.0), decision)
        validator.decided(decision.state, probed("x"), Instant(2.0), decide(decision.state, probed("x"), Instant(2.0)))
        assert not caplog.records
        unsound = Decision(state=decision.state._replace(serving=before.serving), actions=())
        validator.decided(before, event, Instant(3.0), unsound)
    (record,) = caplog.records
    assert (record.message, vars(record)["event_kind"]) == ("state_unsound", "ReplicaAdded")
    assert "replicas by what they serve" in vars(record)["cause"]
