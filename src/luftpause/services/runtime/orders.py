"""What is asked of the runtime, what can be set about it, and how it refuses."""

from collections.abc import Mapping
from dataclasses import dataclass

from luftpause.core.model.ids import CALLER_BYTES_MAX, CallerId, ModelName, PrincipalId, RunId
from luftpause.core.model.turns import ServiceClass
from luftpause.core.runs.events import DEFAULT_REPLY_TOKENS_MAX, DEFAULT_TOOL_CALLS_MAX, Limits, Origin
from luftpause.core.runs.messages import Message
from luftpause.services.runtime.schema_words import shown


class SpawnRefusedError(Exception):
    """Nothing was spawned. Its text tells the client why, and what would work."""


class SendRefusedError(Exception):
    """The run takes no message. Its text tells the client why, and what would work."""


class UnknownHandleError(Exception):
    """The principal has no run of this name."""

    def __init__(self, handle: str) -> None:
        super().__init__(f"there is no run {shown(handle)}")


class NotKeptError(Exception):
    """What was asked for, or waited for, cannot be put on record. Its text tells why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RuntimeSettings:
    """What can be set.

    Attributes:
        default_model: for spawns that name none; None takes the first model that is served.
        max_running: further spawns are refused while so many runs are not over.
        max_depth: runs below each other, a root counts as one.
        max_children: further spawns below a run are refused while so many of its children are not over.
        max_tool_calls: for spawns that name no number of tool calls.
        max_tokens: for spawns that name no longest reply, in tokens; 0 leaves it to the engine.
        await_default_s: how long an await without a timeout waits.
        await_max_s: how long any await waits at most.
        progress_every_s: how often a waiting client hears that it is still being waited for.
        orphan_grace_s: how long a run lives on whose client cancelled its `run` call by leaving.
        caller_bytes: longest name of a caller, cut there.
    """

    default_model: ModelName | None = None
    max_running: int = 1000
    max_depth: int = 8
    max_children: int = 100
    max_tool_calls: int = DEFAULT_TOOL_CALLS_MAX
    max_tokens: int = DEFAULT_REPLY_TOKENS_MAX
    await_default_s: float = 60.0
    await_max_s: float = 600.0
    progress_every_s: float = 10.0
    orphan_grace_s: float = 30.0
    caller_bytes: int = CALLER_BYTES_MAX


@dataclass(frozen=True, slots=True, kw_only=True)
class SpawnOrder:
    """What a client asks for. `tools` None means all there are; see RunSpawned for the rest.

    Attributes:
        idempotency_key: the same key and the same order of one principal spawn one run.
        spawner: the run whose own tool call this is, as far as the request says.
    """

    task: str
    principal: PrincipalId
    caller: CallerId
    model: ModelName | None = None
    fallback_models: tuple[ModelName, ...] = ()
    service_class: ServiceClass = ServiceClass.INTERACTIVE
    system: str | None = None
    tools: tuple[str, ...] | None = None
    max_tool_calls: int = DEFAULT_TOOL_CALLS_MAX
    max_tokens: int = DEFAULT_REPLY_TOKENS_MAX
    parallel_tool_calls: bool = False
    parent: RunId | None = None
    budget: Limits | None = None
    approve_tools: tuple[str, ...] = ()
    after: tuple[str, ...] = ()
    output_schema: Mapping[str, object] | None = None
    idempotency_key: str | None = None
    origin: Origin | None = None
    spawner: RunId | None = None
    traceparent: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Transcript:
    """A part of a run's conversation. `first`: the place of the first message, from 0; `total`: how many there are."""

    first: int
    total: int
    messages: tuple[Message, ...]
