"""Every value with the place that set it."""

from pathlib import Path

import pytest

from luftpause.config.explain import explain
from luftpause.config.load import Loaded, load
from luftpause.config.problems import ConfigError

TEXT = """\
[[replicas]]
name = "a"
url = "http://a"
models = ["m"]
api_key_env = "KEY"
[[tools]]
name = "t"
command = ["t"]
env = { TOKEN = "hunter2" }
"""


@pytest.fixture
def found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Loaded:
    monkeypatch.chdir(tmp_path)
    Path("f.toml").write_text(TEXT, encoding="utf-8")
    env = {"KEY": "hunter2", "LUFTPAUSE_DATAPLANE__PORT": "1"}
    return load(Path("f.toml"), env, {"runtime.port": "2"})


def lines(found: Loaded, key: str = "") -> list[str]:
    return [f"{row.key} = {row.value} # {row.origin.where}" for row in explain(found, key)]


def test_each_value_comes_with_its_place(found: Loaded) -> None:
    assert 'replicas[0].url = "http://a" # f.toml:3' in lines(found)
    assert 'replicas[0].kind = "generative" # default' in lines(found)
    assert "dataplane.port = 1 # env LUFTPAUSE_DATAPLANE__PORT" in lines(found)
    assert "runtime.port = 2 # command line" in lines(found)
    assert "launcher.models = [] # default" in lines(found)


def test_secrets_are_names_only(found: Loaded) -> None:
    assert 'replicas[0].api_key_env = "KEY" # f.toml:5' in lines(found)
    assert r'tools[0].env = {"TOKEN" = "\u2026"} # f.toml:9' in lines(found)
    assert "hunter2" not in "".join(lines(found))


@pytest.mark.parametrize(
    ("key", "expected"),
    [
        ("runtime.port", ["runtime.port"]),
        ("launcher.stop_grace", ["launcher.stop_grace"]),
        ("replicas[0].name", ["replicas[0].name"]),
        ("tools", ["name", "command", "url", "env", "token_env", "timeout", "timeout_max", "concurrency"]),
    ],
)
def test_a_key_narrows_it_down(found: Loaded, key: str, expected: list[str]) -> None:
    assert [row.key.removeprefix("tools[0].") for row in explain(found, key)] == expected


@pytest.mark.parametrize(
    ("key", "expected"),
    [
        ("dataplne", "config: unknown key 'dataplne' — did you mean 'dataplane'?"),
        ("dataplane.prt", "config: unknown key 'dataplane.prt' — did you mean 'dataplane.port'?"),
        ("nowhere.at.all", "config: unknown key 'nowhere.at.all' — known here: "),
    ],
)
def test_an_unknown_key_is_told_what_was_probably_meant(found: Loaded, key: str, expected: str) -> None:
    with pytest.raises(ConfigError) as raised:
        explain(found, key)
    assert str(raised.value).startswith(expected)
