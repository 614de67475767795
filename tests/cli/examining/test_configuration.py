from pathlib import Path

import pytest

from luftpause.cli.examining import configuration
from luftpause.cli.examining.findings import Grade
from luftpause.config.load import load
from luftpause.config.problems import ConfigError


def test_each_mistake_is_an_error_that_says_where(tmp_path: Path) -> None:
    file = tmp_path / "bad.toml"
    file.write_text("[dataplane]\nport = -1\nhots = 'x'\n", "utf-8")
    with pytest.raises(ConfigError) as caught:
        load(file, {}, {})
    found = configuration.broken(caught.value, file)
    assert [each.grade for each in found] == [Grade.ERROR] * 2
    assert found[0].mend == f"edit {file}:2, then: luftpause config check --config {file}"
    assert "did you mean 'dataplane.host'" in found[1].seen


def test_a_secret_that_is_not_set_is_named(tmp_path: Path) -> None:
    file = tmp_path / "luftpause.toml"
    file.write_text("[[tools]]\nname = 't'\nurl = 'http://t'\ntoken_env = 'NO_SUCH_KEY'\n", "utf-8")
    loaded = load(file, {}, {})
    found = configuration.examined(loaded, loaded.config, "")
    assert found[0].seen == f"{file} (replicas: 0, models to launch: 0, tools: 1)"
    assert [(each.grade, each.mend) for each in found[2:]] == [(Grade.WARNING, "export NO_SUCH_KEY=...")]
    assert "turns are refused" in found[1].seen


def test_what_stands_in_where_nothing_is_declared_is_told() -> None:
    loaded = load(Path("/dev/null"), {}, {})
    assert "starts two engines" in configuration.examined(loaded, loaded.config, "two engines")[1].seen
