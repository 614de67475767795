"""Where simulated runs are served."""

from luftpause.core.model.ids import ModelName
from luftpause.testkit.engine_model.figures import EngineFigures
from luftpause.testkit.sim.plans import MODEL
from luftpause.testkit.sim.scenario import Outage
from luftpause.testkit.sim.setting import Setting, SimReplica, setting_of
from testkit.sim.worlds import crowd


def test_a_scenario_describes_replicas_that_are_all_alike() -> None:
    outages = (Outage(replica=0, at_s=1.0, for_s=2.0),)
    setting = setting_of(crowd(replicas=3, outages=outages))
    assert {replica.engine.kv_tokens for replica in setting.replicas} == {3000}
    assert setting.serving(MODEL) == (0, 1, 2)
    assert setting.outages == outages


def test_replicas_serve_their_own_models_only() -> None:
    small, large = ModelName("small"), ModelName("large")
    engine = EngineFigures()
    setting = Setting(replicas=(SimReplica(engine=engine, models=(small, large)), SimReplica(engine=engine)))
    assert (setting.serving(small), setting.serving(MODEL), setting.serving(ModelName("no"))) == ((0,), (1,), ())
