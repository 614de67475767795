"""Whether anything is sent. That nothing is imported otherwise: tests/stories/test_tracing.py."""

import asyncio
import sys

import pytest

from luftpause.assembly.doors import Access
from luftpause.assembly.observing import ENDPOINT_VARIABLE, observed
from luftpause.assembly.parts import Plans
from luftpause.assembly.start_failed import StartFailedError
from luftpause.config.schema import Config

PLANS = Plans(config=Config(), access=Access())


async def look() -> tuple[bool, bool]:
    async with observed(PLANS) as plans:
        return plans.telemetry is not None, plans.tracer("dataplane") is not None


@pytest.mark.parametrize(
    ("env", "sends"),
    [
        ({}, False),
        ({ENDPOINT_VARIABLE: " "}, False),
        ({ENDPOINT_VARIABLE: "http://127.0.0.1:9", "OTEL_SDK_DISABLED": "true"}, False),
        ({ENDPOINT_VARIABLE: "http://127.0.0.1:9"}, True),
    ],
)
def test_the_environment_decides(env: dict[str, str], sends: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (ENDPOINT_VARIABLE, "OTEL_SDK_DISABLED"):
        monkeypatch.delenv(name, raising=False)
    for name, value in env.items():
        monkeypatch.setenv(name, value)
    assert asyncio.run(look()) == (sends, sends)


def test_a_missing_extra_is_named_with_the_way_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(ENDPOINT_VARIABLE, "http://127.0.0.1:9")
    monkeypatch.setitem(sys.modules, "luftpause.adapters.otlp.exporting", None)
    with pytest.raises(StartFailedError, match=r"pip install 'luftpause\[otel\]'"):
        asyncio.run(look())
