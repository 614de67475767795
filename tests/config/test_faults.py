"""What a single value can get wrong however well its type fits."""

from luftpause.config.faults import argv_faults, engine_url_faults, environment_faults, repeats, variable_faults


def test_a_fault_is_told_with_the_key_that_has_it() -> None:
    assert list(argv_faults(("command",), ["", "x"])) == [(("command", 0), "expected a program, got an empty text")]
    assert list(environment_faults(("env",), {"A B": "x"})) == [
        (("env", "A B"), "is no name for an environment variable")
    ]
    assert list(repeats([(("a",), "x"), (("b",), "x")])) == [(("b",), "the name 'x' is taken by a")]


def test_a_secret_is_never_repeated() -> None:
    faults = [*variable_faults(("key",), "sk-hunter2"), *engine_url_faults(("url",), "http://u:hunter2@h")]
    assert len(faults) == 2
    assert "hunter2" not in repr(faults)
