"""A llama-swap configuration in our words."""

import tomllib

import msgspec
import pytest

from luftpause.config.check import check
from luftpause.config.llama_swap import NotLlamaSwapError, imported
from luftpause.config.schema import Config

WHOLE = {
    "globalTTL": 300,
    "healthCheckTimeout": 60,
    "macros": {"server": "llama-server --port ${PORT}", "fast": "${server} -fa on"},
    "models": {
        "qwen": {
            "cmd": "${fast} \\\n  # the small one\n  -m '/models/q wen.gguf' --alias ${MODEL_ID}",
            "aliases": ["q", "bad name"],
            "ttl": 60,
            "env": ["CUDA_VISIBLE_DEVICES=0", "odd"],
        },
        "llama": {"cmd": "${fast}", "ttl": 0, "checkEndpoint": "none"},
        "embed": {"cmd": "serve ${PORT}", "cmdStop": "docker stop ${PID}", "concurrencyLimit": 3},
    },
    "groups": {"always": {"members": ["embed"], "swap": False, "exclusive": False, "persistent": True}},
    "hooks": {"on_startup": {"preload": ["embed"]}},
    "peers": {},
}


def config_of(tree: object) -> Config:
    config = msgspec.convert(tomllib.loads(imported(tree).text), Config)
    assert list(check(config)) == []
    return config


def test_it_can_be_used_as_it_is() -> None:
    launcher = config_of(WHOLE).launcher
    assert (launcher.ttl, launcher.stop_grace) == ("300s", "10s")
    assert [(group.name, group.swap, group.exclusive, group.persistent) for group in launcher.groups] == [
        ("always", False, False, True),
        ("default", True, True, False),
    ]
    qwen, llama, embed = launcher.models
    assert qwen.command == [
        *("llama-server", "--port", "${port}", "-fa", "on", "-m", "/models/q wen.gguf", "--alias", "qwen")
    ]
    assert (qwen.aliases, qwen.ttl, qwen.group, qwen.env) == (["q"], "60s", "default", {"CUDA_VISIBLE_DEVICES": "0"})
    assert qwen.readiness_timeout == "60s"
    assert (llama.ttl, llama.health) == ("never", "/")
    assert (embed.ttl, embed.group, embed.preload) == ("", "always", True)


def test_what_has_no_counterpart_is_noted() -> None:
    assert set(imported(WHOLE).notes) == {
        "peers: has no counterpart here",
        "models.llama.checkEndpoint: here every engine must answer a health path; '/' is asked",
        "models.embed.cmdStop: knows no ${PID} here; write what it stands for",
        "models.embed.concurrencyLimit: has no counterpart here",
    }


def test_odd_models_are_noted_and_harm_no_other() -> None:
    found = imported({"models": {"a b": {"cmd": "x"}, "c": {"cmd": "say 'x"}, "d": {"cmd": "serve"}, "e": 7}})
    assert found.notes[0] == "models.a b: left out, its name cannot be used here"
    assert found.notes[1].startswith("models.c.cmd: cannot be cut into words")
    assert "models.d: its command does not say ${PORT}; give the model its `port`" in found.notes


def test_macros_that_name_themselves_come_to_an_end() -> None:
    assert "${a}" in imported({"macros": {"a": "x ${a}"}, "models": {"m": {"cmd": "${a} ${PORT}"}}}).text


@pytest.mark.parametrize("tree", [None, [], {}, {"models": []}, "x"])
def test_anything_else_is_refused(tree: object) -> None:
    with pytest.raises(NotLlamaSwapError):
        imported(tree)
