"""Where simulated runs are served."""

import msgspec

from luftpause.core.model.ids import ModelName
from luftpause.testkit.engine_model.figures import EngineFigures
from luftpause.testkit.sim.plans import MODEL
from luftpause.testkit.sim.scenario import Outage, Pace
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


def test_one_replica_may_have_a_pace_of_its_own() -> None:
    scenario = msgspec.structs.replace(crowd(replicas=3), paces=(Pace(replica=1, factor=0.5),), restarts_s=(5.0,))
    setting = setting_of(scenario)
    usual, slow = setting.replicas[0].engine, setting.replicas[1].engine
    assert (slow.step_s, slow.prefill_tps) == (usual.step_s * 2, usual.prefill_tps / 2)
    assert setting.replicas[2].engine == usual
    assert setting.restarts_s == (5.0,)
