"""A fake engine with its clock and its server, as one block: inside it answers, after it nothing is left."""

import asyncio
import contextlib
import socket
from collections.abc import AsyncIterator

from luftpause.testkit.fake_engine.app import FakeEngineApp
from luftpause.testkit.fake_engine.settings import Settings
from luftpause.testkit.serving import bind, serving, url_of


@contextlib.asynccontextmanager
async def fake_engine(settings: Settings | None = None, *, listener: socket.socket | None = None) -> AsyncIterator[str]:
    """Serve a fake engine and yield its base URL; without a listener on a free port of the loopback.

    On leaving, requests under way are cut off, as by an engine that is stopped.
    """
    bound = listener or bind("127.0.0.1", 0)
    url = url_of(bound)
    app = FakeEngineApp(settings or Settings())
    steps = asyncio.create_task(app.engine.run(), name="fake-engine")
    try:
        async with serving(app, bound, lifespan=False):
            try:
                yield url
            finally:
                app.engine.leave_all()
    finally:
        steps.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await steps
