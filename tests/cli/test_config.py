"""`luftpause config`."""

import json
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from luftpause.cli.main import main


@pytest.fixture(autouse=True)
def empty_working_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def config(*arguments: str) -> Result:
    return CliRunner().invoke(main, ["config", *arguments])


def test_check_says_what_it_found() -> None:
    assert config("check").output == "ok: the embedded default (replicas: 0, models to launch: 1, tools: 1)\n"
    Path("luftpause.toml").write_text("[[tools]]\nname = 't'\nurl = 'http://t'\ntoken_env = 'NO_SUCH_KEY'\n", "utf-8")
    answer = config("check")
    assert answer.exit_code == 0
    assert answer.stdout == "ok: luftpause.toml (replicas: 0, models to launch: 0, tools: 1)\n"
    assert answer.stderr.startswith("warning: luftpause.toml:4: tools[0].token_env: the variable NO_SUCH_KEY")


def test_check_lists_every_mistake_and_exits_with_2() -> None:
    Path("bad.toml").write_text("[dataplane]\nport = -1\nhots = 'x'\n", "utf-8")
    answer = config("check", "--config", "bad.toml", "--set", "runtime.port=x")
    assert answer.exit_code == 2
    assert answer.stderr.splitlines() == [
        "error: bad.toml:2: dataplane.port: expected a whole number from 0 to 65535, got -1",
        "error: bad.toml:3: unknown key 'dataplane.hots' — did you mean 'dataplane.host'?",
        "error: command line: runtime.port: expected a whole number from 0 to 65535, got 'x'",
    ]


def test_explain_shows_values_and_places() -> None:
    Path("luftpause.toml").write_text("[runtime]\nport = 1\n", "utf-8")
    answer = config("explain", "runtime.port")
    assert answer.output == "runtime.port = 1  # luftpause.toml:2\n"
    everything = config("explain", "--set", "dataplane.port=2").output.splitlines()
    assert "dataplane.port = 2  # command line" in everything
    assert 'scheduler.policy = "turn-admission"  # default' in everything


def test_explain_of_an_unknown_key_exits_with_2_and_names_the_nearest() -> None:
    answer = config("explain", "runtime.prot")
    assert answer.exit_code == 2
    assert answer.stderr == "error: config: unknown key 'runtime.prot' — did you mean 'runtime.port'?\n"


def test_schema_is_json() -> None:
    assert json.loads(config("schema").output)["title"] == "luftpause.toml"


def test_import_prints_a_configuration_that_can_be_used_and_notes_beside_it() -> None:
    Path("swap.yaml").write_text('{"models": {"m": {"cmd": "serve ${PORT}", "filters": {}}}}', "utf-8")
    answer = config("import", "llama-swap", "swap.yaml")
    assert (answer.exit_code, answer.stderr) == (0, "note: models.m.filters: requests go on as they came here\n")
    Path("luftpause.toml").write_text(answer.stdout, "utf-8")
    assert config("check").output == "ok: luftpause.toml (replicas: 0, models to launch: 1, tools: 0)\n"


def test_import_of_something_else_says_so() -> None:
    Path("other.yaml").write_text('{"services": {}}', "utf-8")
    answer = config("import", "llama-swap", "other.yaml")
    assert answer.exit_code == 1
    assert "no llama-swap configuration: it has no `models`" in answer.stderr


SWAP = """\
macros:
  serve: serve --port ${PORT}
models:
  m: &one
    cmd: |
      ${serve}
      --model m.gguf
    ttl: 60
    aliases: [small]
  n:
    <<: *one
    aliases: []
groups:
  pair: {swap: true, members: [m, n]}
"""


def test_import_reads_yaml_with_all_that_people_write() -> None:
    Path("swap.yaml").write_text(SWAP, "utf-8")
    answer = config("import", "llama-swap", "swap.yaml")
    assert (answer.exit_code, answer.stderr) == (0, "")
    assert answer.stdout.count('command = ["serve","--port","${port}","--model","m.gguf"]') == 2
    Path("luftpause.toml").write_text(answer.stdout, "utf-8")
    assert config("check").output == "ok: luftpause.toml (replicas: 0, models to launch: 2, tools: 0)\n"


def test_import_runs_nothing_that_a_file_names_and_says_what_is_not_valid() -> None:
    for text in ("{ bad", "models: !!python/object/apply:os.getcwd []\n", "models:\n\t- x\n"):
        Path("swap.yaml").write_text(text, "utf-8")
        answer = config("import", "llama-swap", "swap.yaml")
        assert answer.exit_code == 1
        assert "is not valid YAML: " in answer.stderr


def test_import_of_yaml_needs_a_package_and_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    Path("swap.yaml").write_text(SWAP, "utf-8")
    monkeypatch.setitem(sys.modules, "yaml", None)
    answer = config("import", "llama-swap", "swap.yaml")
    assert answer.exit_code == 1
    assert f"{sys.executable} -m pip install pyyaml; or write the file as JSON" in answer.stderr


MODEL = """\
[launcher]
model_dir = 'models'
[[launcher.models]]
name = 'm'
"""


@pytest.mark.parametrize(
    ("keys", "place", "says"),
    [
        (
            "backend = 'vllm'\nmodel_path = '../m'",
            "6: launcher.models[0].model_path",
            "lies outside launcher.model_dir",
        ),
        ("backend = 'vllm'\nmodel_path = 'none'", "6: launcher.models[0].model_path", "there is no "),
        ("backend = 'vllm'\nmodel_path = 'm\\u0000'", "6: launcher.models[0].model_path", "cannot be looked at"),
        (f"backend = 'vllm'\nmodel_path = '{'x' * 5000}'", "6: launcher.models[0].model_path", "cannot be looked at"),
        (
            "backend = 'vllm'\nmodel_path = 'm'\nargs = ['--model=x']",
            "7: launcher.models[0].args",
            "set by the launcher",
        ),
        ("backend = 'command'\ncommand = ['x', '${prot}']", "6: launcher.models[0].command", "there are ${port}"),
        ("backend = 'command'\ncommand = ['x']", "6: launcher.models[0].command", "must contain ${port}"),
        (
            "backend = 'vllm'\nmodel_path = 'm'\nenv = {VLLM_API_KEY = 'x'}",
            "7: launcher.models[0].env",
            "set by the launcher",
        ),
    ],
)
def test_check_finds_what_a_start_would_refuse_and_says_where_it_stands(keys: str, place: str, says: str) -> None:
    Path("models/m").mkdir(parents=True)
    Path("luftpause.toml").write_text(MODEL + keys.replace("'m\\u0000'", '"m\\u0000"') + "\n", "utf-8")
    answer = config("check")
    assert answer.exit_code == 2
    assert answer.stderr.startswith(f"error: luftpause.toml:{place}: ")
    assert says in answer.stderr
    assert len(answer.stderr.splitlines()) == 1


def test_check_says_which_key_is_missing_where_no_place_has_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NO_SUCH_KEY", raising=False)
    Path("luftpause.toml").write_text(
        "[launcher]\napi_key_env = 'NO_SUCH_KEY'\n[[launcher.models]]\nname = 'm'\nbackend = 'ollama'\n", "utf-8"
    )
    answer = config("check")
    assert answer.exit_code == 2
    assert answer.stderr == "error: luftpause.toml:2: launcher.api_key_env: the variable NO_SUCH_KEY is not set\n"
