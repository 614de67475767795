from adapters.engine_http.scripted_engine import run_bounded
from luftpause.core.dialects.failures import Failure, FailureCode
from luftpause.core.model.ids import RunId
from luftpause.ports.asgi import Message
from luftpause.services.dataplane.answers import send_body, send_failure, send_nothing
from luftpause.services.dataplane.headers import RUN_HEADER


def test_every_answer_carries_the_run_and_its_own_length() -> None:
    sent: list[Message] = []

    async def send(message: Message) -> None:
        sent.append(message)

    async def main() -> None:
        run = RunId("r1")
        await send_body(send, run, b"{}")
        failure = Failure(code=FailureCode.METHOD_NOT_ALLOWED, message="no")
        await send_failure(send, run, failure, more=((b"allow", b"GET"),))
        await send_nothing(send, run)

    run_bounded(main())
    starts, bodies = sent[0::2], sent[1::2]
    assert [start["status"] for start in starts] == [200, 405, 204]
    for start, body in zip(starts, bodies, strict=True):
        headers = dict(start["headers"])
        assert headers[RUN_HEADER] == b"r1"
        if start["status"] != 204:
            assert headers[b"content-length"] == b"%d" % len(body["body"])
            assert headers[b"content-type"] == b"application/json"
    assert (b"allow", b"GET") in starts[1]["headers"]
