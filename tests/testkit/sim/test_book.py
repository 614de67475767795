"""The facts that the account judges by."""

from core.scheduling.builders import arrived, failed, finished, probed, spec
from luftpause.core.model.ids import PeerId, ReplicaId, RunId, TurnId
from luftpause.core.model.refusals import RefusalReason
from luftpause.core.scheduling.events import PeerResynced, ReplicaAdded, ReplicaRemoved, RunEnded
from luftpause.core.scheduling.state import Limits
from luftpause.testkit.sim.book import Book
from luftpause.testkit.sim.narrow import Narrow
from luftpause.testkit.sim.records import Due

A, B = ReplicaId("a"), ReplicaId("b")
LIMITS = Limits(turn_timeout_s=10.0, run_idle_expiry_s=100.0)


def book_with(*names: str) -> Book:
    book = Book(LIMITS)
    for name in names:
        book.take(ReplicaAdded(spec=spec(name)), 0.0)
        book.take(probed(name), 0.0)
    return book


def fly(book: Book, turn: str, run: str, replica: ReplicaId, now: float = 0.0) -> None:
    book.take(arrived(turn, run), now)
    book.place(TurnId(turn), replica)


def test_a_paused_run_may_go_home_only_and_an_idle_one_anywhere() -> None:
    book = book_with("a", "b")
    fly(book, "t", "r", A)
    assert book.sites_for(arrived("u", "r")) == [A], "its other turn runs there"
    book.take(finished("t", tools=1), 1.0)
    assert book.sites_for(arrived("u", "r")) == [A]
    assert book.kept_on(A) == 1
    fly(book, "u", "r", A)
    book.take(finished("u"), 2.0)
    assert book.sites_for(arrived("v", "r")) == [A, B]
    assert book.kept_on(A) == 0


def test_a_replica_that_was_ill_holds_nobody_any_more() -> None:
    book = book_with("a", "b")
    fly(book, "t", "r", A)
    book.take(finished("t", tools=1), 1.0)
    book.take(probed("a", healthy=False), 2.0)
    book.take(probed("a"), 3.0)
    assert book.sites_for(arrived("u", "r")) == [A, B]
    assert book.kept_on(A) == 0


def test_a_replica_that_is_gone_is_forgotten_with_its_last_turn() -> None:
    book = book_with("a")
    fly(book, "t", "r", A)
    due = book.take(ReplicaRemoved(replica=A), 1.0)
    assert due == Due()
    assert A in book.sites
    book.take(finished("t"), 2.0)
    assert book.sites == {}


def test_held_turns_are_refused_when_nobody_serves_them_or_their_run_ends() -> None:
    book = book_with("a")
    book.take(arrived("t", "r"), 0.0)
    book.take(arrived("u", "s"), 0.0)
    assert book.take(RunEnded(run=RunId("r")), 1.0) == Due({TurnId("t"): RefusalReason.RUN_ENDED}, [RunId("r")])
    assert book.take(ReplicaRemoved(replica=A), 2.0) == Due({TurnId("u"): RefusalReason.UNKNOWN_MODEL})


def test_a_replica_is_held_back_after_an_outage_and_after_a_refusal_only() -> None:
    book = book_with("a")
    assert book.sites[A].narrow is None
    book.take(probed("a", healthy=False), 1.0)
    book.take(probed("a"), 2.0)
    assert book.sites[A].narrow == Narrow(4)
    for number in range(4):
        fly(book, f"t{number}", f"r{number}", A)
        book.take(finished(f"t{number}"), 3.0)
    assert book.sites[A].narrow is None
    fly(book, "t", "r", A)
    book.take(failed("t", retry_after_s=5.0), 4.0)
    assert book.sites[A].narrow == Narrow(1, refused_at=1)


def test_the_first_expiry_is_that_of_the_oldest_sign_of_life() -> None:
    book = book_with("a")
    assert book.first_expiry() is None
    fly(book, "t", "r", A, now=1.0)
    assert book.first_expiry() == 11.0
    book.renew(TurnId("t"), 5.0)
    assert book.first_expiry() == 15.0
    book.take(finished("t"), 6.0)
    assert book.first_expiry() == 106.0
    book.take(PeerResynced(peer=PeerId("p"), turns=(), runs=()), 7.0)
    assert book.first_expiry() == 106.0
