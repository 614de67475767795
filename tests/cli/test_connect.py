"""`luftpause connect`."""

import json
import os
import re
import stat
import tomllib
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from luftpause.assembly.embedded import stands_in
from luftpause.cli.connecting.clients import CLIENTS
from luftpause.cli.main import main
from luftpause.config.load import load


@pytest.fixture(autouse=True)
def empty_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    home = tmp_path / "home"
    home.mkdir()
    monkeypatch.chdir(home)
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.delenv("LUFTPAUSE_TOKEN", raising=False)
    return home


def connect(*arguments: str) -> Result:
    return CliRunner().invoke(main, ["connect", *arguments])


@pytest.mark.parametrize("client", CLIENTS)
def test_every_client_is_told_where_the_doors_are(client: str) -> None:
    answer = connect(client, "--model", "qwen")
    assert answer.exit_code == 0, answer.output
    assert "http://127.0.0.1:" in answer.output
    assert "MODEL lists" not in answer.output


def test_addresses_and_the_model_come_from_the_configuration(empty_home: Path) -> None:
    (empty_home / "luftpause.toml").write_text(
        "[dataplane]\nhost = '0.0.0.0'\nport = 1234\n[runtime]\nhost = '::1'\nport = 77\n"
        "[[replicas]]\nname = 'a'\nurl = 'http://a'\nmodels = ['m1', 'm2']\n",
        "utf-8",
    )
    said = connect("codex").output
    assert 'base_url = "http://127.0.0.1:1234/v1"' in said
    assert 'url = "http://[::1]:77/mcp"' in said
    assert 'model = "m1"' in said


def test_where_nothing_is_configured_it_is_the_model_that_up_starts(empty_home: Path) -> None:
    filled = stands_in(load(None, os.environ, {}), os.environ)
    assert filled is not None
    assert f"OPENAI_MODEL={filled.model}" in connect("qwen-code").output


def test_without_a_client_it_lists_those_that_there_are() -> None:
    answer = connect()
    assert answer.exit_code == 0
    assert [name for name in CLIENTS if f"\n{name} " not in f"\n{answer.output}"] == []
    assert "Cursor: spawn and await as tools" in answer.output


def test_without_a_model_it_says_how_to_find_one(empty_home: Path) -> None:
    (empty_home / "luftpause.toml").write_text("[dataplane]\nport = 8080\n", "utf-8")
    assert "# put a model's name in place of MODEL: curl http://127.0.0.1:8080/v1/models lists them" in (
        connect("goose").output
    )


def test_a_token_is_referred_to_and_never_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LUFTPAUSE_TOKEN", "very-secret")
    for client in CLIENTS:
        said = connect(client, "--write").output + connect(client).output
        assert "very-secret" not in said
        assert "LUFTPAUSE_TOKEN" in said, client
    assert not any(b"very-secret" in path.read_bytes() for path in Path.home().rglob("*") if path.is_file())


@pytest.mark.parametrize("token", ["", "secret"])
@pytest.mark.parametrize("client", [name for name in CLIENTS if name not in ("cursor", "codex")])
def test_who_wants_a_key_is_told_of_one(client: str, token: str, monkeypatch: pytest.MonkeyPatch) -> None:
    # Cursor makes no model calls here, and Codex asks for no key unless it is told which variable holds it.
    monkeypatch.setenv("LUFTPAUSE_TOKEN", token)
    said = connect(client, "--door", "llm").output
    assert re.search(r"(?i)key|_auth_token|-k ", said), said


def test_a_door_that_a_client_cannot_use_is_refused_with_the_reason() -> None:
    answer = connect("cursor", "--door", "llm")
    assert answer.exit_code == 1
    assert "cannot reach this machine" in answer.stderr


def test_an_unknown_client_is_told_which_there_are() -> None:
    answer = connect("emacs")
    assert answer.exit_code == 2
    assert "claude-code" in answer.stderr


def test_writing_keeps_what_was_there_and_a_copy_of_it(empty_home: Path) -> None:
    settings = empty_home / ".gemini/settings.json"
    settings.parent.mkdir()
    settings.write_text('{"theme": "ö", "mcpServers": {"other": {"httpUrl": "u"}}}', "utf-8")
    settings.chmod(0o640)
    answer = connect("gemini-cli", "--write", "--model", "m")
    assert answer.exit_code == 0, answer.output
    written = json.loads(settings.read_text("utf-8"))
    assert written["theme"] == "ö"
    assert set(written["mcpServers"]) == {"other", "luftpause"}
    assert written["security"]["auth"]["selectedType"] == "gemini-api-key"
    assert stat.S_IMODE(settings.stat().st_mode) == 0o640
    assert "settings.json.bak" in answer.output
    again = connect("gemini-cli", "--write", "--model", "m")
    assert again.output.count("nothing to change") == 2
    assert json.loads(settings.read_text("utf-8")) == written


def test_a_new_file_is_its_owners_alone(empty_home: Path) -> None:
    assert connect("codex", "--write", "--model", "m").exit_code == 0
    file = empty_home / ".codex/config.toml"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert tomllib.loads(file.read_text("utf-8"))["mcp_servers"]["luftpause"]["tool_timeout_sec"] == 660


def test_a_toml_file_keeps_its_comments_and_order(empty_home: Path) -> None:
    file = empty_home / ".codex/config.toml"
    file.parent.mkdir()
    old = "# mine\napproval = 'never'\n\n[mcp_servers.other]\nurl = 'u' # theirs\n"
    file.write_text(old, "utf-8")
    assert connect("codex", "--write", "--model", "m").exit_code == 0
    text = file.read_text("utf-8")
    assert old in text
    told = tomllib.loads(text)
    assert told["approval"] == "never"
    assert told["model_provider"] == "luftpause"
    assert set(told["mcp_servers"]) == {"other", "luftpause"}


@pytest.mark.parametrize(
    ("client", "path", "text", "why"),
    [
        (
            "codex",
            ".codex/config.toml",
            "mcp_servers = { luftpause = { url = 'mine' } }\n",
            "already says something else",
        ),
        ("codex", ".codex/config.toml", "mcp_servers = 'none'\n", "already says something else"),
        ("codex", ".codex/config.toml", 'model = """\nmine"""\n', "already says something else"),
        ("codex", ".codex/config.toml", "model = [", "it is no TOML"),
        ("zed", ".config/zed/settings.json", "// mine\n{", "not even with comments"),
        ("zed", ".config/zed/settings.json", "[" * 5000, "nested more than"),
        ("cursor", ".cursor/mcp.json", "[]", "no JSON object"),
    ],
)
def test_what_cannot_be_changed_safely_is_left_alone(
    empty_home: Path, client: str, path: str, text: str, why: str
) -> None:
    file = empty_home / path
    file.parent.mkdir(parents=True)
    file.write_text(text, "utf-8")
    answer = connect(client, "--write", "--model", "m")
    assert answer.exit_code == 1
    assert why in answer.stderr
    assert "Put this in by hand" in answer.stderr
    assert file.read_text("utf-8") == text
    assert sorted(os.listdir(file.parent)) == [file.name]


def test_what_somebody_set_before_is_exchanged_in_its_line(empty_home: Path) -> None:
    file = empty_home / ".codex/config.toml"
    file.parent.mkdir()
    file.write_bytes(
        b"# mine\r\nmodel = 'gpt # 5'  # the best\r\napproval = 'never'\r\n\r\n"
        b"[model_providers.luftpause]\r\nname = 'old'\r\nquery = 1 # kept\r\n\r\n[tui]\r\nmodel = 'not this'\r\n"
    )
    assert connect("codex", "--write", "--model", "m").exit_code == 0
    text = file.read_bytes().decode()
    assert "\n" not in text.replace("\r\n", "")
    assert 'model = "m"  # the best\r\n' in text
    assert "query = 1 # kept\r\n" in text
    told = tomllib.loads(text)
    assert told["tui"] == {"model": "not this"}
    assert told["model_providers"]["luftpause"]["wire_api"] == "responses"
    assert connect("codex", "--write", "--model", "m").output.count("nothing to change") == 2


@pytest.mark.parametrize("client", CLIENTS)
def test_who_is_connected_may_be_told_of_another_model_and_of_a_token(
    empty_home: Path, client: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert connect(client, "--write", "--model", "one").exit_code == 0
    monkeypatch.setenv("LUFTPAUSE_TOKEN", "secret")
    said = connect(client, "--write", "--model", "two")
    assert said.exit_code == 0, said.stderr
    texts = {path: path.read_text("utf-8") for path in empty_home.rglob("*") if path.suffix in (".json", ".toml")}
    assert not any("one" in text for text in texts.values() if "x-luftpause-caller" not in text)
    for path, text in texts.items():
        (tomllib.loads if path.suffix == ".toml" else json.loads)(text)


@pytest.mark.parametrize(
    ("client", "path", "text"),
    [("cursor", ".cursor/mcp.json", '{"theme": 1}'), ("codex", ".codex/config.toml", "theme = 1\n")],
)
def test_a_mark_that_an_editor_put_first_stays_there(empty_home: Path, client: str, path: str, text: str) -> None:
    file = empty_home / path
    file.parent.mkdir()
    file.write_text(text, "utf-8-sig")
    assert connect(client, "--write", "--model", "m").exit_code == 0
    written = file.read_bytes()
    assert written.startswith(b"\xef\xbb\xbf")
    assert b"luftpause" in written
    assert written.count(b"\xef\xbb\xbf") == 1


def test_a_read_only_file_is_left_alone(empty_home: Path) -> None:
    file = empty_home / ".cursor/mcp.json"
    file.parent.mkdir()
    file.write_text("{}", "utf-8")
    file.chmod(0o444)
    answer = connect("cursor", "--write")
    assert answer.exit_code == 1
    assert "read-only" in answer.stderr
    assert file.read_text("utf-8") == "{}"


def test_a_file_behind_a_link_is_changed_where_it_is(empty_home: Path, tmp_path: Path) -> None:
    real = tmp_path / "dotfiles.json"
    real.write_text("{}", "utf-8")
    link = empty_home / ".cursor/mcp.json"
    link.parent.mkdir()
    link.symlink_to(real)
    assert connect("cursor", "--write").exit_code == 0
    assert link.is_symlink()
    assert "luftpause" in json.loads(real.read_text("utf-8"))["mcpServers"]


def test_a_file_with_comments_keeps_every_line_of_it(empty_home: Path) -> None:
    file = empty_home / ".config/zed/settings.json"
    file.parent.mkdir(parents=True)
    old = """// Zed settings
{
    "theme": "One", // mine
    /* servers */
    "context_servers": {
        "other": {"url": "u"}, // theirs
    },
}
"""
    file.write_bytes(old.replace("\n", "\r\n").encode())
    assert connect("zed", "--write", "--model", "m").exit_code == 0
    text = file.read_bytes().decode()
    assert "\n" not in text.replace("\r\n", "")
    kept = [line for line in text.split("\r\n") if line in old.split("\n")]
    assert kept[: len(old.splitlines())] == old.splitlines() or set(old.splitlines()) <= set(kept)
    assert '        "luftpause": {' in text.split("\r\n")
    assert (file.parent / "settings.json.bak").read_bytes().decode() == old.replace("\n", "\r\n")
    assert connect("zed", "--write", "--model", "m").output.count("nothing to change") == 2
    assert file.read_bytes().decode() == text


def test_the_copy_is_of_the_text_before_the_command_though_two_recipes_change_the_file(empty_home: Path) -> None:
    file = empty_home / ".gemini/settings.json"
    file.parent.mkdir()
    file.write_text('{"theme": "x"}', "utf-8")
    assert connect("gemini-cli", "--write", "--model", "m").exit_code == 0
    assert (file.parent / "settings.json.bak").read_text("utf-8") == '{"theme": "x"}'


@pytest.mark.parametrize("makes", [os.mkfifo, os.mkdir, lambda path: path.symlink_to(path)])
def test_what_is_no_file_is_neither_waited_for_nor_replaced(empty_home: Path, makes: Callable[[Path], None]) -> None:
    path = empty_home / ".cursor/mcp.json"
    path.parent.mkdir()
    makes(path)
    answer = connect("cursor", "--write")
    assert answer.exit_code == 1
    assert "was left alone" in answer.stderr
    assert os.listdir(path.parent) == [path.name]


def test_a_callers_name_cannot_break_out_of_a_header() -> None:
    assert "evil: 1" not in connect("claude-code", "--caller", "x\r\nevil: 1").output
