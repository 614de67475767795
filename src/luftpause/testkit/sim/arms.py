"""The arms by name: who decides which engine gets a turn, and when."""

from typing import Final

from luftpause.testkit.sim.admission import TurnAdmission
from luftpause.testkit.sim.forwarding import Direct, Router
from luftpause.testkit.sim.pool import Arm, Pool
from luftpause.testkit.sim.setting import Setting

ARMS: Final = ("direct", "router", "turn-admission")


def make_arm(name: str, pool: Pool, setting: Setting, *, checked: bool) -> Arm:
    """Return the arm of that name."""
    match name:
        case "direct":
            return Direct(pool, setting)
        case "router":
            return Router(pool, setting)
        case "turn-admission":
            return TurnAdmission(pool, setting, checked=checked)
        case _:
            raise ValueError(f"no arm {name!r}; there are {', '.join(ARMS)}")
