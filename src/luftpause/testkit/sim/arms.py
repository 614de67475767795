"""The arms by name: who decides which engine gets a turn, and when."""

from collections.abc import Callable, Mapping
from typing import Final

from luftpause.core.scheduling.state import Limits
from luftpause.core.scheduling.working_set.limits import WorkingSetLimits
from luftpause.testkit.sim.admission import TurnAdmission
from luftpause.testkit.sim.forwarding import Direct
from luftpause.testkit.sim.pool import Arm, Pool
from luftpause.testkit.sim.priority_gateway import PriorityGateway
from luftpause.testkit.sim.routers import CacheAware, Manual, StickyLeastLoaded
from luftpause.testkit.sim.setting import Setting
from luftpause.testkit.sim.swap import Swap

ARMS: Final = (
    "direct",
    "sglang-router",
    "sglang-router-tuned",
    "sglang-router-manual",
    "vllm-router",
    "smg",
    "turn-admission-free",
    "turn-admission",
    "working-set",
)
PIECES: Final[Mapping[str, WorkingSetLimits]] = {
    "gate": WorkingSetLimits(gate=False),
    "tool-ttl": WorkingSetLimits(forget=False),
    "learning": WorkingSetLimits(learn=False),
    "first-tokens": WorkingSetLimits(first_tokens=0),
    "service": WorkingSetLimits(by_service=False),
    "claims": WorkingSetLimits(claim=False),
    "guests": WorkingSetLimits(guests=False),
    "trees": WorkingSetLimits(trees=False),
    "placement": WorkingSetLimits(placement=False),
    "moves": WorkingSetLimits(moves=False),
    "priorities": WorkingSetLimits(native_priority=False),
    "recall": WorkingSetLimits(recalls=0),
    "agents": WorkingSetLimits(agent_replies=False),
    "corrections": WorkingSetLimits(corrections=False),
}
"""Policy `working-set` with one piece taken away, by what is taken: see `working_set/limits.py`."""

WITHOUT: Final = tuple(f"working-set-without-{piece}" for piece in PIECES)
"""Arms that show what a piece is worth. They are asked only where they are named."""

LAUNCHING_ARMS: Final = ("llama-swap", "turn-admission", "working-set")
"""Those that load and unload models, for a scenario that has some."""

_MAKERS: Final[Mapping[str, Callable[[Pool, Setting, bool], Arm]]] = {
    "direct": lambda pool, setting, _: Direct(pool, setting),
    "sglang-router": lambda pool, setting, _: CacheAware(pool, setting),
    "sglang-router-tuned": lambda pool, setting, _: CacheAware(pool, setting, setting.router.balance_abs),
    "sglang-router-manual": lambda pool, setting, _: Manual(pool, setting),
    "vllm-router": lambda pool, setting, _: StickyLeastLoaded(pool, setting),
    "smg": lambda pool, setting, _: PriorityGateway(pool, setting),
    "turn-admission-free": lambda pool, setting, checked: TurnAdmission(
        pool, setting, Limits(), checked=checked, free=True
    ),
    "turn-admission": lambda pool, setting, checked: TurnAdmission(pool, setting, Limits(), checked=checked),
    "working-set": lambda pool, setting, checked: TurnAdmission(
        pool, setting, Limits(working_set=WorkingSetLimits()), checked=checked
    ),
    "llama-swap": lambda pool, setting, _: Swap(pool, setting),
}
"""Each is given the pool, the setting, and whether to prove and audit everything."""


def make_arm(name: str, pool: Pool, setting: Setting, *, checked: bool) -> Arm:
    """Return the arm of that name.

    Raises:
        ValueError: there is none, or it cannot do what the setting asks for.
    """
    able = arms_for(setting)
    if name in WITHOUT and not setting.is_launched:
        limits = Limits(working_set=PIECES[name.removeprefix("working-set-without-")])
        return TurnAdmission(pool, setting, limits, checked=checked)
    if name not in able:
        raise ValueError(f"no arm {name!r}; there are {', '.join(able)}")
    return _MAKERS[name](pool, setting, checked)


def arms_for(setting: Setting) -> tuple[str, ...]:
    """Return the arms that can serve a setting."""
    return LAUNCHING_ARMS if setting.is_launched else ARMS
