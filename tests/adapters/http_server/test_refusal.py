from luftpause.adapters.http_server.refusal import Refusals, render_refusal
from luftpause.core.dialects.failures import Failure, FailureCode


def test_a_refusal_is_a_whole_answer_that_ends_its_connection() -> None:
    refusals = Refusals(headers=list, body=lambda path, failure: f"{path} {failure.code.value}".encode())
    answer = render_refusal(Failure(code=FailureCode.BAD_HTTP, message="no"), b"/a?key=x", [(b"x-run", b"r")], refusals)

    head, _, body = answer.partition(b"\r\n\r\n")
    lines = head.split(b"\r\n")
    assert lines[:2] == [b"HTTP/1.1 400 Bad Request", b"x-run: r"]
    assert b"connection: close" in lines
    assert b"content-length: %d" % len(body) in lines
    assert body == b"/a bad_http"
