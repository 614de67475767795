"""One engine process as it is shown and declared."""

import pytest

from luftpause.core.model.ids import Instant, ModelName
from luftpause.core.processes.state import Limits, never_started
from luftpause.services.launcher.instance import Instance
from services.launcher.launcher_world import engine


def test_it_is_declared_where_it_listens_under_the_models_own_name() -> None:
    limits = Limits(readiness_timeout_s=1.0, stop_grace_s=1.0)
    instance = Instance(plan=engine(host="10.0.0.7"), state=never_started(limits, Instant(0.0)))
    assert instance.view(Instant(2.0)).url == ""
    with pytest.raises(AssertionError, match="listens nowhere"):
        instance.spec()
    instance.port = 81
    assert instance.spec().endpoint.url == "http://10.0.0.7:81"
    assert instance.spec().models == (ModelName("toy"),)
    view = instance.view(Instant(2.0))
    assert (view.model, view.state, view.since_s, view.pid) == ("toy", "exited", 2.0, 0)
