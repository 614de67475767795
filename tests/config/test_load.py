"""The configuration from its four places."""

import os
import sys
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from luftpause.config.load import DEFAULT, ENV_EXEMPT, FILE_BYTES_MAX, Loaded, Origin, Source, load
from luftpause.config.problems import ConfigError, as_toml
from luftpause.config.schema import Config
from luftpause.config.shape import known_keys


@pytest.fixture(autouse=True)
def empty_working_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every test runs in a folder of its own, so that no luftpause.toml lies about."""
    monkeypatch.chdir(tmp_path)


def write(text: str | bytes, name: str = "f.toml") -> Path:
    path = Path(name)
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def loaded(text: str = "", env: dict[str, str] | None = None, overrides: dict[str, str] | None = None) -> Loaded:
    return load(write(text), env or {}, overrides or {})


def problems(
    text: str | bytes = "", env: dict[str, str] | None = None, overrides: dict[str, str] | None = None
) -> list[str]:
    with pytest.raises(ConfigError) as raised:
        load(write(text), env or {}, overrides or {})
    lines = str(raised.value).splitlines()
    assert len(lines) == len(raised.value.problems), "each problem is one line"
    return lines


def test_without_a_file_the_embedded_default_is_in_force() -> None:
    found = load(None, {}, {})
    assert found.source is None
    assert found.config == Config()
    assert found.origin("dataplane.port") == DEFAULT


def test_the_file_of_the_working_directory_is_found_without_being_named() -> None:
    write("[dataplane]\nport = 1", "luftpause.toml")
    found = load(None, {}, {})
    assert found.source == Path("luftpause.toml")
    assert found.config.dataplane.port == 1


def test_a_named_file_wins_over_the_one_of_the_working_directory() -> None:
    write("[dataplane]\nport = 1", "luftpause.toml")
    assert loaded("[dataplane]\nport = 2").config.dataplane.port == 2


def test_each_place_wins_over_the_ones_before_it() -> None:
    text = "[dataplane]\nport = 1\nhost = 'a'\n[runtime]\nport = 1\n[scheduler]\nport = 1"
    env = {"LUFTPAUSE_DATAPLANE__PORT": "2", "LUFTPAUSE_RUNTIME__PORT": "2"}
    found = loaded(text, env, {"runtime.port": "3"})
    config = found.config
    assert (config.scheduler.port, config.dataplane.port, config.runtime.port) == (1, 2, 3)
    assert config.dataplane.host == "a"
    assert found.origin("scheduler.port") == Origin(Source.FILE, "f.toml:7")
    assert found.origin("dataplane.port") == Origin(Source.ENVIRONMENT, "env LUFTPAUSE_DATAPLANE__PORT")
    assert found.origin("dataplane.host") == Origin(Source.FILE, "f.toml:3")
    assert found.origin("runtime.port") == Origin(Source.COMMAND_LINE, "command line")
    assert found.origin("runtime.host") == DEFAULT


def test_lists_and_tables_come_as_json_from_the_environment_and_replace_or_extend() -> None:
    replicas = '[{"name": "b", "url": "http://b", "models": ["m"]}]'
    text = "[[replicas]]\nname='a'\nurl='http://a'\nmodels=['m']\nkind='single-pass'\n[dataplane]\nhost='h'"
    env = {
        "LUFTPAUSE_REPLICAS": replicas,
        "LUFTPAUSE_DATAPLANE": '{"port": 1, "max_body": "1MB"}',
        "LUFTPAUSE_DATAPLANE__PORT": "2",
    }
    found = loaded(text, env)
    assert [replica.name for replica in found.config.replicas] == ["b"]
    assert found.config.replicas[0].kind == "generative"
    assert found.origin("replicas[0].kind") == DEFAULT, "what was replaced leaves no trace"
    assert found.origin("replicas[0].url").where == "env LUFTPAUSE_REPLICAS"
    assert (found.config.dataplane.host, found.config.dataplane.port, found.config.dataplane.max_body) == (
        "h",
        2,
        "1MB",
    )


def test_texts_are_taken_as_they_are_even_when_they_look_like_numbers() -> None:
    assert loaded(env={"LUFTPAUSE_RUNTIME__STATE_DIR": "123"}).config.runtime.state_dir == "123"


def test_foreign_and_exempt_variables_are_left_alone() -> None:
    env = {**dict.fromkeys(ENV_EXEMPT, "x"), "PATH": "x", "_LUFTPAUSE_COMPLETE": "x", "luftpause_x": "x"}
    assert loaded(env=env).config == Config()


def test_all_problems_are_reported_at_once_with_their_places() -> None:
    text = "dataplne = 1\n[dataplane]\nport = 70_000\n[[replicas]]\nurl = 'http://a'\nmodels = 'm'\n"
    assert problems(text, {"LUFTPAUSE_RUNTIME__PRT": "1"}, {"scheduler.policy": "luck"}) == [
        "f.toml:1: unknown key 'dataplne' — did you mean 'dataplane'?",
        "f.toml:3: dataplane.port: expected a whole number from 0 to 65535, got 70000",
        "f.toml:6: replicas[0].models: expected a list, each a name of letters, digits and ._:/@- that begins with a "
        "letter or digit such as 'llama-3.2-1b', got 'm'",
        "f.toml:4: replicas[0].name: is missing; expected a name of letters, digits and ._:/@- that begins with a "
        "letter or digit such as 'llama-3.2-1b'",
        "env LUFTPAUSE_RUNTIME__PRT: unknown key 'runtime.prt' — did you mean 'runtime.port'?",
        "command line: scheduler.policy: expected one of 'turn-admission', 'working-set', got 'luck'",
    ]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("[dataplane\n", "f.toml:1:11: not valid TOML: Expected ']' at the end of a table declaration"),
        ("a = 1\na = 2\n", "f.toml:2:6: not valid TOML: Cannot overwrite a value"),
        ("a = ", "f.toml: not valid TOML: Invalid value (at end of document)"),
        ("a = " + "1" * 5000, "f.toml: not valid TOML: Exceeds the limit (4300 digits) for integer string conversion"),
        ("a = " + "[" * 5000, "f.toml: lists or tables are nested too deeply"),
        (b"a = 1\nb = '\xff'\n", "f.toml:2: not UTF-8"),
        ("a = '\0'", "f.toml:1:6: not valid TOML: "),
        (b"#" * (FILE_BYTES_MAX + 1), "f.toml: is larger than 1 MiB"),
        ("replicas = [{name = 'a'}]", "f.toml:1: replicas[0].url: is missing; expected a string"),
        ("dataplane = 1979-05-27", "f.toml:1: dataplane: expected a table, got the date or time 1979-05-27"),
        ("tools = [1]", "f.toml:1: tools[0]: expected a table, got 1"),
    ],
)
def test_a_bad_file_gets_a_clear_line(text: str | bytes, expected: str) -> None:
    assert problems(text)[0].startswith(expected)


def test_a_byte_order_mark_and_the_line_ends_of_windows_are_fine() -> None:
    assert load(write(b"\xef\xbb\xbf[dataplane]\r\nport = 1\r\n"), {}, {}).config.dataplane.port == 1


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        (Path("absent.toml"), "absent.toml: cannot read it: No such file or directory"),
        (Path(), ".: cannot read it: Is a directory"),
        (Path("a\0b"), r"'a\x00b': cannot read it: embedded null byte"),
    ],
)
def test_a_file_that_cannot_be_read_is_named(path: Path, expected: str) -> None:
    with pytest.raises(ConfigError) as raised:
        load(path, {}, {})
    assert str(raised.value) == expected


@pytest.mark.skipif(sys.platform == "win32", reason="file modes")
@pytest.mark.skipif(os.name == "posix" and os.geteuid() == 0, reason="root may read everything")
def test_a_file_that_may_not_be_read_is_named() -> None:
    path = write("")
    path.chmod(0)
    with pytest.raises(ConfigError, match="Permission denied"):
        load(path, {}, {})


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("DATAPLANE__PORT", "abc", "dataplane.port: expected a whole number from 0 to 65535, got 'abc'"),
        ("DATAPLANE__PORT", "", "dataplane.port: expected a whole number from 0 to 65535, got ''"),
        ("DATAPLANE__PORT", "1.5", "dataplane.port: expected a whole number from 0 to 65535, got 1.5"),
        ("DATAPLANE__PORT", "[" * 100_000, "dataplane.port: expected a whole number from 0 to 65535, got '[[["),
        ("REPLICAS", "a,b", "replicas: expected a list of tables, written as JSON, got 'a,b'"),
        (
            "REPLICAS",
            "{}",
            "replicas: expected a list of tables, got a table; in the file each begins with [[replicas]]",
        ),
        ("DATAPLANE", "x", "dataplane: expected a table, written as JSON, got 'x'"),
        ("RUNTIME__STATE_DIR", "\udc80", "runtime.state_dir: is not UTF-8"),
        ("", "x", "unknown key '' — known here: default_model,"),
        ("DATAPLANE__", "x", "unknown key dataplane.'' — known here: host,"),
        ("DATAPLANE__PORT__X", "x", "dataplane.port: expected a whole number from 0 to 65535, got a table"),
        ("TOOL", "x", "unknown key 'tool' — did you mean 'tools'?"),
    ],
)
def test_a_bad_variable_is_named(name: str, value: str, expected: str) -> None:
    (line,) = problems(env={f"LUFTPAUSE_{name}": value})
    assert line.startswith(f"env LUFTPAUSE_{name}: {expected}")


def test_checks_across_keys_name_the_place_of_the_later_one() -> None:
    assert problems("[runtime]\nport = 8080\n") == ["f.toml:2: runtime.port: 127.0.0.1:8080 is taken by dataplane.port"]


def test_a_missing_secret_is_a_warning_and_not_an_error() -> None:
    text = "[[replicas]]\nname='a'\nurl='http://a'\nmodels=['m']\napi_key_env='KEY'\n"
    what = "the variable KEY is not set; without it nothing is sent to this endpoint"
    warning = f"f.toml:5: replicas[0].api_key_env: {what}"
    assert [str(line) for line in loaded(text).warnings] == [warning]
    assert loaded(text, {"KEY": "s3cret"}).warnings == ()


SETTINGS: dict[str, st.SearchStrategy[object]] = {
    "dataplane.host": st.sampled_from(["127.0.0.2", "localhost", "::1"]),
    "dataplane.port": st.just(0) | st.integers(20_000, 29_999),
    "scheduler.port": st.just(0) | st.integers(30_000, 39_999),
    "scheduler.probe_period": st.sampled_from(["1s", "2m30s"]),
    "runtime.port": st.just(0) | st.integers(40_000, 49_999),
    "runtime.state_dir": st.text(st.characters(codec="utf-8"), max_size=8),
    "runtime.max_running": st.integers(1, 100_000),
    "launcher.model_dir": st.text(st.characters(codec="utf-8"), max_size=8),
}
LAYERS = st.fixed_dictionaries({}, optional=SETTINGS)


def _value(config: Config, key: str) -> object:
    section, _, name = key.partition(".")
    return getattr(getattr(config, section), name)


@given(LAYERS, LAYERS, LAYERS)
def test_whatever_the_layers_say_the_last_that_says_it_counts(
    in_file: dict[str, object], in_env: dict[str, object], on_line: dict[str, object]
) -> None:
    text = "\n".join(f"{key} = {as_toml(value)}" for key, value in in_file.items())
    # as_toml escapes what is outside the BMP as JSON does, with surrogate pairs, which TOML does not have
    text = text.encode("utf-16", "surrogatepass").decode("utf-16") if "\\ud" not in text else ""
    in_file = in_file if text else {}
    env = {f"LUFTPAUSE_{key.upper().replace('.', '__')}": str(value) for key, value in in_env.items()}
    found = load(write(text), env, {key: str(value) for key, value in on_line.items()})
    for key in SETTINGS:
        expected = {**in_file, **in_env, **on_line}.get(key, _value(Config(), key))
        assert _value(found.config, key) == expected
        place = (
            Source.COMMAND_LINE
            if key in on_line
            else Source.ENVIRONMENT
            if key in in_env
            else Source.FILE
            if key in in_file
            else Source.DEFAULT
        )
        assert found.origin(key).source is place


def lines_or_config(path: Path | None, overrides: dict[str, str]) -> list[str] | Config:
    try:
        return load(path, {}, overrides).config
    except ConfigError as error:
        return [str(problem) for problem in error.problems]


@given(st.dictionaries(st.sampled_from(known_keys()) | st.text(max_size=12), st.text(max_size=12), max_size=4))
def test_any_overrides_give_a_configuration_or_printable_lines(overrides: dict[str, str]) -> None:
    found = lines_or_config(None, overrides)
    assert isinstance(found, Config) or (found and all(line.isprintable() for line in found))


@given(st.binary(max_size=60))
def test_any_file_gives_a_configuration_or_lines(data: bytes) -> None:
    assert lines_or_config(write(data), {})


def test_a_loaded_configuration_can_be_written_and_read_again() -> None:
    example = Path(__file__).parent.parent.parent / "examples/luftpause.toml"
    config = load(example, {}, {}).config
    sections = msgspec.to_builtins(config)
    written = {
        name: value if isinstance(value, str) else msgspec.json.encode(value).decode()
        for name, value in sections.items()
    }
    assert load(None, {}, written).config == config
