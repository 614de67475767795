"""The event log on disk: what is kept, what is dropped, what is capped."""

import logging
import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from adapters.event_log.logs import event_log, write
from core.scheduling.builders import arrived
from luftpause.adapters.event_log.lines import End, Entry, Gap, Segment, line_in
from luftpause.adapters.event_log.replaying import replay
from luftpause.core.model.ids import Instant
from luftpause.core.scheduling.decide import decide
from luftpause.core.scheduling.state import Limits, empty_state

LENGTH = 800


def replayed(path: Path) -> tuple[int, int]:
    with path.open("rb") as lines:
        seen = replay(lines)
    return seen.segments, seen.events


def test_every_event_is_written_and_decided_the_same_again(tmp_path: Path) -> None:
    write(event_log(tmp_path / "log"), seed=3, length=LENGTH)
    with (tmp_path / "log").open("rb") as lines:
        seen = replay(lines)
    assert (seen.segments, seen.events, seen.dropped, seen.torn) == (1, LENGTH + 4, 0, 0)
    assert seen.digests > LENGTH / 2, "a small state is compared after nearly every event"
    assert seen.placed == len(seen.held_s) > 0


def test_a_scheduler_started_again_goes_on_in_the_same_file_even_after_a_torn_line(tmp_path: Path) -> None:
    path = tmp_path / "log"
    write(event_log(path), seed=1, length=50)
    with path.open("ab") as torn:
        torn.write(b'{"line":"event","now":1.0,"ki')
    write(event_log(path), seed=2, length=60)
    with path.open("rb") as lines:
        seen = replay(lines)
    assert (seen.segments, seen.events, seen.torn) == (2, 118, 1)


def test_a_full_file_makes_way_and_both_can_be_replayed(tmp_path: Path) -> None:
    path = tmp_path / "log"
    write(event_log(path, bytes_max=200_000), seed=5, length=LENGTH)
    old = tmp_path / "log.1"
    assert old.stat().st_size + path.stat().st_size < 220_000
    assert replayed(old)[1] + replayed(path)[1] <= LENGTH + 4
    assert replayed(path)[0] == 1
    write(event_log(path, bytes_max=2), seed=6, length=1)
    assert replayed(path)[1] == 1, "each event in a file of its own"


def test_what_the_disk_cannot_keep_up_with_is_dropped_and_counted_and_never_waited_for(tmp_path: Path) -> None:
    path = tmp_path / "pipe"
    os.mkfifo(path)
    reader = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    log = event_log(path, waiting_max=10)
    state = empty_state(Limits())
    log.start(state, Instant(0.0))
    told = 3000
    for number in range(told):  # far more than a pipe takes that nobody reads
        event, now = arrived(f"t{number}", model="nope"), Instant(float(number))
        log.decided(state, event, now, decide(state, event, now))
    os.set_blocking(reader, True)
    with os.fdopen(reader, "rb") as pipe, ThreadPoolExecutor(1) as aside:
        text = aside.submit(pipe.read)
        log.close()
        lines = [line_in(line) for line in text.result(30).splitlines()]
    assert isinstance(lines[0], Segment)
    assert 0 < sum(isinstance(line, Entry) for line in lines) < told


def test_a_gap_is_told_and_followed_by_a_segment(tmp_path: Path) -> None:
    path = tmp_path / "log"
    log = event_log(path, waiting_max=0)
    state = empty_state(Limits())
    log.start(state, Instant(0.0))
    for number in range(3):
        event = arrived(f"t{number}", model="nope")
        log.decided(state, event, Instant(1.0), decide(state, event, Instant(1.0)))
    log.waiting_max = 10
    event = arrived("kept", model="nope")
    log.decided(state, event, Instant(2.0), decide(state, event, Instant(2.0)))
    log.close()
    lines = [line_in(line) for line in path.read_bytes().splitlines()]
    assert [type(line) for line in lines] == [Segment, Gap, Segment, Entry, End]
    assert lines[1] == Gap(3)
    with path.open("rb") as text:
        seen = replay(text)
    assert (seen.dropped, seen.events, seen.refused) == (3, 1, 1)


def test_a_disk_that_is_full_or_in_the_way_ends_the_log_and_nothing_else(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    if not Path("/dev/full").exists():
        pytest.skip("needs a device that is always full")
    path = tmp_path / "log"
    path.symlink_to("/dev/full")
    with pytest.raises(OSError, match="space"):
        event_log(path).start(empty_state(Limits()), Instant(0.0))
    path.unlink()
    log = event_log(path, bytes_max=2)
    state = empty_state(Limits())
    log.start(state, Instant(0.0))
    (tmp_path / "log.1").mkdir()  # nothing can take its place, so the file cannot make way
    with caplog.at_level(logging.ERROR, logger="luftpause.event_log"):
        for number in range(3):
            event = arrived(f"t{number}", model="nope")
            log.decided(state, event, Instant(1.0), decide(state, event, Instant(1.0)))
        log.close()
    assert [record.message for record in caplog.records] == ["event_log_failed"]


def test_a_file_that_cannot_be_opened_is_an_error_at_once(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="No such file"):
        event_log(tmp_path / "nowhere" / "log").start(empty_state(Limits()), Instant(0.0))
