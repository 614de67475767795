"""Scenario files."""

from pathlib import Path

import pytest

from luftpause.config.problems import ConfigError
from luftpause.testkit.sim.scenario import FILE_BYTES_MAX, load_scenario, parse_scenario, shipped

AGENTS = """
[[agents]]
name = "a"
class = "batch"
count = 1
context_tokens = [10, 20]
tool_calls = [0, 1]
call_tokens = [1, 2]
result_tokens = [1, 2]
reply_tokens = [1, 2]
tools = [{ median_s = 1 }]
"""
PARENT = AGENTS.replace('"a"', '"parent"') + '[agents.fan_out]\ngroup = "a"\nsizes = [{ children = 2 }]\n'
FINE = f'name = "fine"\n{AGENTS}'


def problem(text: str) -> str:
    with pytest.raises(ConfigError) as raised:
        parse_scenario(text, "mine.toml")
    return str(raised.value)


@pytest.mark.parametrize("name", shipped())
def test_every_shipped_scenario_can_be_read_and_says_what_it_is_about(name: str) -> None:
    scenario = load_scenario(name)
    assert scenario.name == name
    assert scenario.about


def test_what_a_file_does_not_say_has_its_default() -> None:
    scenario = parse_scenario(FINE, "mine.toml")
    assert (scenario.replicas, scenario.engine.kv_tokens, scenario.agents[0].reply_tokens_max) == (2, 40_000, 256)
    assert scenario.agents[0].service_class == "batch"


def test_a_file_is_named_by_its_path(tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    file.write_text(FINE, encoding="utf-8")
    assert load_scenario(str(file)).name == "fine"
    with pytest.raises(OSError, match="No such file"):
        load_scenario(str(tmp_path / "absent.toml"))
    file.write_text("#" * (FILE_BYTES_MAX + 1), encoding="utf-8")
    with pytest.raises(ConfigError, match="longer than"):
        load_scenario(str(file))


def test_an_unknown_name_is_told_which_there_are() -> None:
    with pytest.raises(ConfigError, match=r"no such scenario; there are seed-fanout, .*, w1, .*, w8-swap, or name"):
        load_scenario("w9")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("name = ", "mine.toml: Invalid value"),
        ("", "missing required field `name`"),
        ('name = "x"\nagents = []', "`$.agents`"),
        ("speed = 3\n" + FINE, "unknown field `speed`"),
        (FINE.replace("count = 1", "count = -1"), "`$.agents[0].count`"),
        (FINE.replace("count = 1", ""), "give one of count and runs_per_min"),
        (FINE.replace("count = 1", "count = 1\nruns_per_min = 2"), "give one of count and runs_per_min"),
        (FINE.replace("[10, 20]", "[20, 10]"), "agents 'a': context_tokens must rise from at least 1"),
        (FINE.replace("call_tokens = [1, 2]", "call_tokens = [1, 300]"), "longer than reply_tokens_max"),
        (FINE.replace("[10, 20]", "[10, 50_000]"), "a run can grow to 50260 tokens"),
        (FINE.replace("[10, 20]", "{median = 15, sigma = 1, least = 20, most = 10}"), "context_tokens must rise"),
        (FINE.replace("count = 1", "count = 1\ncompact_at = 19"), "longer than compact_at before anything is added"),
        (FINE.replace("count = 1", "count = 1\ncompact_at = 40_000"), "a run can grow to 40256 tokens"),
        (
            FINE.replace("count = 1", "") + PARENT.replace("count = 1", "count = 1\ncompact_at = 100"),
            "agents 'parent': agents that compact begin no children",
        ),
        (FINE + AGENTS, "two groups of agents have the same name"),
        (
            FINE + "[[outages]]\nreplica = 2\nat_s = 1\nfor_s = 1\n",
            "a table names replica 2, but the last one is 1",
        ),
        (FINE + "[[paces]]\nreplica = 5\nfactor = 1\n", "a table names replica 5"),
        (FINE + PARENT, "agents 'a': children begin with their parents"),
        (FINE.replace("count = 1", "") + PARENT.replace('group = "a"', 'group = "b"'), "no agents 'b' to have"),
        (FINE.replace("count = 1", "") + PARENT.replace("count = 1", "").replace('"parent"', '"a"', 1), "same name"),
        (
            FINE.replace("count = 1", "") + "[agents.fan_out]\ngroup = 'a'\nsizes = [{children = 2}]",
            "their own children",
        ),
        (FINE + '[engine]\nqueue = "lifo"\n', "`$.engine.queue`"),
    ],
)
def test_what_is_wrong_is_said_with_where_it_was_written(text: str, expected: str) -> None:
    said = problem(text)
    assert said.startswith("mine.toml: ")
    assert expected in said
