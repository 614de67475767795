import dataclasses
import json
from typing import get_args

import pytest

from adapters.journal_file.journal_world import EVERY_EVENT, R, finished
from luftpause.adapters.journal_file import lines
from luftpause.adapters.journal_file.lines import BrokenLineError, NewerVersionError, Record, decode, encode
from luftpause.core.runs.events import Event


def record(event: Event) -> Record:
    return Record(seq=4, tree=R, epoch=2, utc_s=1_795_000_000.25, event=event)


@pytest.mark.parametrize("event", EVERY_EVENT, ids=lambda event: type(event).__name__)
def test_every_event_comes_back_as_it_was_written(event: Event) -> None:
    assert decode(encode(record(event)).removesuffix(b"\n")) == record(event)


def test_the_examples_cover_every_event_and_no_field_shadows_the_head() -> None:
    assert {type(event) for event in EVERY_EVENT} == set(get_args(Event))
    fields = {field.name for event in get_args(Event) for field in dataclasses.fields(event)}
    assert not fields & {"v", "seq", "tree", "epoch", "t", "kind", "crc"}


def test_a_line_is_plain_json_with_the_checksum_last() -> None:
    line = encode(record(finished()))
    assert list(json.loads(line)) == ["v", "seq", "run", "tree", "epoch", "t", "kind", "result", "crc"]
    assert line == (
        b'{"v":1,"seq":4,"run":"run_r","tree":"run_r","epoch":2,"t":"2026-11-18T11:06:40.250000Z",'
        b'"kind":"run_finished","result":"heavy","crc":"%s"}\n' % json.loads(line)["crc"].encode()
    )


def test_any_changed_byte_is_noticed() -> None:
    line = encode(record(finished())).removesuffix(b"\n")
    for place in range(len(line)):
        broken = bytearray(line)
        broken[place] ^= 1
        with pytest.raises(BrokenLineError):
            decode(bytes(broken))


def test_a_line_of_a_newer_version_is_refused_as_such(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lines, "VERSION", 2)
    newer = encode(record(finished())).removesuffix(b"\n")
    monkeypatch.undo()
    with pytest.raises(NewerVersionError, match="version 2"):
        decode(newer)
