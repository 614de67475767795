"""A client of paced streams, in a process of its own: prints how much later than the pace each chunk came, as JSON.

python -m benchmarks.runtimebench.streams DOOR MODEL STREAMS PACE_S SECONDS
"""

import asyncio
import json
import sys
import time
from urllib.parse import urlsplit

import uvloop


async def one_stream(door: str, model: str, pace_s: float, seconds: float) -> list[float]:
    """Read one stream, and return by how much each gap between chunks is longer than the pace, seconds."""
    where = urlsplit(door)
    reader, writer = await asyncio.open_connection(where.hostname, where.port)
    task = f"[tools:0] [tokens:{round(seconds / pace_s)}]"
    body = json.dumps({"model": model, "stream": True, "messages": [{"role": "user", "content": task}]}).encode()
    head = f"POST /v1/chat/completions HTTP/1.1\r\nhost: {where.netloc}\r\ncontent-type: application/json\r\n"
    writer.write(f"{head}connection: close\r\ncontent-length: {len(body)}\r\n\r\n".encode() + body)
    status = await reader.readline()
    if b" 200 " not in status:
        raise RuntimeError(status)
    late: list[float] = []
    last = 0.0
    while piece := await reader.read(65536):
        now = time.perf_counter()
        if b"data:" in piece:
            if last:
                late.append(now - last - pace_s)
            last = now
    writer.close()
    return late[1:-2]  # the first chunk and the last ones come together with others


async def main(door: str, model: str, streams: int, pace_s: float, seconds: float) -> None:
    """Read all of them at once."""
    each = await asyncio.gather(*(one_stream(door, model, pace_s, seconds) for _ in range(streams)))
    print(json.dumps([round(late, 6) for stream in each for late in stream]), flush=True)


if __name__ == "__main__":
    uvloop.run(main(sys.argv[1], sys.argv[2], int(sys.argv[3]), float(sys.argv[4]), float(sys.argv[5])))
