"""Deciding again what a log says was decided."""

import os
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from adapters.event_log.logs import event_log, resealed, write
from luftpause.adapters.event_log.replaying import DifferenceError, replay
from luftpause.core.scheduling.invariants import check
from luftpause.core.scheduling.state import State

TESTS = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def lines(tmp_path_factory: pytest.TempPathFactory) -> list[bytes]:
    path = tmp_path_factory.mktemp("logs") / "log"
    write(event_log(path), seed=11, length=300)
    return path.read_bytes().splitlines(keepends=True)[:-1]


def changed(line: bytes, **fields: object) -> bytes:
    return msgspec.json.encode({**msgspec.json.decode(line), **fields}) + b"\n"


def test_a_log_replays_under_any_hash_seed(lines: list[bytes], tmp_path: Path) -> None:
    file = tmp_path / "log"
    file.write_bytes(b"".join(lines))
    for seed in ("1", "2"):
        told = subprocess.run(
            [sys.executable, "-m", "adapters.event_log.logs", str(file)],
            env={**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": str(TESTS)},
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert (told.stdout, told.stderr) == (f"{len(lines) - 1}", "")


def test_other_orders_are_a_difference(lines: list[bytes]) -> None:
    position = next(number for number, line in enumerate(lines) if b"PlaceTurn" in line)
    wrong = changed(lines[position], orders=[])
    with pytest.raises(DifferenceError, match=f"line {position + 1}: .* led to .* and now to"):
        replay(resealed([*lines[:position], wrong, *lines[position + 1 :]]))


def test_another_state_is_a_difference_although_the_orders_are_the_same(lines: list[bytes]) -> None:
    wrong = changed(lines[1], digest="0123456789abcdef")
    with pytest.raises(DifferenceError, match="line 2: ReplicaAdded led to state 0123456789abcdef, and now to"):
        replay(resealed([lines[0], wrong]))


def test_a_missing_event_is_a_difference_at_the_next_one(lines: list[bytes]) -> None:
    with pytest.raises(DifferenceError, match="line 2: ReplicaAdded led to"):
        replay(resealed([lines[0], *lines[2:]]))


def test_an_unsound_state_is_a_difference_when_states_are_proved(lines: list[bytes]) -> None:
    assert replay(lines, check).events == len(lines) - 1

    def unsound(_: State) -> None:
        raise AssertionError("odd")

    with pytest.raises(DifferenceError, match="line 2: ReplicaAdded led to an unsound state: odd"):
        replay(lines, unsound)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ([], "no segment"),
        ([b"hello\n", b"hello\n"], "line 1"),
        ([b'{"line":"gap","dropped":1}\n'], "is missing"),
    ],
)
def test_what_is_no_log_is_said_to_be_none(text: list[bytes], message: str) -> None:
    with pytest.raises(DifferenceError, match=message):
        replay(text)


def test_what_stands_at_the_wrong_place_is_told(lines: list[bytes]) -> None:
    with pytest.raises(DifferenceError, match="line 1: an event without a state"):
        replay(resealed(lines[1:]))
    with pytest.raises(DifferenceError, match="line 2"):
        replay([lines[0], b"torn\n", *lines[1:]])
    with pytest.raises(DifferenceError, match="format 1"):
        replay([changed(lines[0], format=1), *lines[1:]])
    with pytest.raises(DifferenceError, match="line 1: the segment's state"):
        replay(resealed([changed(lines[0], state=[1]), *lines[1:]]))
    with pytest.raises(DifferenceError, match="unknown event 'Odd'"):
        replay(resealed([lines[0], changed(lines[1], kind="Odd")]))
    with pytest.raises(DifferenceError, match="line 2: WokeUp"):
        replay(resealed([lines[0], changed(lines[1], kind="WokeUp", event=1)]))
