from collections.abc import Generator
from dataclasses import replace
from typing import cast

from adapters.journal_file.journal_world import AT, UTC_S, Q, R, condensed, finished, spawned, turn
from luftpause.adapters.journal_file.book import (
    AT_ONCE,
    SHORT_LINE_BYTES,
    Book,
    Known,
    Over,
    Retention,
    Tidied,
    Tidying,
)
from luftpause.adapters.journal_file.lines import Piece, Record
from luftpause.adapters.journal_file.reading import Span
from luftpause.core.model.ids import RunId
from luftpause.core.runs.events import Event

FOR_EVER = Retention()


def record(event: Event, seq: int, *, tree: RunId | None = None, utc_s: float = UTC_S) -> Record:
    return Record(seq=seq, tree=tree or event.run, epoch=1, at=AT, utc_s=utc_s, event=event)


def lived(book: Book, run: RunId, *, tree: RunId | None = None, utc_s: float = UTC_S, length: int = 100) -> None:
    book.add([record(spawned(run), 1, tree=tree, utc_s=utc_s)], length)
    book.add([record(finished(run), 2, tree=tree, utc_s=utc_s)], length)


def over(book: Book, *runs: RunId, utc_s: float = UTC_S) -> None:
    for run in runs:
        lived(book, run, utc_s=utc_s)
        book.settle(condensed(run), 1)


def take_over(book: Book, plan: Tidying, done: Tidied) -> None:
    for _ in book.end(plan, done):
        pass


def rest_of(steps: Generator[None, None, Tidying]) -> Tidying:
    while True:
        try:
            next(steps)
        except StopIteration as end:
            return cast(Tidying, end.value)


def begun(book: Book) -> Tidying:
    return rest_of(book.begin())


def tidy(book: Book) -> Tidied:
    """A compaction as it would come out if every condensed line took ten bytes."""
    plan = begun(book)
    pieces: dict[RunId, tuple[Piece, ...]] = {
        run: (Piece(plan.segment, 0, each.length),) for run, each in plan.over.items()
    }
    done = Tidied(size=10 * len(pieces), spans={}, pieces=pieces, toolsets={})
    take_over(book, plan, done)
    return done


def test_lines_stand_one_behind_the_other() -> None:
    book = Book(FOR_EVER)
    book.add([record(spawned(R), 1)], 70)
    book.add([record(spawned(Q), 1)], 50)
    book.add([record(turn(R), 2), record(finished(R), 3)], 40)
    assert book.where(R) == ((), (Span(0, 70), Span(120, 40)))
    assert (book.seq(R), book.seq(Q), book.seq(RunId("nobody")), book.size) == (3, 1, 0, 160)
    assert book.where(RunId("nobody")) is None


def test_what_is_over_is_waste_until_it_is_tidied_up() -> None:
    book = Book(FOR_EVER)
    over(book, R)
    lived(book, Q)
    assert book.waste == 200
    plan = begun(book)
    assert list(plan.over) == [R]
    assert isinstance(plan.over[R], Over)
    assert (plan.over[R].length, plan.over[R].short.seq, plan.over[R].short.event) == (200, 2, condensed(R))
    spans = {Q: [Span(10, 100), Span(110, 100)]}
    take_over(book, plan, Tidied(size=210, spans=spans, pieces={R: (Piece(1, 0, 200),)}, toolsets={}))
    assert (book.waste, book.size, begun(book).over) == (0, 210, {})
    assert book.where(R) == ((Piece(1, 0, 200),), ())
    assert book.where(Q) == ((), (Span(10, 100), Span(110, 100)))


def test_a_record_that_follows_an_end_takes_it_back() -> None:
    book = Book(Retention(keep_runs=0))
    over(book, R)
    book.add([record(turn(R), 3)], 30)
    plan = begun(book)
    assert (book.waste, plan.over, book.expire(UTC_S)) == (0, {}, ())
    book.leave(plan)
    book.settle(condensed(R), 1)
    assert (book.waste, book.expire(UTC_S)) == (230, (R,))


def test_lines_that_came_during_a_compaction_move_with_the_file() -> None:
    book = Book(FOR_EVER)
    over(book, R)
    plan = begun(book)
    book.add([record(turn(R), 3)], 30)
    book.add([record(spawned(Q), 1)], 50)
    take_over(book, plan, Tidied(size=15, spans={}, pieces={R: (Piece(1, 0, 200),)}, toolsets={}))
    assert book.where(R) == ((Piece(1, 0, 200),), (Span(15, 30),))
    assert book.where(Q) == ((), (Span(45, 50),))
    assert book.size == 95
    book.settle(condensed(R), 1)
    again = begun(book)
    assert (again.over[R].pieces, again.over[R].length, again.segment) == ((Piece(1, 0, 200),), 30, 2)


def test_what_comes_while_it_is_taken_over_where_lines_stand_is_found_too() -> None:
    book = Book(Retention(keep_runs=2 * AT_ONCE))
    runs = [RunId(f"run_{number:03}") for number in range(2 * AT_ONCE)]
    over(book, *runs)
    plan = begun(book)
    first, last, new = runs[0], runs[-1], RunId("new")
    book.add([record(turn(last), 3)], 30)
    pieces: dict[RunId, tuple[Piece, ...]] = {run: (Piece(1, 200 * place, 200),) for place, run in enumerate(runs)}
    steps = book.end(plan, Tidied(size=1000, spans={}, pieces=dict(pieces), toolsets={}))
    next(steps)
    assert book.size == 1030
    for run in (first, last, new):  # one that was moved already, one that was not, one that there was not
        book.add([record(finished(run), 4)], 20)
        book.settle(condensed(run), 1)
    for _ in steps:
        pass
    assert book.where(first) == (pieces[first], (Span(1030, 20),))
    assert book.where(last) == (pieces[last], (Span(1000, 30), Span(1050, 20)))
    assert book.where(new) == ((), (Span(1070, 20),))
    assert book.where(runs[1]) == (pieces[runs[1]], ())
    again = begun(book)
    assert {run: each.length for run, each in again.over.items()} == {first: 20, last: 50, new: 20}
    assert [again.over[run].pieces for run in (first, last, new)] == [pieces[first], pieces[last], ()]
    assert book.waste == 20 + 50 + 20 + 2 * SHORT_LINE_BYTES


def test_a_run_that_is_forgotten_while_it_is_taken_over_where_lines_stand_is_gone() -> None:
    book = Book(Retention(keep_runs=2 * AT_ONCE - 1))
    runs = [RunId(f"run_{number:03}") for number in range(2 * AT_ONCE)]
    over(book, *reversed(runs[1:]), runs[0])
    plan = begun(book)
    pieces: dict[RunId, tuple[Piece, ...]] = {run: (Piece(1, 0, 200),) for run in runs}
    steps = book.end(plan, Tidied(size=1000, spans={}, pieces=dict(pieces), toolsets={}))
    next(steps)
    gone = book.expire(UTC_S)
    for _ in steps:
        pass
    assert gone == (runs[-1],)
    assert (book.where(runs[-1]), book.where(runs[0])) == (None, ((Piece(1, 0, 200),), ()))
    assert book.dead_segments() == []
    assert begun(book).forgotten == {runs[-1]}


def test_the_oldest_trees_go_first_and_whole() -> None:
    old, young, kid = RunId("old"), RunId("young"), RunId("kid")
    book = Book(Retention(keep_runs=2))
    lived(book, old)
    lived(book, kid, tree=old)
    book.settle(condensed(old), 1)
    assert book.expire(UTC_S) == ()
    book.settle(condensed(kid), 1)
    assert book.expire(UTC_S) == ()
    over(book, young)
    assert book.expire(UTC_S) == (old, kid)
    assert (book.where(kid), book.seq(young)) == (None, 2)


def test_a_tree_that_lives_counts_for_nothing_and_stays() -> None:
    book = Book(Retention(keep_runs=0, keep_for_s=1))
    lived(book, R)
    lived(book, Q, tree=R)
    book.settle(condensed(Q), 1)
    assert book.expire(UTC_S + 1000) == ()
    book.settle(condensed(R), 1)
    lived(book, RunId("late"), tree=R)
    assert book.expire(UTC_S + 1000) == (), "somebody was spawned below it"


def test_what_ended_too_long_ago_goes_whatever_the_number() -> None:
    book = Book(Retention(keep_runs=100, keep_for_s=60))
    over(book, R, utc_s=UTC_S)
    over(book, Q, utc_s=UTC_S + 30)
    assert book.expire(UTC_S + 60) == ()
    assert book.expire(UTC_S + 61) == (R,)
    assert book.expire(UTC_S + 91) == (Q,)


def test_a_segment_is_dead_once_all_its_runs_are_forgotten_and_says_so_once() -> None:
    book = Book(Retention(keep_runs=1))
    over(book, R)
    tidy(book)
    over(book, Q)
    tidy(book)
    assert book.dead_segments() == []
    assert book.expire(UTC_S) == (R,)
    assert book.waste == SHORT_LINE_BYTES
    assert book.dead_segments() == [1]
    assert book.dead_segments() == []
    plan = begun(book)
    assert plan.forgotten == {R}
    take_over(book, plan, Tidied(size=10, spans={}, pieces={}, toolsets={}))
    assert (book.waste, begun(book).forgotten) == (0, frozenset())


def test_a_run_that_is_forgotten_during_a_compaction_leaves_a_dead_segment() -> None:
    book = Book(Retention(keep_runs=0))
    over(book, R)
    plan = begun(book)
    assert book.expire(UTC_S) == (R,)
    take_over(book, plan, Tidied(size=10, spans={}, pieces={R: (Piece(1, 0, 200),)}, toolsets={}))
    assert book.dead_segments() == [1]
    assert begun(book).forgotten == {R}, "its short line stands in the new file"


def test_what_a_file_held_goes_on_where_it_was() -> None:
    book = Book(Retention(keep_runs=1), segment_last=7)
    book.enter(R, Known(tree=R, seq=5, pieces=(Piece(3, 0, 9),), over=True, utc_s=UTC_S - 9))
    book.enter(Q, Known(tree=Q, seq=2, spans=[Span(0, 40)], utc_s=UTC_S))
    assert book.last_seq() == {R: 5, Q: 2}
    plan = begun(book)
    assert plan.segment == 8
    book.leave(plan)
    book.settle(condensed(Q), 2)
    assert book.expire(UTC_S) == (R,)
    assert book.dead_segments() == [3]


def test_a_list_of_tools_goes_with_whoever_names_it_and_stays_with_whoever_stays() -> None:
    book = Book(FOR_EVER)
    for run, listed in ((R, 30), (Q, 0)):
        book.add([replace(record(spawned(run), 1), toolset="abc")], 70, listed)
    assert book.where(R) == ((), (Span(0, 30), Span(30, 70)))
    assert book.where(Q) == ((), (Span(0, 30), Span(100, 70)))
    book.settle(condensed(R), 1)
    plan = begun(book)
    assert (plan.over[R].toolset, plan.staying, plan.toolsets) == ("abc", frozenset({"abc"}), {"abc": Span(0, 30)})
    assert not book.lists.may_be_named("abc"), "it may be on its way out"
    late = RunId("late")
    book.add([replace(record(spawned(late), 1), toolset="def")], 60, 20)
    pieces: dict[RunId, tuple[Piece, ...]] = {R: (Piece(1, 0, 30), Piece(1, 30, 70))}
    take_over(
        book, plan, Tidied(size=110, spans={Q: [Span(40, 70)]}, pieces=dict(pieces), toolsets={"abc": Span(10, 30)})
    )
    assert book.where(R) == (pieces[R], ())
    assert book.where(Q) == ((), (Span(10, 30), Span(40, 70)))
    assert book.where(late) == ((), (Span(110, 20), Span(130, 60)))
    assert book.lists.may_be_named("abc")


def test_a_compaction_that_fails_leaves_the_lists_of_tools_where_they_are() -> None:
    book = Book(FOR_EVER)
    book.lists.enter({"abc": Span(0, 30)})
    plan = begun(book)
    assert not book.lists.may_be_named("abc")
    book.leave(plan)
    assert book.lists.may_be_named("abc")


def test_when_a_run_was_written_last_is_known() -> None:
    book = Book(FOR_EVER)
    lived(book, R)
    assert (book.written_utc(R), book.written_utc(Q)) == (UTC_S, 0.0)


def test_a_plan_is_made_in_steps_and_taken_over_in_steps() -> None:
    book = Book(FOR_EVER)
    runs = [RunId(f"run_{number:03}") for number in range(3 * AT_ONCE)]
    over(book, *runs)
    begins = book.begin()
    assert [next(begins) for _ in range(3)] == [None] * 3
    plan = rest_of(begins)
    assert len(plan.over) == 3 * AT_ONCE
    pieces: dict[RunId, tuple[Piece, ...]] = {run: (Piece(1, 0, 200),) for run in runs}
    done = Tidied(size=1000, spans={}, pieces=pieces, toolsets={})
    left = [(len(plan.over), len(done.pieces)) for _ in book.end(plan, done)]
    assert left == [(2 * AT_ONCE, 2 * AT_ONCE), (AT_ONCE, AT_ONCE), (0, 0)], "let go of with each step, too"


def test_what_is_written_while_a_plan_is_made_stays_where_it_is() -> None:
    book = Book(FOR_EVER)
    runs = [RunId(f"run_{number:03}") for number in range(2 * AT_ONCE)]
    for run in runs:
        book.add([replace(record(spawned(run), 1), toolset=f"list of {run}"), record(finished(run), 2)], 100, 9)
    again, settled, new = runs[-2], runs[-1], RunId("new")
    for run in runs[:-1]:
        book.settle(condensed(run), 1)
    begins, size = book.begin(), book.size
    next(begins)
    book.add([record(turn(again), 3), record(finished(again), 4)], 30)
    for run in (again, settled):
        book.settle(condensed(run), 1)
    over(book, new)
    plan = rest_of(begins)
    assert (plan.size, set(plan.over)) == (size, {*runs} - {again}), "not all of its lines stand before that"
    assert plan.staying == {f"list of {again}"}


def test_what_is_forgotten_while_a_plan_is_made_stays_once_more_with_its_list() -> None:
    book = Book(Retention(keep_runs=0))
    for number in range(AT_ONCE):
        lived(book, RunId(f"run_{number:03}"))
    last = RunId("last")
    book.add([replace(record(spawned(last), 1), toolset="abc")], 100, 20)
    book.settle(condensed(last), 1)
    begins = book.begin()
    next(begins)
    assert book.expire(UTC_S) == (last,)
    plan = rest_of(begins)
    assert (plan.over, plan.forgotten, plan.staying) == ({}, set(), {"abc"})
    book.leave(plan)
    plan = begun(book)
    assert plan.forgotten == {last}
    book.leave(plan)
    assert begun(book).forgotten == {last}, "nothing came of it"
