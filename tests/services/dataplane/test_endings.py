import time
from email.utils import formatdate

import pytest

from luftpause.core.dialects.answer_text import AnswerText
from luftpause.core.dialects.chat_said import text_in_chat_answer
from luftpause.core.dialects.observe import BodyObserver
from luftpause.core.dialects.said import Utterance, said_in
from luftpause.core.model.ids import ReplicaId, ToolCallId, ToolName, TurnId
from luftpause.core.model.replicas import Endpoint, Placement
from luftpause.core.model.tool_names import A_PERSON
from luftpause.core.scheduling.events import TurnFailed, TurnFinished
from luftpause.ports.engines import Header, Sink
from luftpause.services.dataplane.endings import asking, ending_of, marked, retry_after_s

TURN = TurnId("t.1")
PLACE = Placement(replica=ReplicaId("a"), endpoint=Endpoint(url="http://a"), why="")


class Answer:
    def __init__(self, status: int, headers: tuple[Header, ...] = ()) -> None:
        self.status = status
        self.headers = headers

    async def read(self) -> bytes:
        return b""

    async def pour(self, sink: Sink) -> None:
        raise AssertionError("nobody pours this answer")

    def finish(self) -> bool:
        raise NotImplementedError

    def close(self) -> None:
        pass


@pytest.mark.parametrize(
    ("status", "value", "seconds"),
    [
        (429, b"7", 7.0),
        (503, b"0", 0.0),
        (429, b"soon", None),
        (429, b"9" * 9, 3600.0),
        (429, b"9" * 10, None),
        (429, b"-1", None),
        (500, b"7", None),
    ],
)
def test_a_busy_engine_may_say_for_how_long(status: int, value: bytes, seconds: float | None) -> None:
    answer = Answer(status, ((b"x", b"y"), (b"retry-after", value)))

    assert retry_after_s(answer) == seconds
    report = ending_of(TURN, PLACE, answer, None)
    assert report == TurnFailed(turn=TURN, cause=f"engine a: status {status}", retry_after_s=seconds)


NOON = b"Mon, 30 Nov 2026 12:00:00 GMT"


@pytest.mark.parametrize(
    ("date", "seconds"),
    [
        (b"Mon, 30 Nov 2026 12:00:07 GMT", 7.0),
        (b"Monday, 30-Nov-26 12:00:07 GMT", 7.0),
        (b"Mon Nov 30 12:00:07 2026", 7.0),
        (NOON, 0.0),
        (b"Mon, 30 Nov 2026 11:00:00 GMT", 0.0),
        (b"Tue, 30 Nov 2027 12:00:00 GMT", 3600.0),
        (b"Mon, 99 Nov 2026 12:00:00 GMT", None),
        (b"Mon, 30 Nov 99999999999999999999 12:00:00 GMT", None),
        (b"Mon, 30 Nov 2026 12:00:00 +99999999", None),
        (b"tomorrow", None),
        (b"\xff", None),
        (b" " * 999, None),
    ],
)
def test_a_date_counts_from_the_engines_own(date: bytes, seconds: float | None) -> None:
    assert retry_after_s(Answer(503, ((b"date", NOON), (b"retry-after", date)))) == seconds


def test_without_the_engines_date_ours_counts() -> None:
    soon = formatdate(time.time() + 1000, usegmt=True).encode()
    for headers in (((b"retry-after", soon),), ((b"date", b"?"), (b"retry-after", soon))):
        seconds = retry_after_s(Answer(503, headers))
        assert seconds is not None
        assert 900 < seconds <= 1000


def test_calls_are_known_by_the_ids_that_the_client_was_given() -> None:
    class Back:
        failure = ""

        def feed(self, data: bytes) -> bytes:
            return data

        def end(self) -> bytes:
            return b""

        def error(self, status: int, body: bytes) -> bytes:
            return body

        def call_ids(self) -> tuple[ToolCallId, ...]:
            return (ToolCallId("ours"),)

    observer = BodyObserver()
    observer.feed(b'{"choices": [{"message": {"tool_calls": [{"id": "theirs"}]}}]}')
    for back, known in ((None, "theirs"), (Back(), "ours")):
        report = ending_of(TURN, PLACE, Answer(200), observer, back)
        assert isinstance(report, TurnFinished)
        assert report.tool_calls == (known,)


def test_an_answer_with_an_error_and_no_finish_has_failed() -> None:
    observer = BodyObserver()
    observer.feed(b'{"error": {"message": "no"}}')
    report = ending_of(TURN, PLACE, Answer(200), observer)
    assert report == TurnFailed(turn=TURN, cause='engine a: {"message": "no"}')


def test_an_answer_with_a_finish_has_finished() -> None:
    observer = BodyObserver()
    observer.feed(b'{"choices": [{"finish_reason": "stop"}], "error": "late"}')
    assert ending_of(TURN, PLACE, Answer(200), observer) == TurnFinished(turn=TURN, finish="stop")


def test_only_an_answer_that_was_listened_to_is_marked() -> None:
    finished, failed = TurnFinished(turn=TURN), TurnFailed(turn=TURN, cause="")
    said, heard = said_in([Utterance("user", "hi")]), AnswerText(text_in_chat_answer, stream=False)
    heard.feed(b'{"choices":[{"message":{"content":"hello"}}]}')
    assert marked(finished, None, heard) is finished
    assert marked(finished, said, None) is finished
    assert marked(failed, said, heard) is failed
    report = marked(finished, said, heard)
    assert isinstance(report, TurnFinished)
    assert set(report.marks) <= set(said_in([Utterance("user", "hi"), Utterance("assistant", "hello")]).marks)
    assert len(report.marks) == 1


@pytest.mark.parametrize(
    ("called", "told"),
    [(("delete",), (A_PERSON,)), (("look", "delete"), (A_PERSON,)), (("look",), ("look",)), ((), ())],
)
def test_a_run_that_called_a_tool_which_a_person_is_asked_about_waits_for_that_person(
    called: tuple[str, ...], told: tuple[str, ...]
) -> None:
    report = TurnFinished(turn=TURN, tools=tuple(map(ToolName, called)))
    assert asking(report, frozenset({"delete", "drop"})) == TurnFinished(turn=TURN, tools=tuple(map(ToolName, told)))
    assert asking(report, frozenset()) is report
    failed = TurnFailed(turn=TURN, cause="broke")
    assert asking(failed, frozenset({"delete"})) is failed
