"""Whether anything leaves this process beside logs: OpenTelemetry's variables decide, and load it only then."""

import asyncio
import importlib
import os
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Final, Protocol

from luftpause.assembly.parts import Plans
from luftpause.assembly.start_failed import StartFailedError
from luftpause.ports.tracing import Telemetry

ENDPOINT_VARIABLE: Final = "OTEL_EXPORTER_OTLP_ENDPOINT"
_OFF_VARIABLE: Final = "OTEL_SDK_DISABLED"
_ADAPTER: Final = "luftpause.adapters.otlp.exporting"


class _Exporting(Telemetry, Protocol):
    def start(self) -> None: ...

    def close(self) -> None: ...


@asynccontextmanager
async def observed(plans: Plans) -> AsyncIterator[Plans]:
    """Yield the plans with somewhere to send spans and counts, where that is asked for.

    At the end what is left is sent, for two seconds at most.

    Raises:
        StartFailedError: it is asked for, and OpenTelemetry is not installed.
    """
    if not _is_wanted(os.environ):
        yield plans
        return
    exporting = _exporting(os.environ)
    exporting.start()
    try:
        yield replace(plans, telemetry=exporting)
    finally:
        await asyncio.to_thread(exporting.close)


def _is_wanted(env: Mapping[str, str]) -> bool:
    return bool(env.get(ENDPOINT_VARIABLE, "").strip()) and env.get(_OFF_VARIABLE, "").strip().lower() != "true"


def _exporting(env: Mapping[str, str]) -> _Exporting:
    try:
        exporting: _Exporting = importlib.import_module(_ADAPTER).OtlpTelemetry(env)
    except ImportError as error:
        raise StartFailedError(
            f"{ENDPOINT_VARIABLE}: is set, but what sends spans is not installed: pip install 'luftpause[otel]', "
            "or unset the variable"
        ) from error
    return exporting
