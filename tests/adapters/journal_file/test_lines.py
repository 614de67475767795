import dataclasses
import json
import zlib
from typing import get_args

import pytest

from adapters.journal_file.journal_world import AT, EVERY_EVENT, R, condensed, finished, spawned
from luftpause.adapters.journal_file import lines
from luftpause.adapters.journal_file.checksums import BrokenLineError
from luftpause.adapters.journal_file.lines import (
    NewerVersionError,
    Piece,
    Record,
    decode,
    encode,
    is_condensed,
)
from luftpause.core.runs.condensing import RunCondensed
from luftpause.core.runs.events import Event, RunFailed


def record(event: Event | RunCondensed) -> Record:
    return Record(seq=4, tree=R, epoch=2, at=AT, utc_s=1_795_000_000.25, event=event)


@pytest.mark.parametrize("event", EVERY_EVENT, ids=lambda event: type(event).__name__)
def test_every_event_comes_back_as_it_was_written(event: Event) -> None:
    assert decode(encode(record(event)).removesuffix(b"\n")) == record(event)


def test_the_examples_cover_every_event_and_no_field_shadows_the_head() -> None:
    assert {type(event) for event in EVERY_EVENT} == set(get_args(Event))
    fields = {field.name for event in get_args(Event) for field in dataclasses.fields(event)}
    fields |= {field.name for field in dataclasses.fields(RunCondensed)}
    assert not fields & {"v", "seq", "tree", "epoch", "at", "t", "kind", "archive", "crc"}


def test_a_condensed_run_comes_back_with_the_place_of_its_history() -> None:
    short = Record(
        seq=9,
        tree=R,
        epoch=2,
        at=AT,
        utc_s=1.5,
        event=condensed(),
        archive=(Piece(1, 0, 40), Piece(3, 9, 1)),
    )
    line = encode(short)
    assert decode(line.removesuffix(b"\n")) == short
    assert line == encode(short), "the order of a set must not show"
    assert json.loads(line)["archive"] == [[1, 0, 40], [3, 9, 1]]
    assert len(line) < len(encode(record(spawned())))


def test_a_condensed_line_is_told_by_its_head_alone() -> None:
    assert is_condensed(encode(record(condensed())))
    for event in EVERY_EVENT:
        assert not is_condensed(encode(record(event)))
    assert not is_condensed(encode(record(RunFailed(run=R, error='"kind":"run_condensed"'))))


def test_a_line_of_the_first_version_is_read_without_a_clock() -> None:
    line = b'{"v":1,"seq":1,"run":"r","tree":"r","epoch":1,"t":"2026-11-18T11:06:40Z","kind":"run_recovered"'
    assert decode(line + b',"crc":"%08x"}' % zlib.crc32(line)).at == 0


def test_a_line_is_plain_json_with_the_checksum_last() -> None:
    line = encode(record(finished()))
    assert line == (
        b'{"v":3,"seq":4,"run":"run_r","tree":"run_r","epoch":2,"at":1500,"t":"2026-11-18T11:06:40.250000Z",'
        b'"kind":"run_finished","result":"heavy","structured":null,"crc":"%s"}\n' % json.loads(line)["crc"].encode()
    )


def test_any_changed_byte_is_noticed() -> None:
    line = encode(record(finished())).removesuffix(b"\n")
    for place in range(len(line)):
        broken = bytearray(line)
        broken[place] ^= 1
        with pytest.raises(BrokenLineError):
            decode(bytes(broken))


def test_a_line_of_a_newer_version_is_refused_as_such(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lines, "VERSION", 4)
    newer = encode(record(finished())).removesuffix(b"\n")
    monkeypatch.undo()
    with pytest.raises(NewerVersionError, match="version 4"):
        decode(newer)
