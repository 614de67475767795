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
        "peers: declare each under [[replicas]]",
        "models.llama.checkEndpoint: here every engine must answer a health path; '/' is asked",
        "models.embed.cmdStop: left out, a signal ends the engine's whole group of processes here",
        "models.embed.concurrencyLimit: turns wait here until their engine has room",
        "models.qwen.aliases: bad name left out, it cannot be used as a name here",
        "models.qwen.env: odd left out, it has no value",
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


NEW = {
    "startPort": 10001,
    "apiKeys": ["${env.KEY}"],
    "globalTTL": 0,
    "selectors": {"any": {"strategy": "warm", "targets": ["coder"]}},
    "macros": {"server": "/opt/llama-server --port ${PORT}", "jinja": True, "ctx": 4096, "home": "${env.HOME}"},
    "models": {
        "coder": {
            "cmd": "# the first line\n${server}\n-m /m/coder.gguf --ctx-size ${ctx} --jinja=${jinja}\n",
            "name": "Coder",
            "macros": {"ctx": 16384},
            "aliases": ["${MODEL_ID}-big"],
            "env": ["PORTS=${PORT}", "CTX=${ctx}"],
            "unloadTimeout": 60,
            "useModelName": "org/coder",
            "filters": {"stripParams": "temperature", "setParamsByID": {"${MODEL_ID}:high": {}}},
            "unlisted": True,
        },
        "fixed": {"cmd": "serve --at 8999", "proxy": "http://127.0.0.1:8999"},
        "boxed": {"cmd": "docker run --name ${MODEL_ID} -p ${PORT}:8080 img", "cmdStop": "docker stop ${MODEL_ID}"},
        "loose": {"cmd": "/usr/bin/podman run -p ${PORT}:8080 img", "proxy": "http://127.0.0.1:${PORT}"},
        "far": {"cmd": "ssh box serve -m ${home}/m ${PORT}", "proxy": "http://box:${PORT}/v9"},
    },
    "routing": {
        "router": {"use": "group", "settings": {"groups": {"g": {"members": ["coder", "ghost"], "swap": False}}}},
        "scheduler": {"use": "fifo"},
    },
    "hooks": {"on_startup": {"preload": ["coder", "none"], "profile": "day"}},
}


def test_a_file_of_today_keeps_its_groups_ports_and_macros() -> None:
    launcher = config_of(NEW).launcher
    assert [(group.name, group.swap, group.exclusive) for group in launcher.groups] == [
        ("g", False, True),
        ("default", True, True),
    ]
    coder, fixed, boxed, loose, _ = launcher.models
    assert coder.command == [
        *("/opt/llama-server", "--port", "${port}", "-m", "/m/coder.gguf", "--ctx-size", "16384", "--jinja=true")
    ]
    assert (coder.aliases, coder.env, coder.group, coder.preload) == (
        ["coder-big"],
        {"CTX": "16384"},
        "g",
        True,
    )
    assert (fixed.port, fixed.command) == (8999, ["serve", "--at", "8999"])
    assert (boxed.stop_command, boxed.port) == (["docker", "stop", "boxed"], 0)
    assert loose.port == 0


def test_what_a_file_of_today_says_beyond_us_is_noted_with_a_way() -> None:
    assert set(imported(NEW).notes) == {
        "startPort: engines get free ports here",
        "apiKeys: set LUFTPAUSE_TOKEN, or declare [[principals]]",
        "selectors: see default_model and [[rules]]",
        "routing.scheduler: has no counterpart here",
        "groups.g: there is no model ghost",
        "hooks.on_startup.profile: has no counterpart here",
        "hooks.on_startup.preload: there is no model none",
        "models.coder.env: PORTS left out, only commands can say ${PORT} here",
        "models.coder.name: has no counterpart here",
        "models.coder.unloadTimeout: launcher.stop_grace is for all models here",
        "models.coder.useModelName: an engine is asked for the model's own name here",
        "models.coder.filters: requests go on as they came here",
        "models.coder.unlisted: every model is listed here",
        "models.loose: a container needs a stop_command here, else what answers on its port is a stranger",
        "models.far.cmd: knows no ${env.HOME} here; write what it stands for",
        "models.far.proxy: engines are asked at launcher.host and their port here, with no path before it",
    }


def test_a_matrix_is_left_to_memory() -> None:
    matrix = {"router": {"use": "matrix", "settings": {"matrix": {"sets": {"all": "a & b"}}}}}
    tree = {"models": {"a": {"cmd": "serve ${PORT}"}, "b": {"cmd": "serve ${PORT}"}}, "routing": matrix}
    launcher = config_of(tree).launcher
    assert (launcher.groups, [model.group for model in launcher.models]) == ([], ["", ""])
    assert imported(tree).notes == (
        "routing.router.settings.matrix: has no counterpart here; memory decides what stays together",
    )
