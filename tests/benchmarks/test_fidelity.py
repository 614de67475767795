"""The comparison with a real engine, from invented figures."""

from benchmarks.fidelity import Fidelity, section

from luftpause.testkit.engine_model.figures import EngineFigures
from testkit.bench.measured import MACHINE


def test_the_section_says_how_far_the_model_is_off() -> None:
    page = section(
        Fidelity(
            when="2026-01-01T00:00:00+00:00",
            commit="abc",
            machine=MACHINE,
            seeds=3,
            minutes=2.0,
            engine=EngineFigures(step_s=0.01, prefill_tps=500.0),
            residual=0.034,
            measured={"runs_per_min": 20.0, "run_p50_s": None},
            modelled={"runs_per_min": 21.0, "run_p50_s": 3.0},
            errors={"runs_per_min": 0.05, "run_p50_s": None},
        )
    )
    assert "5.0%" in page
    assert "a middle error of 3.4%" in page
    assert "10.00 ms a step" in page
    assert "500 prompt tokens/s" in page
    assert "| –" in page
