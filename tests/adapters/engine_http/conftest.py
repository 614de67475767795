import asyncio
from collections.abc import Callable, Iterator

import pytest
import uvloop

from adapters.engine_http.scripted_engine import LOOP_FACTORY

FACTORIES: dict[str, Callable[[], asyncio.AbstractEventLoop] | None] = {
    "asyncio": None,
    "uvloop": uvloop.new_event_loop,
}


@pytest.fixture(params=FACTORIES)
def each_loop(request: pytest.FixtureRequest) -> Iterator[None]:
    """Run the test on asyncio's own event loop and on uvloop."""
    token = LOOP_FACTORY.set(FACTORIES[request.param])
    yield
    LOOP_FACTORY.reset(token)
