"""A tool server as a child process: exactly the environment that it is given, no shell, bounded lines, its end seen to.

The SDK's own client adds variables of ours to the environment, keeps a line however long it grows and lets the child
write into our standard error.
"""

import asyncio
import itertools
import logging
import os
import re
import signal
from asyncio.subprocess import PIPE, Process, SubprocessStreamProtocol
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Final, TypeAlias

import msgspec
from anyio import (
    BrokenResourceError,
    CancelScope,
    ClosedResourceError,
    create_memory_object_stream,
    create_task_group,
    move_on_after,
)
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp.shared._stream_protocols import ReadStream, WriteStream
from mcp.shared.message import SessionMessage
from mcp_types import INTERNAL_ERROR, ErrorData, JSONRPCError, JSONRPCMessage, jsonrpc_message_adapter

from luftpause.adapters.tools_mcp.child_log import ChildLog
from luftpause.adapters.tools_mcp.half_pairs import without_halves

ANSWER_BYTES_MAX: Final = 16 * 2**20
"""Of a longer message the call that it answers fails, and nothing else."""

_HEAD_BYTES: Final = 4096
_GRACE_S: Final = 2.0
_NOISE_LINES: Final = 100
_NOISE_PAUSE_S: Final = 0.02
_FLOOD_PAUSE_S: Final = 0.005
"""After so many lines that are no messages, or each piece of a flood of its standard error, it is not listened to
for this long. What is there already is read without a look at anything else: a server that floods us would stop us."""

_LAST_WORDS_S: Final = 1.0
"""For so long at most the standard error of a stopped server is read on: what it said last tells most."""

_SILENCE_S: Final = 0.2
"""Once nothing came for so long that was all: whoever still holds it open has left the server's group."""

_ID: Final = re.compile(rb'"id"\s*:\s*(\d{1,18})')


class _Answer(msgspec.Struct):
    id: int
    result: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET
    error: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET


Streams: TypeAlias = tuple[ReadStream[SessionMessage | Exception], WriteStream[SessionMessage]]
Read: TypeAlias = MemoryObjectSendStream[SessionMessage | Exception]


@asynccontextmanager
async def child_streams(name: str, argv: Sequence[str], env: Mapping[str, str]) -> AsyncIterator[Streams]:
    """Start a program and speak with it over its standard input and output; it is stopped at the end.

    Raises:
        OSError: it cannot be started.
    """
    loop = asyncio.get_running_loop()
    # Not create_subprocess_exec, whose process cannot be closed while somebody else holds its pipes open.
    transport, protocol = await loop.subprocess_exec(
        lambda: _ChildProtocol(loop),
        *argv,
        env=dict(env),
        stdin=PIPE,
        stdout=PIPE,
        stderr=PIPE,
        start_new_session=True,
    )
    process = Process(transport, protocol, loop)
    heard, hearing = create_memory_object_stream[SessionMessage | Exception](0)
    saying, said = create_memory_object_stream[SessionMessage](0)
    log = ChildLog(name)
    try:
        async with create_task_group() as group, hearing, saying:
            group.start_soon(_listen, process, heard, log)
            group.start_soon(_speak, process, said, heard)
            group.start_soon(_overhear, process, log)
            yield hearing, saying
            group.cancel_scope.cancel()
    finally:
        with CancelScope(shield=True):
            await _stop(process, protocol.ended)
            with move_on_after(_LAST_WORDS_S), suppress(TimeoutError):
                await _overhear(process, log, _SILENCE_S)
            transport.close()
            log.close(process.returncode)


class _ChildProtocol(SubprocessStreamProtocol):
    """Sets `ended` once the child itself has ended. `Process.wait` may wait for everybody who holds its pipes."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__(limit=ANSWER_BYTES_MAX, loop=loop)
        self.ended = asyncio.Event()

    def process_exited(self) -> None:
        """Take in its end."""
        self.ended.set()
        super().process_exited()


async def _listen(process: Process, heard: Read, log: ChildLog) -> None:
    assert process.stdout is not None
    async with heard:
        try:
            while (message := await _next_message(process.stdout, log)) is not None:
                await heard.send(SessionMessage(message))
        except (BrokenResourceError, ClosedResourceError, ConnectionError):
            return  # our own side was closed first, or the child died


async def _next_message(stdout: asyncio.StreamReader, log: ChildLog) -> JSONRPCMessage | None:
    """Return the next message, None at the end. What is none is logged, as programs greet on standard output too."""
    for number in itertools.count(1):
        if number % _NOISE_LINES == 0:
            await asyncio.sleep(_NOISE_PAUSE_S)
        try:
            line = await stdout.readuntil(b"\n")
        except asyncio.IncompleteReadError:
            break
        except asyncio.LimitOverrunError as overrun:
            head = await stdout.readexactly(overrun.consumed)
            await _skip_line(stdout)
            asked = _ID.search(head, 0, _HEAD_BYTES)
            log.say(f"a message of more than {ANSWER_BYTES_MAX} bytes was dropped")
            if asked is None:
                continue
            told = ErrorData(code=INTERNAL_ERROR, message=f"the answer is longer than {ANSWER_BYTES_MAX} bytes")
            return JSONRPCError(jsonrpc="2.0", id=int(asked[1]), error=told)
        message = _message_in(line)
        if message is not None:
            return message
        log.write(line)
    return None


def _message_in(line: bytes) -> JSONRPCMessage | None:
    """Return the message that a line is, None for none. What can only be meant as an answer fails its call."""
    text = line.decode("utf-8", "replace").encode()
    for plain in dict.fromkeys((text, without_halves(text))):
        try:
            return jsonrpc_message_adapter.validate_json(plain, by_name=False)
        except (ValueError, RecursionError):
            continue
    try:
        meant = msgspec.json.decode(text, type=_Answer)
    except (ValueError, RecursionError):
        return None
    if meant.result is msgspec.UNSET and meant.error is msgspec.UNSET:
        return None
    told = ErrorData(code=INTERNAL_ERROR, message="the answer is no message of the protocol")
    return JSONRPCError(jsonrpc="2.0", id=meant.id, error=told)


async def _skip_line(stdout: asyncio.StreamReader) -> None:
    while True:
        try:
            await stdout.readuntil(b"\n")
        except asyncio.LimitOverrunError as overrun:
            await stdout.readexactly(overrun.consumed)
        except asyncio.IncompleteReadError:
            return
        else:
            return


async def _speak(process: Process, said: MemoryObjectReceiveStream[SessionMessage], heard: Read) -> None:
    assert process.stdin is not None
    try:
        async with said:
            async for each in said:
                text = each.message.model_dump_json(by_alias=True, exclude_unset=True)
                process.stdin.write(text.encode("utf-8", "replace") + b"\n")
                await process.stdin.drain()
    except ConnectionError:
        # A child that hears nothing is of no use: whoever waits for it is told so.
        await heard.aclose()


async def _overhear(process: Process, log: ChildLog, silence_s: float | None = None) -> None:
    """Log what it says until the end of that.

    Raises:
        TimeoutError: it said nothing for so long.
    """
    assert process.stderr is not None
    while chunk := await asyncio.wait_for(process.stderr.read(65536), silence_s):
        log.write(chunk)
        if log.is_flooded:
            await asyncio.sleep(_FLOOD_PAUSE_S)


async def _stop(process: Process, ended: asyncio.Event) -> None:
    """End the child as the protocol says: close its input, then ask its whole group, then kill it. Bounded."""
    assert process.stdin is not None
    process.stdin.close()
    for number in (None, signal.SIGTERM, signal.SIGKILL):
        if number is not None:
            _signal_group(process.pid, number)
        try:
            await asyncio.wait_for(ended.wait(), _GRACE_S)
        except TimeoutError:
            continue
        break
    # What it started and left behind is in its group still.
    _signal_group(process.pid, signal.SIGKILL)


def _signal_group(group: int, number: int) -> None:
    try:
        os.killpg(group, number)
    except (ProcessLookupError, PermissionError):
        logging.getLogger("luftpause.tools").debug("process_group_gone", extra={"pid": group, "signal": number})
