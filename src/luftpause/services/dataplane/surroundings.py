"""What a turn finds at the dataplane: what all turns share, and the call that one of them answers."""

from collections.abc import Sequence
from dataclasses import dataclass

import msgspec

from luftpause.core.model.principals import ANONYMOUS, Principal
from luftpause.ports.asgi import Line, Send
from luftpause.ports.engines import Engines, Header
from luftpause.ports.scheduler import SchedulerLink
from luftpause.services.dataplane.counts import DoorCounts
from luftpause.services.dataplane.keepalive import Keepalives
from luftpause.services.dataplane.open_turns import OpenTurns
from luftpause.services.dataplane.settings import DataplaneSettings
from luftpause.services.dataplane.spoken import Spoken


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """What every turn of a dataplane shares. `traces`: whether each turn has a place in a trace."""

    link: SchedulerLink
    engines: Engines
    turns: OpenTurns
    counts: DoorCounts
    settings: DataplaneSettings
    spoken: Spoken
    keepalives: Keepalives
    traces: bool = False


class ClientCall(msgspec.Struct, frozen=True, kw_only=True):
    """One call of the application by its server. `kept`: see `ports.asgi.kept_of`."""

    line: Line
    headers: Sequence[Header]
    send: Send
    principal: Principal = ANONYMOUS
    kept: dict[str, object] | None = None
