import importlib.util
from importlib.machinery import ModuleSpec

import pytest

from luftpause.cli.compiled import is_compiled


@pytest.mark.parametrize(("origin", "expected"), [("x/decide.py", False), ("x/decide.cpython-311.so", True)])
def test_a_module_that_is_no_source_is_compiled(monkeypatch: pytest.MonkeyPatch, origin: str, expected: bool) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: ModuleSpec(name, None, origin=origin))
    assert is_compiled() is expected
