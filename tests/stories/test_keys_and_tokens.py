"""Keys and tokens that are missing or odd: what is said must be what happens."""

import subprocess
import sys
from pathlib import Path

import pytest

from stories.programs import running
from stories.raw_wire import Engine, ask, chat_body, status
from stories.set_ups import FREE_PORTS, launched_engines, write

pytestmark = pytest.mark.timeout(120)
SPARE = launched_engines(instances=1).replace('"fake"', '"spare"', 1)


def keyed(engine: Engine) -> str:
    return f'[[replicas]]\nname = "a"\nurl = "{engine.url}"\nmodels = ["fake"]\napi_key_env = "ENGINE_KEY"\n'


@pytest.mark.parametrize("service", ["up", "scheduler", "dataplane"])
def test_an_engine_whose_key_is_not_set_ends_the_start_with_the_variables_name(tmp_path: Path, service: str) -> None:
    """Nothing could ever be sent there, so whoever starts it must hear of it now."""
    with Engine() as engine:
        config = write(tmp_path, FREE_PORTS.replace("[scheduler]\nport = 0", "[scheduler]\nport = 1"), keyed(engine))
        command = [sys.executable, "-m", "luftpause", service, "--config", config]
        ended = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False)
    assert ended.returncode == 2
    assert "error: environment: replicas[0].api_key_env: the variable ENGINE_KEY is not set" in ended.stderr
    assert "Traceback" not in ended.stderr


def test_a_key_that_cannot_be_sent_is_named_by_its_variable_as_the_reason(tmp_path: Path) -> None:
    with Engine() as engine:
        config = write(tmp_path, FREE_PORTS, keyed(engine), SPARE)
        with running(tmp_path, "up", "up", "--config", config, env={"ENGINE_KEY": "two\nlines"}) as up:
            ask(up.url("dataplane"), chat_body(), within_s=4.0)
            [replica] = [each for each in status(up.url("scheduler"))["replicas"] if each["name"] == "a"]
            assert "ENGINE_KEY" in str(replica["why"])
            assert "two" not in str(replica["why"])


@pytest.mark.parametrize("token", ["secret\n", " secret"])
def test_a_token_from_a_file_is_taken_without_its_line_break(tmp_path: Path, token: str) -> None:
    with Engine() as engine:
        config = write(tmp_path, FREE_PORTS, keyed(engine).replace('api_key_env = "ENGINE_KEY"\n', ""), SPARE)
        with running(tmp_path, "up", "up", "--config", config, env={"LUFTPAUSE_TOKEN": token}) as up:
            assert ask(up.url("dataplane"), chat_body(), "authorization: Bearer secret").status == 200
            assert ask(up.url("dataplane"), chat_body()).status == 401


def test_blanks_after_an_api_key_are_no_part_of_it(tmp_path: Path) -> None:
    with Engine() as engine:
        config = write(tmp_path, FREE_PORTS, keyed(engine).replace('api_key_env = "ENGINE_KEY"\n', ""), SPARE)
        with running(tmp_path, "up", "up", "--config", config, env={"LUFTPAUSE_TOKEN": "secret"}) as up:
            assert ask(up.url("dataplane"), chat_body(), "x-api-key: secret ").status == 200
