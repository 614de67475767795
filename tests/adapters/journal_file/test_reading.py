import pytest

from adapters.journal_file.journal_world import AT, CALL, Q, R, condensed, entries, finished, spawned, turn
from luftpause.adapters.journal_file.lines import Record, encode
from luftpause.adapters.journal_file.reading import Scan, scan
from luftpause.core.model.ids import RunId
from luftpause.core.runs.events import Event, RunSpawned, ToolCallIntended


def lines_of(*events: Event, toolset: str = "") -> list[bytes]:
    seq: dict[RunId, int] = {}
    lines = []
    for event in events:
        seq[event.run] = seq.get(event.run, 0) + 1
        named = toolset if isinstance(event, RunSpawned) else ""
        record = Record(seq=seq[event.run], tree=event.run, epoch=3, at=AT, utc_s=0.0, event=event, toolset=named)
        lines.append(encode(record))
    return lines


def damage(found: Scan) -> dict[RunId, bool]:
    return {run: bool(lines.damage) for run, lines in found.runs.items()}


def test_sound_lines_give_histories_in_order() -> None:
    found = scan(lines_of(spawned(R), spawned(Q), turn(R), finished(R)))
    assert [(run, len(lines.entries), lines.last_seq) for run, lines in found.runs.items()] == [(R, 3, 3), (Q, 1, 1)]
    assert (found.epoch, found.broken_lines) == (3, ())


def test_a_broken_line_in_the_middle_damages_the_run_that_it_names_alone() -> None:
    lines = lines_of(spawned(R), spawned(Q), turn(R), turn(Q))
    lines[2] = lines[2].replace(b"moon", b"sun!")
    found = scan(lines)
    assert damage(found) == {R: True, Q: False}
    assert found.broken_lines == (3,)
    assert len(found.runs[R].entries) == 1


def test_a_line_beyond_recognition_damages_whoever_may_have_lost_it() -> None:
    other, done = RunId("run_other"), RunId("run_done")
    lines = lines_of(spawned(R), spawned(Q), spawned(done), finished(done), spawned(other), turn(R), turn(Q))
    lines.insert(5, b"\x00" * 40 + b"\n")
    # Both R and Q show the record after it, the finished one needs none: only `other` may have lost one.
    assert damage(scan(lines)) == {R: False, Q: False, done: False, other: True}


def test_a_missing_record_shows_in_the_sequence() -> None:
    lines = lines_of(spawned(R), turn(R), ToolCallIntended(run=R, call=CALL, repeatable=False), spawned(Q))
    found = scan([lines[0], b"garbage\n", *lines[2:]])
    assert damage(found) == {R: True, Q: False}


def test_a_run_whose_beginning_is_lost_harms_nobody_else() -> None:
    lines = lines_of(spawned(R), spawned(Q), turn(Q))
    lines[1] = lines[1].replace(b"moon", b"sun!")
    for kept in (lines, [*lines[:2], *lines_of(turn(R))]):  # whether or not anything else of it is there
        found = scan(kept)
        assert damage(found)[Q] is True
        assert found.runs[Q].entries == []
    assert damage(scan(lines))[R] is False


def test_an_ending_stays_whatever_of_its_run_is_lost() -> None:
    lines = lines_of(spawned(R), turn(R), ToolCallIntended(run=R, call=CALL, repeatable=False), finished(R))
    for broken in range(3):
        for how in (lines[broken].replace(b'"kind"', b'"kinX"'), b"\x00\n"):
            found = scan([*lines[:broken], how, *lines[broken + 1 :]])
            assert tuple(found.runs[R].entries) == entries(*(spawned(R), turn(R))[:broken], finished(R))
            assert found.runs[R].damage


@pytest.mark.parametrize("tail", [[b"\n", b"\n"], [b"garbage\n", b"garbage"], [bytes(64) + b"\n", bytes(64)]])
def test_an_end_of_several_broken_lines_is_torn_off_and_damages_nobody(tail: list[bytes]) -> None:
    lines = lines_of(spawned(R), spawned(Q))
    found = scan([*lines, *tail])
    assert damage(found) == {R: False, Q: False}
    assert found.sound_bytes == sum(map(len, lines))
    assert found.broken_lines == ()
    followed = scan([*lines, *tail[:1], *lines_of(spawned(RunId("run_next")))])
    assert followed.broken_lines == (3,), "a sound line follows: it is the middle"


def test_a_broken_condensed_run_is_damage_even_at_the_end() -> None:
    short = encode(Record(seq=3, tree=R, epoch=3, at=AT, utc_s=0.0, event=condensed()))
    found = scan([short.replace(b"heavy", b"light"), b"garbage\n"])
    assert damage(found) == {R: True}
    assert (found.sound_bytes, found.broken_lines) == (len(short), (1,))


def test_a_condensed_run_stands_for_all_up_to_its_number() -> None:
    short = Record(seq=3, tree=R, epoch=3, at=AT, utc_s=0.0, event=condensed())
    more = encode(Record(seq=4, tree=R, epoch=3, at=AT, utc_s=0.0, event=turn()))
    found = scan([encode(short)])
    assert found.runs[R].is_over
    assert (found.runs[R].kept, found.runs[R].last_seq, found.runs[R].spans) == (short, 3, [])
    found = scan([encode(short), more])
    assert not found.runs[R].is_over
    assert (tuple(found.runs[R].entries), found.runs[R].last_seq) == (entries(turn()), 4)
    assert damage(scan([encode(short), more, more])) == {R: True}
