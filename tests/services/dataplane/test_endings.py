from collections.abc import Awaitable, Callable

import pytest

from luftpause.core.dialects.chat_said import AnswerText
from luftpause.core.dialects.observe import BodyObserver
from luftpause.core.dialects.said import Utterance, said_in
from luftpause.core.model.ids import ReplicaId, TurnId
from luftpause.core.model.replicas import Endpoint, Placement
from luftpause.core.scheduling.events import TurnFailed, TurnFinished
from luftpause.ports.engines import Header, Take
from luftpause.services.dataplane.endings import ending_of, marked, retry_after_s

TURN = TurnId("t.1")
PLACE = Placement(replica=ReplicaId("a"), endpoint=Endpoint(url="http://a"), why="")


class Answer:
    def __init__(self, status: int, headers: tuple[Header, ...] = ()) -> None:
        self.status = status
        self.headers = headers

    async def read(self) -> bytes:
        return b""

    async def pour(self, take: Take, room: Callable[[], Awaitable[None]]) -> None:
        raise AssertionError("nobody pours this answer")

    def close(self) -> None:
        pass


@pytest.mark.parametrize(
    ("status", "value", "seconds"),
    [
        (429, b"7", 7.0),
        (503, b"0", 0.0),
        (429, b"soon", None),
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
    said, heard = said_in([Utterance("user", "hi")]), AnswerText(stream=False)
    heard.feed(b'{"choices":[{"message":{"content":"hello"}}]}')
    assert marked(finished, None, heard) is finished
    assert marked(finished, said, None) is finished
    assert marked(failed, said, heard) is failed
    report = marked(finished, said, heard)
    assert isinstance(report, TurnFinished)
    assert set(report.marks) <= set(said_in([Utterance("user", "hi"), Utterance("assistant", "hello")]).marks)
    assert len(report.marks) == 1
