"""Log lines: one for each event, safe whatever the values are."""

import contextlib
import io
import json
import logging
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from luftpause.telemetry import logs
from luftpause.telemetry.logs import HIDDEN, VALUE_CHARACTERS_MAX, JsonFormatter, TextFormatter


def record(event: str = "turn_admitted", /, **fields: object) -> logging.LogRecord:
    made = logging.getLogger("luftpause.test").makeRecord(
        "luftpause.test", logging.INFO, __file__, 1, event, (), None, extra=dict(fields)
    )
    made.created, made.msecs = 1_767_323_045.25, 250.0
    return made


def failed(event: str, error: Exception) -> logging.LogRecord:
    made = record(event)
    made.levelno, made.levelname = logging.ERROR, "ERROR"
    made.exc_info = (type(error), error, None)
    return made


def as_json(made: logging.LogRecord) -> dict[str, object]:
    line = JsonFormatter().format(made)
    assert line.isascii()
    assert line.isprintable()
    decoded = json.loads(line)
    assert isinstance(decoded, dict)
    return decoded


def as_text(made: logging.LogRecord) -> str:
    return TextFormatter(has_colour=False).format(made)


def test_a_json_line_has_time_level_logger_event_and_fields() -> None:
    assert as_json(record(turn="t1", held_ms=1.5, ok=True, replica=None)) == {
        "ts": "2026-01-02T03:04:05.250Z",
        "level": "info",
        "logger": "luftpause.test",
        "event": "turn_admitted",
        "turn": "t1",
        "held_ms": 1.5,
        "ok": True,
        "replica": None,
    }


def test_a_text_line_reads_like_a_sentence_of_fields() -> None:
    line = as_text(record(turn="t1", caller="a b", empty="", quote='"', path="c:\\d e"))
    assert line == (
        "03:04:05.250 info    luftpause.test turn_admitted"
        r' turn=t1 caller="a b" empty="" quote="\"" path="c:\\d e"'
    )


def test_hostile_values_cannot_forge_a_line_or_drive_a_terminal() -> None:
    hostile = 'x\n03:04:05 info luftpause forged\x1b[2J\x7f\u202e level=error "'
    line = as_text(record(caller=hostile))
    assert line.isprintable()
    assert r"\u000a03:04:05" in line
    assert as_text(record(hostile)).isprintable()
    assert as_json(record(caller=hostile))["caller"] == hostile


def test_a_stack_trace_stands_below_its_line_and_is_indented() -> None:
    text = as_text(failed("service_failed", ValueError("a\n03:04:05 info forged\x1b")))
    first, *rest = text.split("\n")
    assert first.endswith("error   luftpause.test service_failed")
    assert all(line.startswith("  ") and line.isprintable() for line in rest)
    assert "ValueError: a" in str(as_json(failed("service_failed", ValueError("a")))["error"])


@pytest.mark.parametrize(
    "name",
    ["authorization", "Authorization", "x_api_key", "x-api-key", "token", "access_token", "set_cookie", "password"],
)
def test_what_is_named_like_a_secret_is_never_written(name: str) -> None:
    assert as_json(record(**{name: "hunter2"}))[name] == HIDDEN
    assert "hunter2" not in as_text(record(**{name: "hunter2"}))


@pytest.mark.parametrize("name", ["prompt_tokens", "api_key_env", "tokens", "cache_key"])
def test_what_only_resembles_a_secret_is_written(name: str) -> None:
    assert as_json(record(**{name: 5}))[name] == 5


def test_a_long_value_is_cut() -> None:
    assert as_json(record(body="x" * 99_999))["body"] == "x" * VALUE_CHARACTERS_MAX + "…"
    assert len(str(as_json(record("y" * 99_999))["event"])) == VALUE_CHARACTERS_MAX + 1


def test_a_field_with_one_of_our_names_does_not_replace_ours() -> None:
    line = as_json(record(level="gold", event="x"))
    assert (line["level"], line["level_"], line["event"], line["event_"]) == ("info", "gold", "turn_admitted", "x")


def test_what_json_has_no_word_for_is_written_as_text() -> None:
    line = as_json(record(nan=float("nan"), thing={1, 2}))
    assert line["nan"] == "nan"
    assert line["thing"] == "{1, 2}"


@given(st.text(st.characters()), st.text(st.characters()) | st.integers() | st.floats() | st.none())
def test_every_event_is_one_line_in_both_styles(event: str, value: object) -> None:
    made = record(event.replace("%", ""), value=value)
    as_json(made)
    assert as_text(made).isprintable()


@pytest.fixture(autouse=True)
def logging_as_before() -> Iterator[None]:
    root, own = logging.getLogger(), logging.getLogger("luftpause")
    before, levels = root.handlers[:], (root.level, own.level)
    yield
    root.handlers[:] = before
    root.setLevel(levels[0])
    own.setLevel(levels[1])


def test_lines_go_to_standard_error_as_json_when_it_is_no_terminal() -> None:
    with contextlib.redirect_stderr(io.StringIO()) as stream:
        logs.configure("info")
        logging.getLogger("luftpause.test").info("turn_admitted", extra={"turn": "t1"})
    assert json.loads(stream.getvalue())["turn"] == "t1"


def test_configuring_again_replaces_and_does_not_double() -> None:
    with contextlib.redirect_stderr(io.StringIO()) as stream:
        logs.configure("info")
        logs.configure("warning", style="text")
        logging.getLogger("luftpause.test").info("hidden")
        logging.getLogger("luftpause.test").warning("shown")
    assert stream.getvalue().endswith("warning luftpause.test shown\n")
    assert stream.getvalue().count("\n") == 1


def test_lines_follow_standard_error_when_it_is_exchanged() -> None:
    with contextlib.redirect_stderr(io.StringIO()) as first:
        logs.configure("info")
    with contextlib.redirect_stderr(io.StringIO()) as second:
        logging.getLogger("luftpause.test").info("moved")
    assert first.getvalue() == ""
    assert "moved" in second.getvalue()


def test_libraries_log_warnings_only_unless_all_is_wanted() -> None:
    with contextlib.redirect_stderr(io.StringIO()) as stream:
        logs.configure("info")
        logging.getLogger("some.library").info("chatter_one")
        logging.getLogger("some.library").warning("trouble")
        logs.configure("debug")
        logging.getLogger("some.library").info("chatter_two")
    assert "chatter_one" not in stream.getvalue()
    assert "trouble" in stream.getvalue()
    assert "chatter_two" in stream.getvalue()


class _Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(("no_colour", "expected"), [("", "\x1b[31merror  \x1b[0m"), ("1", "error   luftpause")])
def test_a_terminal_gets_text_and_colour_unless_it_is_unwanted(
    monkeypatch: pytest.MonkeyPatch, no_colour: str, expected: str
) -> None:
    monkeypatch.setenv("NO_COLOR", no_colour)
    monkeypatch.setenv("TERM", "xterm")
    with contextlib.redirect_stderr(_Terminal()) as terminal:
        logs.configure("info")
        logging.getLogger("luftpause.test").error("broke")
    assert expected in terminal.getvalue()


def test_what_is_always_so_stands_in_every_line_and_a_records_own_field_wins() -> None:
    with contextlib.redirect_stderr(io.StringIO()) as stream:
        logs.configure("info", always={"worker": 2})
        logging.getLogger("luftpause.test").info("one")
        logging.getLogger("luftpause.test").info("two", extra={"worker": 7})
    assert [json.loads(line)["worker"] for line in stream.getvalue().splitlines()] == [2, 7]
