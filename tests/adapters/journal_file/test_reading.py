import pytest

from adapters.journal_file.journal_world import CALL, Q, R, finished, spawned, turn
from luftpause.adapters.journal_file.lines import Record, encode
from luftpause.adapters.journal_file.reading import Scan, scan
from luftpause.core.model.ids import RunId
from luftpause.core.runs.events import Event, ToolCallIntended


def lines_of(*events: Event) -> list[bytes]:
    seq: dict[RunId, int] = {}
    lines = []
    for event in events:
        seq[event.run] = seq.get(event.run, 0) + 1
        lines.append(encode(Record(seq=seq[event.run], tree=event.run, epoch=3, utc_s=0.0, event=event)))
    return lines


def damage(found: Scan) -> dict[RunId, bool]:
    return {history.run: bool(history.damage) for history in found.histories}


def test_sound_lines_give_histories_in_order() -> None:
    found = scan(lines_of(spawned(R), spawned(Q), turn(R), finished(R)))
    assert [(history.run, len(history.events)) for history in found.histories] == [(R, 3), (Q, 1)]
    assert (found.last_seq, found.epoch, found.broken_lines) == ({R: 3, Q: 1}, 3, ())


def test_a_broken_line_in_the_middle_damages_the_run_that_it_names_alone() -> None:
    lines = lines_of(spawned(R), spawned(Q), turn(R), turn(Q))
    lines[2] = lines[2].replace(b"moon", b"sun!")
    found = scan(lines)
    assert damage(found) == {R: True, Q: False}
    assert found.broken_lines == (3,)
    assert len(found.histories[0].events) == 1


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
        assert [history.events for history in found.histories if history.run == Q] == [()]
    assert damage(scan(lines))[R] is False


def test_an_ending_stays_whatever_of_its_run_is_lost() -> None:
    lines = lines_of(spawned(R), turn(R), ToolCallIntended(run=R, call=CALL, repeatable=False), finished(R))
    for broken in range(3):
        for how in (lines[broken].replace(b'"kind"', b'"kinX"'), b"\x00\n"):
            found = scan([*lines[:broken], how, *lines[broken + 1 :]])
            assert found.histories[0].events == (*(spawned(R), turn(R))[:broken], finished(R))
            assert found.histories[0].damage


@pytest.mark.parametrize("tail", [[b"\n", b"\n"], [b"garbage\n", b"garbage"], [bytes(64) + b"\n", bytes(64)]])
def test_an_end_of_several_broken_lines_is_torn_off_and_damages_nobody(tail: list[bytes]) -> None:
    lines = lines_of(spawned(R), spawned(Q))
    found = scan([*lines, *tail])
    assert damage(found) == {R: False, Q: False}
    assert found.sound_bytes == sum(map(len, lines))
    assert found.broken_lines == ()
    followed = scan([*lines, *tail[:1], *lines_of(spawned(RunId("run_next")))])
    assert followed.broken_lines == (3,), "a sound line follows: it is the middle"
