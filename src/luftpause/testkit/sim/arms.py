"""The arms by name: who decides which engine gets a turn, and when."""

from typing import Final

from luftpause.core.scheduling.state import Limits
from luftpause.core.scheduling.working_set.limits import WorkingSetLimits
from luftpause.testkit.sim.admission import TurnAdmission
from luftpause.testkit.sim.forwarding import Direct, Router
from luftpause.testkit.sim.pool import Arm, Pool
from luftpause.testkit.sim.setting import Setting
from luftpause.testkit.sim.swap import Swap

ARMS: Final = ("direct", "router", "turn-admission", "working-set")
LAUNCHING_ARMS: Final = ("llama-swap", "turn-admission", "working-set")
"""Those that load and unload models, for a scenario that has some."""


def make_arm(name: str, pool: Pool, setting: Setting, *, checked: bool) -> Arm:
    """Return the arm of that name.

    Raises:
        ValueError: there is none, or it cannot do what the setting asks for.
    """
    able = arms_for(setting)
    if name not in able:
        raise ValueError(f"no arm {name!r}; there are {', '.join(able)}")
    match name:
        case "direct":
            return Direct(pool, setting)
        case "router":
            return Router(pool, setting)
        case "turn-admission":
            return TurnAdmission(pool, setting, Limits(), checked=checked)
        case "working-set":
            return TurnAdmission(pool, setting, Limits(working_set=WorkingSetLimits()), checked=checked)
        case "llama-swap":
            return Swap(pool, setting)
        case _:
            raise AssertionError(f"{name} is listed and not made")


def arms_for(setting: Setting) -> tuple[str, ...]:
    """Return the arms that can serve a setting."""
    return LAUNCHING_ARMS if setting.is_launched else ARMS
