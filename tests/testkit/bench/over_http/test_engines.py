"""The engines of a bench over HTTP."""

from pathlib import Path

import pytest

from luftpause.testkit.bench.over_http import engines as module
from luftpause.testkit.bench.over_http.doors import AbsentError, answers
from luftpause.testkit.bench.over_http.engines import MODEL, fake_engines, llama_engines
from luftpause.testkit.sim.scenario import load_scenario


@pytest.mark.slow
def test_a_scenarios_replicas_run_while_the_block_lasts(tmp_path: Path) -> None:
    with fake_engines(load_scenario("w7-slow"), "w7-slow", speed=10.0, folder=tmp_path) as pool:
        assert len(set(pool.urls)) == 3
        assert all(answers(url, MODEL) for url in pool.urls)
    assert not any(answers(url, MODEL) for url in pool.urls)


def test_without_llama_cpp_there_are_no_real_engines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "find_local_model", lambda: None)
    with pytest.raises(AbsentError, match=r"llama\.cpp or the small model"), llama_engines(1, tmp_path):
        pass
