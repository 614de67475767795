"""`python quick_engine.py PORT`: an engine that is ready as soon as its program runs, so that a start is all ours.

Answers its health path and every turn, one connection at a time.
"""

import socket
import sys

ANSWER = (
    b'{"id":"x","object":"chat.completion","created":0,"model":"quick","choices":[{"index":0,"message":'
    b'{"role":"assistant","content":"Po"},"finish_reason":"stop"}],'
    b'"usage":{"prompt_tokens":1,"completion_tokens":1,"total_tokens":2}}'
)


def main(port: int) -> None:
    """Serve until signalled."""
    server = socket.socket()
    server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    server.bind(("127.0.0.1", port))
    server.listen()
    while True:
        client, _ = server.accept()
        client.settimeout(5)
        asked = b""
        try:
            while not _is_whole(asked) and (piece := client.recv(65536)):
                asked += piece
            head = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nconnection: close\r\ncontent-length: "
            client.sendall(head + str(len(ANSWER)).encode() + b"\r\n\r\n" + ANSWER)
        except OSError:
            continue
        finally:
            client.close()


def _is_whole(asked: bytes) -> bool:
    head, end, body = asked.partition(b"\r\n\r\n")
    lengths = [line.partition(b":")[2] for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:")]
    return bool(end) and len(body) >= (int(lengths[0]) if lengths else 0)


if __name__ == "__main__":
    main(int(sys.argv[1]))
