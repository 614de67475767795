"""Every key that can be set reaches the settings of whoever acts on it."""

from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from luftpause.adapters.journal_file.journal import Upkeep
from luftpause.adapters.link.server import Graces
from luftpause.adapters.turns_http.retry import Patience
from luftpause.assembly.declared import (
    dataplane_settings,
    engine_key,
    kv_folder,
    link_graces,
    patience,
    principal_keys,
    replica_specs,
    require_keys,
    runtime_settings,
    scheduler_settings,
    upkeep,
)
from luftpause.config.problems import ConfigError
from luftpause.config.schema import Config
from luftpause.core.dialects.edits import Edit
from luftpause.core.model.turns import ServiceClass
from luftpause.services.dataplane.settings import DataplaneSettings
from luftpause.services.runtime.orders import RuntimeSettings
from luftpause.services.scheduler.settings import SchedulerSettings

Reader = Callable[[Config], object]


def dataplane(name: str) -> Reader:
    return lambda config: getattr(dataplane_settings(config), name)


def scheduler(name: str) -> Reader:
    return lambda config: getattr(scheduler_settings(config), name)


def limit(name: str) -> Reader:
    return lambda config: getattr(scheduler_settings(config).limits, name)


def runtime(name: str) -> Reader:
    return lambda config: getattr(runtime_settings(config), name)


def turns(name: str) -> Reader:
    return lambda config: getattr(patience(config), name)


def graces(name: str) -> Reader:
    return lambda config: getattr(link_graces(config), name)


def retention(name: str) -> Reader:
    return lambda config: getattr(upkeep(config).retention, name)


KEYS: list[tuple[str, object, Reader, object]] = [
    ("dataplane.max_body", "2KiB", dataplane("max_body_bytes"), 2048),
    ("dataplane.body_timeout", "7s", dataplane("body_timeout_s"), 7.0),
    ("dataplane.caller_bytes", 9, dataplane("caller_bytes"), 9),
    ("dataplane.caller_bytes", 9, runtime("caller_bytes"), 9),
    ("dataplane.edits", ["id_slot"], dataplane("edits"), frozenset((Edit.ID_SLOT,))),
    ("dataplane.renew_period", "7s", dataplane("renew_period_s"), 7.0),
    ("dataplane.renew_period", "2m", dataplane("renew_period_s"), 75.0),  # an eighth of the turn timeout
    ("scheduler.turn_timeout", "8s", dataplane("renew_period_s"), 1.0),
    ("dataplane.link_timeout", "7s", dataplane("link_timeout_s"), 7.0),
    ("dataplane.link_retry", "7s", graces("others_s"), 7.0),
    ("scheduler.link_grace", "7s", graces("peer_s"), 7.0),
    ("scheduler.resync_grace", "7s", graces("resync_s"), 7.0),
    ("scheduler.turn_timeout", "7s", limit("turn_timeout_s"), 7.0),
    ("scheduler.run_idle_expiry", "7s", limit("run_idle_expiry_s"), 7.0),
    ("scheduler.tool_call_memory", "7s", scheduler("tool_call_memory_s"), 7.0),
    ("scheduler.probe_period", "7s", scheduler("probe_period_s"), 7.0),
    ("scheduler.probe_timeout", "7s", scheduler("probe_timeout_s"), 7.0),
    ("scheduler.probe_eager", "7s", scheduler("probe_eager_s"), 7.0),
    ("scheduler.not_ready_warning", "7s", scheduler("not_ready_warning_s"), 7.0),
    ("runtime.keep_runs", 7, retention("keep_runs"), 7),
    ("runtime.keep_for", "7d", retention("keep_for_s"), 7 * 86_400.0),
    ("runtime.keep_for", "0s", retention("keep_for_s"), None),
    ("runtime.default_model", "m", runtime("default_model"), "m"),
    ("runtime.max_running", 7, runtime("max_running"), 7),
    ("runtime.max_tool_calls", 3, runtime("max_tool_calls"), 3),
    ("runtime.max_tokens", 3, runtime("max_tokens"), 3),
    ("runtime.await_default", "7s", runtime("await_default_s"), 7.0),
    ("runtime.await_max", "7s", runtime("await_max_s"), 7.0),
    ("runtime.progress_period", "7s", runtime("progress_every_s"), 7.0),
    ("runtime.orphan_grace", "3s", runtime("orphan_grace_s"), 3.0),
    ("runtime.turn_timeout", "7s", turns("turn_timeout_s"), 7.0),
    ("runtime.turn_tries", 7, turns("tries"), 7),
    ("runtime.retry_pause", "7s", turns("backoff_s"), 7.0),
    ("runtime.retry_pause_max", "7s", turns("backoff_max_s"), 7.0),
    ("runtime.rate_limit_pause", "7s", turns("rate_limit_pause_s"), 7.0),
]


@pytest.mark.parametrize(("key", "value", "read", "expected"), KEYS)
def test_a_key_that_is_set_arrives(key: str, value: object, read: Reader, expected: object) -> None:
    section, name = key.split(".")
    config = msgspec.convert({section: {name: value}}, Config)
    assert read(config) == expected
    assert read(Config()) != expected


def test_weights_of_principals_and_callers_reach_the_policy_that_weighs() -> None:
    config = msgspec.convert(
        {
            "principals": [
                {"name": "alice", "token_env": "A", "weight": 2},
                {"name": "bob", "token_env": "B"},
            ],
            "scheduler": {"policy": "working-set", "caller_weights": {"ci": 0.5}},
        },
        Config,
    )
    limits = scheduler_settings(config).limits.working_set
    assert limits is not None
    assert dict(limits.weights.principals) == {"alice": 2.0}
    assert dict(limits.weights.callers) == {"ci": 0.5}


@pytest.mark.parametrize("allowed", [True, False])
def test_engines_are_told_of_caps_only_where_the_operator_allows_it(allowed: bool) -> None:
    said = {"policy": "working-set", **({"reply_caps": True} if allowed else {})}
    limits = scheduler_settings(msgspec.convert({"scheduler": said}, Config)).limits.working_set
    assert limits is not None
    assert limits.reply_caps is allowed


def test_the_defaults_of_the_file_are_those_of_the_settings() -> None:
    config = Config()
    assert dataplane_settings(config) == DataplaneSettings()
    assert scheduler_settings(config) == SchedulerSettings()
    assert runtime_settings(config) == RuntimeSettings()
    assert patience(config) == Patience()
    assert link_graces(config) == Graces()
    assert upkeep(config) == Upkeep()


def test_kv_lies_below_the_folder_of_the_state_which_alone_may_be_a_link(tmp_path: Path) -> None:
    (tmp_path / "real" / "kv").mkdir(parents=True)
    (tmp_path / "state").symlink_to(tmp_path / "real")
    (tmp_path / "real" / "kv" / "here").symlink_to(tmp_path)
    model = {"name": "m", "backend": "command", "command": ["serve", "${port}"]}
    section = {"name": "here", "state_dir": str(tmp_path / "state"), "models": [model]}
    assert kv_folder(msgspec.convert({"launcher": section}, Config)) == tmp_path / "real" / "kv" / "here"
    assert kv_folder(msgspec.convert({"launcher": {**section, "kv_parking": "off"}}, Config)) is None
    assert kv_folder(msgspec.convert({"launcher": {**section, "models": []}}, Config)) is None


REPLICA = {"name": "a", "url": "https://host/api/", "models": ["m"], "load_from": ["http://b/"]}


def test_a_replica_is_declared_as_the_file_says() -> None:
    config = msgspec.convert({"replicas": [{**REPLICA, "health": "/v1/models", "engine": "openai"}]}, Config)
    (found,) = replica_specs(config)
    assert (found.endpoint.url, found.load_from, found.health) == ("https://host/api", ("http://b",), "/v1/models")
    assert found.engine.value == "openai"


def test_a_key_that_is_not_set_is_named_and_only_that() -> None:
    replicas = [{**REPLICA, "name": name, "api_key_env": name} for name in ("A", "B", "C")]
    config = msgspec.convert({"replicas": replicas}, Config)
    with pytest.raises(ConfigError) as caught:
        require_keys(config, {"A": "x", "B": " "})
    assert str(caught.value) == (
        "environment: replicas[1].api_key_env: the variable B is not set\n"
        "environment: replicas[2].api_key_env: the variable C is not set"
    )
    require_keys(config, {"A": "x", "B": "y", "C": "z"})
    require_keys(Config(), {})


def principals(**tokens: str) -> Config:
    rows = [{"name": name.lower(), "token_env": name} for name in tokens]
    return msgspec.convert({"principals": rows}, Config)


def test_each_principal_has_its_token_and_its_classes() -> None:
    rows = [
        {"name": "alice", "token_env": "A"},
        {"name": "nightly", "token_env": "B", "classes": ["batch", "interactive"]},
        {"name": "slow", "token_env": "C", "classes": ["batch"]},
    ]
    config = msgspec.convert({"principals": rows}, Config)

    keys = principal_keys(config, {"A": "a\n", "B": "b", "C": "c"}, operator_token="o")

    assert [key.token for key in keys] == ["a", "b", "c"]
    assert [key.principal.name for key in keys] == ["alice", "nightly", "slow"]
    both = (ServiceClass.INTERACTIVE, ServiceClass.BATCH)
    assert [key.principal.classes for key in keys] == [both, both[::-1], (ServiceClass.BATCH,)]
    assert not any(key.principal.sees_all for key in keys)


@pytest.mark.parametrize(
    ("tokens", "says"),
    [
        ({"A": "a", "B": ""}, "principals[1].token_env: the variable B is not set"),
        ({"A": "a", "B": " "}, "principals[1].token_env: the variable B is not set"),
        ({"A": "a", "B": "a"}, "principals[1].token_env: the variable B holds the same token as principals[0]"),
        ({"A": "a", "B": "o"}, "principals[1].token_env: the variable B holds the same token as LUFTPAUSE_TOKEN"),
        ({"A": "secret\nx", "B": "b"}, "principals[0].token_env: the variable A holds a character that no client"),
        ({"A": "sécret", "B": "b"}, "principals[0].token_env: the variable A holds a character that no client"),
    ],
)
def test_a_token_that_cannot_be_used_is_named_by_its_variable_alone(tokens: dict[str, str], says: str) -> None:
    with pytest.raises(ConfigError) as refused:
        principal_keys(principals(**tokens), tokens, operator_token="o")
    [problem] = refused.value.problems
    assert str(problem).startswith(f"environment: {says}")
    assert "cret" not in str(problem)


MODEL = {"name": "m", "backend": "command", "command": ["serve", "${port}"]}


@pytest.mark.parametrize(
    ("section", "env", "problem"),
    [
        ({"host": "0.0.0.0", "models": [MODEL]}, {}, "engines on 0.0.0.0 would answer whoever reaches it"),
        ({"host": "box.lan", "models": [MODEL]}, {"KEY": "x"}, "engines on box.lan would answer whoever reaches it"),
        ({"host": "box.lan", "api_key_env": "KEY", "models": [MODEL]}, {"KEY": " "}, "the variable KEY is not set"),
        ({"api_key_env": "KEY"}, {}, "the variable KEY is not set"),
    ],
)
def test_engines_that_others_reach_need_a_key(section: dict[str, object], env: dict[str, str], problem: str) -> None:
    launcher = msgspec.convert({"launcher": section}, Config).launcher
    with pytest.raises(ConfigError, match=problem):
        engine_key(launcher, env)


@pytest.mark.parametrize(
    ("section", "key"),
    [
        ({"models": [MODEL]}, ""),
        ({"host": "localhost", "models": [MODEL]}, ""),
        ({"host": "0.0.0.0"}, ""),
        ({"host": "box.lan", "api_key_env": "KEY", "models": [MODEL]}, "secret"),
    ],
)
def test_the_key_of_engines_is_that_of_its_variable(section: dict[str, object], key: str) -> None:
    launcher = msgspec.convert({"launcher": section}, Config).launcher
    assert engine_key(launcher, {"KEY": "secret"}) == key
