"""What a replica's memory is charged with."""

import pytest

from core.scheduling.builders import failed
from core.scheduling.working_set.worlds import REPLY, answered, begun, seat, sized, world


def test_a_turn_is_charged_with_its_prompt_and_what_it_may_answer_until_it_ends() -> None:
    busy = world()
    busy.place(sized("t1", 1000))
    busy.place(sized("t2", 500))
    assert seat(busy).in_flight == 1500 + 2 * REPLY
    assert [each.turn for each in seat(busy).awaiting] == ["t1", "t2"]
    busy.tell(begun("t2"))
    assert [each.turn for each in seat(busy).awaiting] == ["t1"]
    busy.tell_all([failed("t1"), failed("t2")])
    assert (seat(busy).in_flight, seat(busy).awaiting) == (0, ())


def test_a_run_that_is_out_on_a_tool_keeps_what_was_measured_of_it() -> None:
    busy = world()
    busy.place(sized("t1", 1000, "r"))
    busy.tell(answered("t1", 1100, reply=50, tool="look"))
    assert (seat(busy).in_flight, seat(busy).kept) == (0, 1150)
    busy.place(sized("t2", 1200, "r"))
    assert seat(busy).kept == 0
    # 1100 were measured, some 200 are new, and 185 are expected now; 1150 of that are cached.
    assert [each.tokens for each in seat(busy).awaiting] == [pytest.approx(335, abs=2)]
