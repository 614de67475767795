"""The state section by section: what is not in `test_http.py` already."""

import pytest

from luftpause.core.model.ids import TurnId
from luftpause.core.model.turns import Usage
from luftpause.core.scheduling.events import TurnFinished
from luftpause.services.scheduler.pace import Pace
from luftpause.services.scheduler.status_json import Seen, sections
from services.scheduler.running import offer, run, spec
from services.scheduler.watched import watched

pytestmark = pytest.mark.interpreted  # its clock inherits from the service


def test_families_are_told_with_what_they_have_cost() -> None:
    async def tell() -> None:
        service, timeline = watched(spec("a"))
        for turn, name, parent in (("t1", "root", None), ("t2", "child", "root"), ("t3", "below", "child")):
            service.admit(offer(turn, run=name, parent=parent))
            service.report(TurnFinished(turn=TurnId(turn), usage=Usage(prompt_tokens=100, completion_tokens=7)))
        seen = Seen(state=service.state, now=service.now(), peers=(), pace=Pace(), timeline=timeline)
        families = {str(row["run"]): row for row in sections(seen)["families"]}
        assert families["root"]["own"] == {"turns": 1, "prompt_tokens": 100, "completion_tokens": 7}
        assert families["root"]["subtree"] == {"turns": 3, "prompt_tokens": 300, "completion_tokens": 21}
        assert families["child"]["children"] == [
            {"run": "below", "phase": "idle", "class": "interactive", "own": families["root"]["own"]}
        ]

    run(tell)
