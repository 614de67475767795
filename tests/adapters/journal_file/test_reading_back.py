from pathlib import Path

import pytest

from adapters.journal_file.journal_world import AT, Q, R, entries, finished, spawned, turn
from luftpause.adapters.journal_file.disk import DiskFolder
from luftpause.adapters.journal_file.lines import Piece, Record, encode
from luftpause.adapters.journal_file.reading import Span
from luftpause.adapters.journal_file.reading_back import open_sources, read_back
from luftpause.core.runs.events import Event


def line(event: Event, seq: int) -> bytes:
    return encode(Record(seq=seq, tree=event.run, epoch=1, at=AT, utc_s=0.0, event=event))


def test_pieces_of_several_segments_and_lines_of_the_main_file_are_one_history(tmp_path: Path) -> None:
    first, second, third, other = line(spawned(), 1), line(turn(), 2), line(finished(), 3), line(spawned(Q), 1)
    (tmp_path / "runs-0001.jsonl").write_bytes(other + first)
    (tmp_path / "runs-0004.jsonl").write_bytes(second)
    (tmp_path / "runs.jsonl").write_bytes(other + third)
    folder = DiskFolder(tmp_path)
    pieces = (Piece(1, len(other), len(first)), Piece(4, 0, len(second)))
    sources = open_sources(folder, pieces, (Span(len(other), len(third)),))
    for path in tmp_path.iterdir():
        path.unlink()  # as a compaction may, right after
    seen = read_back(R, sources)
    assert (seen.entries, seen.damage) == (entries(spawned(), turn(), finished()), "")
    assert all(source.file.closed for source in sources)


def test_lines_of_somebody_else_are_damage(tmp_path: Path) -> None:
    first, other = line(spawned(), 1), line(spawned(Q), 1)
    (tmp_path / "runs.jsonl").write_bytes(first + other)
    seen = read_back(R, open_sources(DiskFolder(tmp_path), (), (Span(0, len(first + other)),)))
    assert (seen.entries, seen.damage) == (entries(spawned()), "its archive is damaged")


def test_a_missing_segment_is_an_error_and_leaves_nothing_open(tmp_path: Path) -> None:
    (tmp_path / "runs-0001.jsonl").write_bytes(line(spawned(), 1))
    with pytest.raises(FileNotFoundError):
        open_sources(DiskFolder(tmp_path), (Piece(1, 0, 9), Piece(2, 0, 9)), ())
