"""What `luftpause status` needs of the scheduler's `GET /status`; further fields are none of its business."""

import msgspec

from luftpause.cli.models import ModelRow


class ReplicaRow(msgspec.Struct, frozen=True, kw_only=True):
    """One replica; capacity is None while its turns are not capped."""

    name: str
    models: list[str] = []
    healthy: bool = False
    state: str = ""
    in_flight: int = 0
    capacity: int | None = None
    foreign: int = 0


class HeldRow(msgspec.Struct, frozen=True, kw_only=True):
    """Turns that wait for the same reason. Seconds: how long the oldest has waited, and the first will still."""

    service_class: str = msgspec.field(name="class", default="")
    caller: str = ""
    count: int = 1
    oldest_s: float = 0.0
    expected_s: float | None = None
    reason: str = ""


class RunRow(msgspec.Struct, frozen=True, kw_only=True):
    """How many runs of a class are in a phase."""

    phase: str
    service_class: str = msgspec.field(name="class", default="")
    count: int


class ToolRow(msgspec.Struct, frozen=True, kw_only=True):
    """How long runs stay out on a tool, in seconds."""

    server: str = ""
    tool: str
    returned: int = 0
    running: int = 0
    p50_s: float
    p90_s: float
    expected_return_s: float


class CallerRow(msgspec.Struct, frozen=True, kw_only=True):
    """A caller's open turns."""

    principal: str = ""
    caller: str = ""
    in_flight: int = 0
    held: int = 0


class Spent(msgspec.Struct, frozen=True, kw_only=True):
    """What runs have cost."""

    turns: int = 0
    tool_calls: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0


class MemberRow(msgspec.Struct, frozen=True, kw_only=True):
    """A run of a family; phase and class are None where it is not known."""

    run: str
    phase: str | None = None
    service_class: str | None = msgspec.field(name="class", default=None)
    own: Spent = Spent()


class FamilyRow(MemberRow, frozen=True, kw_only=True):
    """A run, and those that it began."""

    at_work: int = 0
    subtree: Spent = Spent()
    children: list[MemberRow] = []
    omitted: int = 0


class ApprovalRow(msgspec.Struct, frozen=True, kw_only=True):
    """A tool call that waits for a person. Its arguments are JSON, cut where they are long."""

    tool: str
    arguments: str = ""
    reason: str = ""


class SubAgentRow(msgspec.Struct, frozen=True, kw_only=True):
    """A run that the runtime keeps, with what it and all below it cost; `task` is how its task begins."""

    handle: str
    task: str = ""
    status: str = ""
    error: str | None = None
    approvals: list[ApprovalRow] = []
    subtree: Spent = Spent()


class SubAgents(msgspec.Struct, frozen=True, kw_only=True):
    """Those that are told of, in the order in which they are."""

    rows: dict[str, SubAgentRow] = {}
    order: list[str] = []


class Tables(msgspec.Struct, frozen=True, kw_only=True):
    """Of the first event of the page's stream, what `GET /status` does not have."""

    trees: SubAgents = SubAgents()


class Runtime(msgspec.Struct, frozen=True, kw_only=True):
    """The runtime that was asked: why it does not answer, if it does not, and how many more runs it has."""

    url: str = ""
    away: str = ""
    omitted: int = 0


class Event(msgspec.Struct, frozen=True, kw_only=True):
    """The first event of the page's stream."""

    tables: Tables = Tables()
    runtime: Runtime | None = None


class DeviceRow(msgspec.Struct, frozen=True, kw_only=True):
    """A launcher's memory, in bytes."""

    launcher: str
    device: str
    budget: int = 0
    taken: int = 0


class PeerRow(msgspec.Struct, frozen=True, kw_only=True):
    """A service that holds the scheduler over its link."""

    name: str
    connected: bool = False
    open_turns: int = 0


class Status(msgspec.Struct, frozen=True, kw_only=True):
    """The whole answer."""

    replicas: list[ReplicaRow]
    held: list[HeldRow] = []
    runs: list[RunRow] = []
    callers: list[CallerRow] = []
    tools: list[ToolRow] = []
    families: list[FamilyRow] = []
    peers: list[PeerRow] = []
    models: list[ModelRow] = []
    devices: list[DeviceRow] = []
