"""What a party is served counts for less, the greater its weight is."""

from immutables import Map

from core.scheduling.builders import placed
from core.scheduling.working_set.worlds import answered, sized, world
from luftpause.core.model.ids import CallerId, PrincipalId
from luftpause.core.scheduling.working_set.limits import WorkingSetLimits
from luftpause.core.scheduling.working_set.weights import EVEN, Weights

ALICE, DESK = PrincipalId("alice"), CallerId("desk")
WEIGHTS = Weights(principals=Map({ALICE: 2.0}), callers=Map({DESK: 4.0}))


def test_service_is_weighed_among_principals_and_among_callers() -> None:
    assert WEIGHTS.weighed((ALICE, DESK), 1000) == (500, 250)
    assert WEIGHTS.weighed((ALICE, CallerId("other")), 1000) == (500, 1000)
    assert WEIGHTS.weighed((PrincipalId("bob"), DESK), 1000) == (1000, 250)
    assert EVEN.weighed((ALICE, DESK), 1001) == (1001, 1001)


def served(weights: Weights) -> list[str]:
    """Let two callers have one run after the other where one fits; return whose of 30."""
    made = world(limits=WorkingSetLimits(fill=1.0, weights=weights))
    made.place(sized("first", 9000, caller="nobody"))
    for number in range(30):
        for caller in ("desk", "other"):
            made.hold(sized(f"{caller}-{number}", 9000, caller=caller))
    order, turn = list[str](), "first"
    for _ in range(30):
        ((turn, _),) = placed(made.tell(answered(turn, 9000)))
        order.append(turn.partition("-")[0])
    return order


def test_a_caller_with_four_times_the_weight_is_served_four_times_as_often() -> None:
    assert served(EVEN).count("desk") == 15
    assert served(WEIGHTS).count("desk") == 24
