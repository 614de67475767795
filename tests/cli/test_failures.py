"""What a person sees when a command fails."""

import asyncio
import errno
import socket

import pytest

from luftpause.cli.failures import CommandFailedError, Failure, failure_of
from luftpause.config.problems import ConfigError, Problem

BAD_CONFIG = ConfigError(Problem(where="f.toml:1", what="bad"), Problem(where="f.toml:2", what="worse"))


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (BAD_CONFIG, Failure(("f.toml:1: bad", "f.toml:2: worse"), 2)),
        (CommandFailedError("it broke; mend it"), Failure(("it broke; mend it",), 1)),
        (FileNotFoundError(errno.ENOENT, "No such file", "x.txt"), Failure(("x.txt: No such file",), 1)),
        (OSError("odd"), Failure(("odd",), 1)),
        (
            OSError(errno.EADDRINUSE, "in use"),
            Failure(("cannot listen: the port is taken; free it or choose another",), 1),
        ),
        (socket.gaierror(-2, "Name or service not known"), Failure(("unknown host: Name or service not known",), 1)),
        (
            PermissionError(errno.EACCES, "denied (while attempting to bind on address ('127.0.0.1', 80))"),
            Failure(("cannot listen on 127.0.0.1:80: not allowed; choose a port above 1023",), 1),
        ),
        (PermissionError(errno.EACCES, "Permission denied", "f"), Failure(("f: Permission denied",), 1)),
        (
            ExceptionGroup("tasks", [BAD_CONFIG, ExceptionGroup("more", [OSError("odd"), OSError("odd")])]),
            Failure(("f.toml:1: bad", "f.toml:2: worse", "odd"), 2),
        ),
        (ValueError("bug"), None),
        (ExceptionGroup("tasks", [OSError("odd"), ValueError("bug")]), None),
    ],
)
def test_what_can_be_mended_is_put_into_words_and_bugs_are_not(error: Exception, expected: Failure | None) -> None:
    assert failure_of(error) == expected


def test_a_taken_port_is_named_however_it_was_bound() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        expected = f"cannot listen on 127.0.0.1:{port}: the port is taken; free it or choose another"
        with pytest.raises(OSError, match="bind") as by_socket:
            socket.create_server(("127.0.0.1", port))
        with pytest.raises(OSError, match="bind") as by_loop:
            asyncio.run(_listen(port))
    assert failure_of(by_socket.value) == Failure((expected,), 1)
    assert failure_of(by_loop.value) == Failure((expected,), 1)


async def _listen(port: int) -> None:
    await asyncio.start_server(lambda _reader, _writer: None, "127.0.0.1", port)


def test_an_address_of_another_machine_is_named() -> None:
    with pytest.raises(OSError, match="bind") as raised:
        socket.create_server(("192.0.2.1", 0))
    assert failure_of(raised.value) == Failure(("cannot listen on 192.0.2.1:0: this machine has no such address",), 1)


def test_a_failure_is_shown_on_standard_error_without_control_characters(capsys: pytest.CaptureFixture[str]) -> None:
    Failure(("first", "second\x1b[2J"), 1).show()
    shown = capsys.readouterr()
    assert shown.out == ""
    assert shown.err == "error: first\nerror: second\\u001b[2J\n"
