from pathlib import Path

import click
import pytest

from cli.program import run
from luftpause.assembly.doors import Access
from luftpause.cli.access import access_of, access_option
from luftpause.config.load import load

PRINCIPALS = """
[[principals]]
name = "alice"
token_env = "ALICE_TOKEN"
[[principals]]
name = "bob"
token_env = "BOB_TOKEN"
"""


# Each door once, each kind of host at least once; tests/assembly/test_doors.py has all hosts without a start for each.
@pytest.mark.parametrize(
    ("service", "door", "host"),
    [
        ("up", "dataplane", "0.0.0.0"),
        ("up", "scheduler", "::"),
        ("up", "runtime", "192.0.2.7"),
        ("scheduler", "scheduler", "box.example"),
        ("dataplane", "dataplane", "::"),
        ("runtime", "runtime", "0.0.0.0"),
    ],
)
def test_no_door_opens_to_other_machines_without_a_token(tmp_path: Path, service: str, door: str, host: str) -> None:
    ended = run(service, "--set", f"{door}.host={host}", "--set", f"{door}.port=0", cwd=tmp_path)

    assert ended.returncode == 1
    [error] = [line for line in ended.stderr.splitlines() if line.startswith("error: ")]
    assert error.startswith(f"error: {door}.host {host!r} is reachable from other machines")
    assert error.endswith("set LUFTPAUSE_TOKEN, or say --allow-unauthenticated")
    assert ended.stderr.count("LUFTPAUSE_TOKEN is not set") == 1


@pytest.mark.parametrize(
    ("service", "env", "says"),
    [
        ("up", {"ALICE_TOKEN": "a"}, "principals[1].token_env: the variable BOB_TOKEN is not set"),
        ("dataplane", {"ALICE_TOKEN": "a", "BOB_TOKEN": "a"}, "BOB_TOKEN holds the same token as principals[0]"),
        ("runtime", {"ALICE_TOKEN": "a", "BOB_TOKEN": "t"}, "BOB_TOKEN holds the same token as LUFTPAUSE_TOKEN"),
    ],
)
def test_a_principal_without_a_token_of_its_own_ends_the_start(
    tmp_path: Path, service: str, env: dict[str, str], says: str
) -> None:
    (tmp_path / "luftpause.toml").write_text(PRINCIPALS)

    ended = run(service, cwd=tmp_path, env={"LUFTPAUSE_TOKEN": "t", **env})

    assert ended.returncode == 2
    assert says in ended.stderr
    assert "Traceback" not in ended.stderr


def access(tmp_path: Path, text: str = "") -> Access:
    """Return what `access_of` makes of a configuration."""
    (tmp_path / "luftpause.toml").write_text(text)
    made: list[Access] = []

    @click.command()
    @access_option
    def command() -> None:
        made.append(access_of(click.get_current_context(), load(tmp_path / "luftpause.toml", {}, {}).config))

    command.main([], standalone_mode=False)
    return made[0]


def test_who_has_the_token_is_not_warned_and_who_has_none_is_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("LUFTPAUSE_TOKEN", "secret\n")
    assert access(tmp_path).token == "secret"
    assert capsys.readouterr().err == ""
    monkeypatch.delenv("LUFTPAUSE_TOKEN")
    assert access(tmp_path).token == ""
    assert capsys.readouterr().err == "warning: LUFTPAUSE_TOKEN is not set: whoever can reach a door may use it\n"


def test_where_only_principals_have_tokens_nobody_knows_the_operators(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, token in (("ALICE_TOKEN", "a"), ("BOB_TOKEN", "b")):
        monkeypatch.setenv(name, token)
    monkeypatch.delenv("LUFTPAUSE_TOKEN", raising=False)

    one, other = access(tmp_path, PRINCIPALS), access(tmp_path, PRINCIPALS)

    assert len(one.token) > 40
    assert one.token != other.token
    assert capsys.readouterr().err.count("status and link are closed to everybody") == 2
    assert [key.principal.name for key in one.principals] == ["alice", "bob"]
