"""Run as a program: a scheduler that accepts a turn, says half of where it is placed, and is then to be killed."""

import asyncio
import sys

from luftpause.adapters.link.codec import FrameReader, client_frame, to_bytes
from luftpause.adapters.link.frames import LINK_PROTOCOL, Accepted, Admit, Hello, Placed, Welcome
from luftpause.core.model.ids import ReplicaId, RunId
from luftpause.core.model.replicas import Endpoint, Placement


async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    frames = FrameReader()
    while data := await reader.read(65536):
        for payload in frames.feed(data):
            match client_frame(payload):
                case Hello():
                    writer.write(to_bytes(Welcome(LINK_PROTOCOL, "to be killed")))
                case Admit(offer=offer):
                    placement = Placement(replica=ReplicaId("one"), endpoint=Endpoint(url="http://lost"), why="")
                    whole = to_bytes(Placed(offer.turn, placement))
                    writer.write(to_bytes(Accepted(offer.turn, RunId("promised"))) + whole[: len(whole) // 2])
                case _:
                    pass


async def main() -> None:
    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    sys.stdout.write(f"{server.sockets[0].getsockname()[1]}\n")
    sys.stdout.flush()
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(main())
