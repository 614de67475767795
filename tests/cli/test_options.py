"""The options that service commands share."""

from pathlib import Path

import click
import pytest
from click.testing import CliRunner, Result

from luftpause.cli.main import LazyGroup, main
from luftpause.cli.options import ServiceOptions, service_options, setting
from luftpause.config.load import Loaded


@pytest.fixture(autouse=True)
def empty_working_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def invoke(*arguments: str) -> tuple[Result, list[tuple[ServiceOptions, Loaded]]]:
    seen: list[tuple[ServiceOptions, Loaded]] = []

    @click.command()
    @service_options()
    @setting("--host", "dataplane.host", help="Address to listen on.")
    @setting("--port", "dataplane.port", help="Port to listen on.")
    def command(options: ServiceOptions) -> None:
        seen.append((options, options.load()))

    class Group(LazyGroup):
        def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command:
            return command

    group = Group(name="luftpause")
    return CliRunner().invoke(group, ["dataplane", *arguments]), seen


def test_without_options_everything_is_default() -> None:
    answer, seen = invoke()
    assert answer.exit_code == 0, answer.output
    assert seen[0][0] == ServiceOptions(config=None, ready_file=None, overrides={}, log_level="info")


def test_settings_and_options_of_their_own_reach_the_configuration() -> None:
    Path("f.toml").write_text("[dataplane]\nport = 1\nhost = 'h'\n", encoding="utf-8")
    answer, seen = invoke(
        "--config",
        "f.toml",
        "--port",
        "9090",
        "--set",
        "runtime.state_dir=a=b",
        "--set",
        "runtime.port=0",
        "--ready-file",
        "r",
    )
    assert answer.exit_code == 0, answer.output
    ((options, loaded),) = seen
    assert options.ready_file == Path("r")
    assert (loaded.config.dataplane.port, loaded.config.dataplane.host) == (9090, "h")
    assert (loaded.config.runtime.port, loaded.config.runtime.state_dir) == (0, "a=b")
    assert loaded.origin("dataplane.port").where == "command line"


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["--port", "abc"], "error: command line: dataplane.port: expected a whole number from 0 to 65535, got 'abc'"),
        (["--set", "dataplane.port"], "'dataplane.port' is not KEY=VALUE, for example dataplane.port=9090"),
        (["--set", "=1"], "'=1' is not KEY=VALUE"),
        (["--set", "dataplne.port=1"], "error: command line: unknown key 'dataplne' — did you mean 'dataplane'?"),
        (["--log-level", "loud"], "'loud' is not one of"),
        (["--config", "absent.toml"], "error: absent.toml: cannot read it"),
    ],
)
def test_a_mistake_on_the_command_line_exits_with_2_and_says_what(arguments: list[str], expected: str) -> None:
    answer, seen = invoke(*arguments)
    assert answer.exit_code == 2
    assert expected in answer.output
    assert seen == []


def test_warnings_are_shown_and_do_not_stop() -> None:
    text = "[[replicas]]\nname='a'\nurl='http://a'\nmodels=['m']\napi_key_env='LUFTPAUSE_TEST_UNSET_KEY'\n"
    Path("luftpause.toml").write_text(text, encoding="utf-8")
    answer, seen = invoke()
    assert answer.exit_code == 0
    assert answer.stderr.startswith("warning: luftpause.toml:5: replicas[0].api_key_env: the variable")
    assert len(seen) == 1


def test_help_shows_all_of_them() -> None:
    answer, _ = invoke("--help")
    for option in ("--config FILE", "--set KEY=VALUE", "--ready-file PATH", "--log-level", "--host", "--port"):
        assert option in answer.output


@pytest.mark.parametrize("word", ["nan", "inf", "-inf"])
@pytest.mark.parametrize(
    "option",
    [
        ("trace", "export", "log", "--last"),
        ("status", "--watch", "--interval"),
        ("doctor", "--patience"),
        ("bench", "w6", "--minutes"),
        ("sim", "w6-light", "--minutes"),
        ("loadgen", "--spawn", "1", "--duration-s"),
        ("fake-engine", "--token-ms"),
        ("fake-mcp", "--delay-s"),
    ],
)
def test_no_time_is_endless_or_no_number(option: tuple[str, ...], word: str) -> None:
    answer = CliRunner().invoke(main, [*option, word])
    assert answer.exit_code == 2, answer.output
    assert option[-1] in answer.output
