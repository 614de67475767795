"""What no single key can tell."""

import msgspec
import pytest

from luftpause.config.check import check, unset_secrets
from luftpause.config.problems import dotted
from luftpause.config.schema import Config

REPLICA = {"name": "a", "url": "http://a:1", "models": ["m"]}
LLAMA = {"name": "l", "backend": "llama.cpp", "model_path": "l.gguf"}
OWN = {"name": "o", "backend": "command", "command": ["serve"]}
TOOL = {"name": "t", "command": ["tool"]}
ALICE = {"name": "alice", "token_env": "ALICE_TOKEN"}


def found(**sections: object) -> list[str]:
    config = msgspec.convert(sections, Config)
    return [f"{dotted(path)}: {what}" for path, what in check(config)]


def replica(**keys: object) -> dict[str, object]:
    return {"replicas": [{**REPLICA, **keys}]}


def model(**keys: object) -> dict[str, object]:
    return {"launcher": {"models": [{**OWN, **keys}]}}


def tool(**keys: object) -> dict[str, object]:
    return {"tools": [{**TOOL, **keys}]}


def alice(**keys: object) -> dict[str, object]:
    return {"principals": [{**ALICE, **keys}]}


def test_the_default_and_a_full_configuration_are_fine() -> None:
    assert found() == []
    assert found(replicas=[REPLICA], launcher={"models": [LLAMA, OWN]}, tools=[TOOL]) == []


@pytest.mark.parametrize(
    ("sections", "expected"),
    [
        ({"replicas": [REPLICA, REPLICA]}, "replicas[1].name: the name 'a' is taken by replicas[0].name"),
        ({"tools": [TOOL, TOOL]}, "tools[1].name: the name 't' is taken by tools[0].name"),
        (
            {"launcher": {"models": [{**LLAMA, "aliases": ["o"]}, OWN]}},
            "launcher.models[1].name: the name 'o' is taken by launcher.models[0].aliases[0]",
        ),
        (
            model(aliases=["x", "x"]),
            "launcher.models[0].aliases[1]: the name 'x' is taken by launcher.models[0].aliases[0]",
        ),
        *(
            (
                {
                    "replicas": [{**REPLICA, "name": f"o-{end}"}],
                    "launcher": {"models": [LLAMA, {**engine, "name": "o"}]},
                },
                f"launcher.models[1].name: its engine would be called 'o-{end}', which replicas[0].name is; "
                "call one of them otherwise",
            )
            for end, engine in (
                ("1", OWN),
                ("3", {**OWN, "instances": 3, "persistent": True}),
                ("ollama", {"backend": "ollama"}),
            )
        ),
        (replica(models=[]), "replicas[0].models: names no model; without one no turn can reach this replica"),
        (replica(health="health"), "replicas[0].health: expected a path such as '/health', got 'health'"),
        (replica(health="/a b"), "replicas[0].health: expected a path such as '/health', got '/a b'"),
        (model(health="/a\nb"), r"launcher.models[0].health: expected a path such as '/health', got '/a\nb'"),
        (
            {"launcher": {"models": [{"name": "x", "backend": "command"}]}},
            "launcher.models[0].command: is missing; backend 'command' needs the program and its arguments",
        ),
        (
            {"launcher": {"models": [{"name": "x", "backend": "llama.cpp"}]}},
            "launcher.models[0].model_path: is missing; backend 'llama.cpp' needs the model's file",
        ),
        (
            model(port=9000, instances=2, persistent=True),
            "launcher.models[0].port: 2 instances cannot share port 9000; leave it out or use 0",
        ),
        (model(command=[""]), "launcher.models[0].command[0]: expected a program, got an empty text"),
        (model(args=["", "\0"]), "launcher.models[0].args[1]: must not contain a NUL character"),
        (model(env={"A=B": "c"}), "launcher.models[0].env.'A=B': is no name for an environment variable"),
        (tool(env={"A": "\0"}), "tools[0].env.A: must not contain a NUL character"),
        (
            tool(url="http://t"),
            "tools[0]: has both of command (stdio) and url (streamable HTTP); it needs one of the two",
        ),
        (
            tool(command=[]),
            "tools[0]: has neither of command (stdio) and url (streamable HTTP); it needs one of the two",
        ),
        ({"principals": [ALICE, ALICE]}, "principals[1].name: the name 'alice' is taken by principals[0].name"),
        (alice(name="operator"), "principals[0].name: 'operator' has a meaning of its own; choose another name"),
        (alice(name="anonymous"), "principals[0].name: 'anonymous' has a meaning of its own; choose another name"),
        (
            alice(token_env=""),
            "principals[0].token_env: is empty; name the environment variable that holds the token",
        ),
        (alice(classes=["batch", "batch"]), "principals[0].classes: names a class twice"),
        (
            {**alice(weight=0.0), "scheduler": {"policy": "working-set"}},
            "principals[0].weight: expected a number from 0.01 to 100, got 0.0",
        ),
        (
            {"scheduler": {"policy": "working-set", "caller_weights": {"ci": float("nan")}}},
            "scheduler.caller_weights.ci: expected a number from 0.01 to 100, got nan",
        ),
        (
            {"scheduler": {"caller_weights": {"ci": 0.5}}},
            "scheduler.caller_weights.ci: policy 'turn-admission' weighs nobody; set policy = \"working-set\"",
        ),
        (
            {"scheduler": {"reply_caps": True}},
            "scheduler.reply_caps: policy 'turn-admission' learns of no answers; set policy = \"working-set\"",
        ),
        ({"dataplane": {"host": ""}}, "dataplane.host: expected a host name or address, got ''"),
        ({"runtime": {"host": "a b"}}, "runtime.host: expected a host name or address, got 'a b'"),
        ({"scheduler": {"probe_period": "0s"}}, "scheduler.probe_period: must be longer than zero"),
        (
            {"scheduler": {"turn_timeout": "999ms"}},
            "scheduler.turn_timeout: must be at least 1s: each open turn gives signs of life by it",
        ),
        (
            {"dataplane": {"renew_period": "1ms"}},
            "dataplane.renew_period: must be at least 0.1s: each open turn gives signs of life by it",
        ),
        ({"runtime": {"turn_timeout": "999d"}}, "runtime.turn_timeout: '999d' is longer than a year"),
        (model(readiness_timeout="0ms"), "launcher.models[0].readiness_timeout: must be longer than zero"),
        (tool(timeout="0s"), "tools[0].timeout: must be longer than zero"),
        ({"dataplane": {"max_body": "0B"}}, "dataplane.max_body: must be larger than zero"),
        (
            {"dataplane": {"max_body": "9999999TiB"}},
            "dataplane.max_body: '9999999TiB' is more than any machine has",
        ),
        ({"runtime": {"port": 8080}}, "runtime.port: 127.0.0.1:8080 is taken by dataplane.port"),
        ({"scheduler": {"http_port": 5000}}, "scheduler.http_port: 127.0.0.1:5000 is taken by scheduler.port"),
        (
            {"runtime": {"host": "0.0.0.0", "port": 8080}},
            "runtime.port: 0.0.0.0:8080 is taken by dataplane.port",
        ),
        (
            {"runtime": {"host": "localhost", "port": 8080}},
            "runtime.port: localhost:8080 is taken by dataplane.port",
        ),
        (model(port=7000), "launcher.models[0].port: 127.0.0.1:7000 is taken by runtime.port"),
    ],
)
def test_what_cannot_work_is_said(sections: dict[str, object], expected: str) -> None:
    assert found(**sections) == [expected]


@pytest.mark.parametrize(
    "sections",
    [
        {"scheduler": {"link_grace": "0s"}, "launcher": {"stop_grace": "0s"}},
        {"dataplane": {"port": 0}, "runtime": {"port": 0}, "scheduler": {"port": 0, "http_port": 0}},
        {"dataplane": {"host": "127.0.0.2", "port": 7000}},
        {"dataplane": {"host": "::1"}},
        model(instances=2, persistent=True),
        tool(command=[], url="https://tools.example/mcp", token_env="TOKEN"),
    ],
)
def test_what_looks_odd_and_works_is_fine(sections: dict[str, object]) -> None:
    assert found(**sections) == []


@pytest.mark.parametrize("url", ["http://a/v1", "http://a:1/v1/", "https://a/api/v1"])
def test_the_url_of_an_engine_stops_before_v1(url: str) -> None:
    expected = "must not end in /v1; luftpause puts that before each route itself"
    assert found(**replica(url=url)) == [f"replicas[0].url: {expected}"]
    assert found(**replica(load_from=[url])) == [f"replicas[0].load_from[0]: {expected}"]
    assert found(**tool(command=[], url=url)) == []


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("ftp://a", "expected a url that begins with http:// or https://, got 'ftp://a'"),
        ("127.0.0.1:30000", "expected a url that begins with http:// or https://, got '127.0.0.1:30000'"),
        ("http://", "expected a url such as 'http://127.0.0.1:30000', got 'http://'"),
        ("http://a:0", "expected a url such as 'http://127.0.0.1:30000', got 'http://a:0'"),
        ("http://a b", "expected a url such as 'http://127.0.0.1:30000', got 'http://a b'"),
        ("http://a/\x7f", r"expected a url such as 'http://127.0.0.1:30000', got 'http://a/\x7f'"),
        ("http://a?b=c", "must end with its path; no '?' and no '#'"),
        ("http://a#b", "must end with its path; no '?' and no '#'"),
        ("http://a:99999", "is no url: Port out of range 0-65535"),
        ("http://[::1", "is no url: Invalid IPv6 URL"),
    ],
)
def test_a_url_must_lead_somewhere(url: str, expected: str) -> None:
    assert found(**replica(url=url)) == [f"replicas[0].url: {expected}"]
    assert found(**replica(load_from=["http://b", url])) == [f"replicas[0].load_from[1]: {expected}"]
    assert found(**tool(command=[], url=url)) == [f"tools[0].url: {expected}"]
    assert found(runtime={"dataplane_url": url}) == [f"runtime.dataplane_url: {expected}"]


@pytest.mark.parametrize("url", ["http://user:hunter2@a", "ftp://hunter2@a", "http://hunter2@a?b"])
def test_a_password_in_a_url_is_refused_and_not_repeated(url: str) -> None:
    (line,) = found(**replica(url=url))
    assert line.startswith("replicas[0].url: must not hold a user or password")
    assert "hunter2" not in line


def test_a_secret_where_its_variable_should_be_named_is_refused_and_not_repeated() -> None:
    (first,) = found(**replica(api_key_env="sk-hunter2"))
    (second,) = found(**tool(token_env="hunter2 "))
    assert "must be the name of an environment variable" in first
    (third,) = found(**alice(token_env="hunter2!"))
    assert "must be the name of an environment variable" in second
    assert "must be the name of an environment variable" in third
    assert "hunter2" not in first + second + third


def test_only_named_variables_that_are_not_set_are_missed() -> None:
    config = msgspec.convert(
        {
            "replicas": [{**REPLICA, "api_key_env": "A"}],
            "tools": [{**TOOL, "token_env": "B"}],
            "principals": [ALICE],
        },
        Config,
    )
    assert [dotted(path) for path, _ in unset_secrets(config, {"A": ""})] == [
        "replicas[0].api_key_env",
        "tools[0].token_env",
        "principals[0].token_env",
    ]
    assert list(unset_secrets(config, {"A": "x", "B": "y", "ALICE_TOKEN": "z"})) == []
    assert list(unset_secrets(Config(), {})) == []


QUANTITIES = [
    (section, field.name, title)
    for section in ("dataplane", "scheduler", "runtime", "launcher")
    for field in msgspec.structs.fields(getattr(Config(), section))
    if (title := (getattr(msgspec.inspect.type_info(field.type), "extra_json_schema", None) or {}).get("title"))
    in ("duration", "size")
]


@pytest.mark.parametrize(("section", "name", "title"), QUANTITIES)
def test_every_duration_and_size_of_the_schema_is_checked(section: str, name: str, title: str) -> None:
    too_much = "999d" if title == "duration" else "9999999TiB"
    assert [line.partition(":")[0] for line in found(**{section: {name: too_much}})] == [f"{section}.{name}"]


def test_rules_lead_to_models_that_are_declared() -> None:
    assert found(default_model="x") == []
    assert found(**replica(), default_model="x", heuristics={"code": "m", "images": "y"}, rules=[{"to": "z"}]) == [
        "default_model: no [[replicas]] and no [[launcher.models]] has a model 'x'",
        "rules[0].to: no [[replicas]] and no [[launcher.models]] has a model 'z'",
        "heuristics.images: no [[replicas]] and no [[launcher.models]] has a model 'y'",
    ]
    assert found(rules=[{"to": "z", "model": "("}])[0].startswith("rules[0].model: is no regular expression: ")
