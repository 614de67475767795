"""What holds for all tests: which are slow (`make check` leaves them out), and that none fails because a machine is."""

import signal
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

# How long an example takes says more about what else the machine does than about what is tested.
settings.register_profile("any machine", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("any machine")

# A shell starts what it does not wait for with these ignored, and every program that a test starts would inherit it.
for number, default in ((signal.SIGINT, signal.default_int_handler), (signal.SIGHUP, signal.SIG_DFL)):
    if signal.getsignal(number) is signal.SIG_IGN:
        signal.signal(number, default)

TESTS = Path(__file__).parent
SLOW = (
    "adapters/crew/test_foreman.py",
    "adapters/link/test_client.py",
    "adapters/http_server/test_fuzz.py",
    "adapters/process_host/test_host.py",
    "adapters/test_tether.py",
    "adapters/tools_mcp/",
    "adapters/turns_http/test_client.py",
    "assembly/",
    "cli/examining/test_rounds.py",
    "cli/examining/test_tools.py",
    "cli/test_doctor.py",
    "cli/test_fake_engine.py",
    "cli/test_fake_mcp.py",
    "cli/test_loadgen.py",
    "cli/test_sim.py",
    "cli/test_worker.py",
    "contracts/",
    "core/dialects/anthropic_messages/test_official_client.py",
    "core/dialects/test_fuzz.py",
    "services/dataplane/test_door_fuzz.py",
    "services/dataplane/test_turn_course_streaming.py",
    "services/launcher/test_launcher_service.py",
    "crash/",
    "services/runtime/test_server.py",
    "sim/",
    "stories/",
    "testkit/",
)


def pytest_make_parametrize_id(val: object, argname: str) -> str | None:
    """Names bytes by their argument. Compressed ones hold the second that they were made in, and the processes that
    share the tests (xdist) must find the same names.
    """
    return argname if isinstance(val, bytes) else None


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark them."""
    for item in items:
        if item.path.is_relative_to(TESTS) and item.path.relative_to(TESTS).as_posix().startswith(SLOW):
            item.add_marker(pytest.mark.slow)
