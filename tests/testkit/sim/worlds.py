"""Small scenarios for tests, and their worlds."""

from typing import Literal

import msgspec

from luftpause.testkit.engine_model.figures import EngineFigures
from luftpause.testkit.sim.agent_groups import AgentGroup, Fan, FanOut, ToolTimes
from luftpause.testkit.sim.scenario import Faults, Outage, Scenario
from luftpause.testkit.sim.setting import setting_of
from luftpause.testkit.sim.sources import Drawn
from luftpause.testkit.sim.world import World


def group(
    name: str = "batch",
    service_class: Literal["interactive", "batch"] = "batch",
    *,
    count: int = 4,
    runs_per_min: float = 0.0,
    tool_s: float = 0.5,
    callers: int = 1,
    system_tokens: int = 0,
) -> AgentGroup:
    """Return agents with small prompts."""
    return AgentGroup(
        name=name,
        service_class=service_class,
        count=0 if runs_per_min else count,
        runs_per_min=runs_per_min,
        callers=callers,
        system_tokens=system_tokens,
        context_tokens=(300, 500),
        tool_calls=(1, 3),
        call_tokens=(10, 40),
        result_tokens=(20, 80),
        reply_tokens=(20, 60),
        reply_tokens_max=64,
        tools=(ToolTimes(median_s=tool_s, sigma=0.5),),
    )


def crowd(
    *groups: AgentGroup,
    replicas: int = 2,
    faults: Faults | None = None,
    outages: tuple[Outage, ...] = (),
    kv_tokens: int = 3000,
) -> Scenario:
    """Return agents on engines that are too small for them; one minute is counted after ten seconds."""
    return Scenario(
        name="crowd",
        replicas=replicas,
        warmup_s=10.0,
        minutes=1.0,
        engine=EngineFigures(kv_tokens=kv_tokens),
        agents=groups or (group(count=16), group("people", "interactive", count=2)),
        faults=faults or Faults(),
        outages=outages,
    )


def family(*sizes: Fan, awaits: Literal["all", "any"] = "all", parents: int = 2) -> Scenario:
    """Return parents in a closed loop, who begin children and wait for them."""
    parent = msgspec.structs.replace(
        group("parent", "interactive", count=parents), fan_out=FanOut(group="child", sizes=sizes, awaits=awaits)
    )
    return crowd(parent, group("child", count=0), kv_tokens=100_000)


def world_of(scenario: Scenario, arm: str, *, checked: bool = False) -> World:
    """Return the world that a scenario describes, drawn from seed 1."""
    return World(setting_of(scenario), Drawn(scenario, 1), arm, 1, checked=checked)
