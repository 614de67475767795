"""Where something was measured."""

import pytest

from luftpause.testkit.bench.machine import commit, describe_machine, machine_line, now


def test_a_machine_is_told_in_one_line() -> None:
    line = machine_line(describe_machine())
    assert "cores" in line
    assert "\n" not in line
    assert now().endswith("+00:00")


def test_outside_a_checkout_nobody_knows_the_commit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shutil.which", lambda _: None)
    assert commit() == "unknown"
