"""Starts `small_tool_server.py` quickly: the SDK is imported once, and every server is a fork of that one process.

`nursery.py SOCKET` is the process that forks. `nursery.py SOCKET ARGUMENT …` is a server to whoever starts it: its
standard streams and its environment are the fork's, it ends as the fork ends, and the fork ends with it.
"""

import contextlib
import importlib
import json
import os
import select
import signal
import socket
import sys

STREAMS = (0, 1, 2)


def be_born(path: str, arguments: list[str]) -> int:
    """Let a server be forked that has our streams; return how it ended."""
    with socket.socket(socket.AF_UNIX) as mother:
        mother.connect(path)
        asked = json.dumps({"arguments": arguments, "environment": dict(os.environ)}).encode()
        socket.send_fds(mother, [len(asked).to_bytes(4, "big")], STREAMS)
        mother.sendall(asked)
        for stream in STREAMS:
            os.close(stream)
        ended = mother.recv(1)
    return ended[0] if ended else 1


def readable(one: socket.socket, other: int) -> list[int]:
    """Wait until one of two, or both, can be read."""
    ready, _, _ = select.select([one.fileno(), other], [], [])
    return ready


def keep(path: str) -> None:
    """Fork whatever is asked for, until our own standard input ends."""
    main = importlib.import_module("small_tool_server").main
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(path)
        listener.listen(64)
        signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for those who look after one server each
        os.write(1, b"ready\n")
        while True:
            ready = readable(listener, 0)
            if 0 in ready:
                return
            asker, _ = listener.accept()
            if os.fork() == 0:
                listener.close()
                signal.signal(signal.SIGCHLD, signal.SIG_DFL)
                look_after(asker, main)
                os._exit(0)
            asker.close()


def look_after(asker: socket.socket, main: object) -> None:
    """Fork one server; end it when whoever asked for it is gone, and tell them how it ended."""
    head, streams, _, _ = socket.recv_fds(asker, 4, len(STREAMS))
    rest = int.from_bytes(head, "big")
    asked = b""
    while len(asked) < rest:
        asked += asker.recv(rest - len(asked))
    alive, lives = os.pipe()
    server = os.fork()
    if server == 0:
        os.close(alive)
        serve(streams, json.loads(asked), main)
    os.close(lives)
    for stream in streams:
        os.close(stream)
    ready = readable(asker, alive)
    if alive not in ready:
        with contextlib.suppress(ProcessLookupError):
            os.kill(server, signal.SIGKILL)
    _, status = os.waitpid(server, 0)
    with contextlib.suppress(OSError):
        asker.sendall(bytes([os.waitstatus_to_exitcode(status) & 0xFF]))


def serve(streams: list[int], asked: dict[str, object], main: object) -> None:
    """Be the server. Never returns."""
    arguments, environment = asked["arguments"], asked["environment"]
    assert isinstance(arguments, list)
    assert isinstance(environment, dict)
    assert callable(main)
    for stream, wanted in zip(streams, STREAMS, strict=True):
        os.dup2(stream, wanted)
        os.close(stream)
    os.environ.clear()
    os.environ.update(environment)
    sys.argv = ["small_tool_server.py", *arguments]
    code = 1
    try:
        main()
        code = 0
    finally:
        with contextlib.suppress(Exception):
            sys.stdout.flush()
        os._exit(code)


if __name__ == "__main__":
    if len(sys.argv) > 2:
        os._exit(be_born(sys.argv[1], sys.argv[2:]))
    keep(sys.argv[1])
