"""What is asked of the runtime, what can be set about it, and how it refuses."""

from dataclasses import dataclass

from luftpause.core.model.ids import CALLER_BYTES_MAX, CallerId, ModelName, PrincipalId, RunId
from luftpause.core.model.turns import ServiceClass
from luftpause.core.runs.events import DEFAULT_REPLY_TOKENS_MAX, DEFAULT_TOOL_CALLS_MAX
from luftpause.services.runtime.schema_fit import shown


class SpawnRefusedError(Exception):
    """Nothing was spawned. Its text tells the client why, and what would work."""


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
        max_tool_calls: for spawns that name no number of tool calls.
        max_tokens: for spawns that name no longest reply, in tokens; 0 leaves it to the engine.
        await_default_s: how long an await without a timeout waits.
        await_max_s: how long any await waits at most.
        progress_every_s: how often a waiting client hears that it is still being waited for.
        caller_bytes: longest name of a caller, cut there.
    """

    default_model: ModelName | None = None
    max_running: int = 1000
    max_tool_calls: int = DEFAULT_TOOL_CALLS_MAX
    max_tokens: int = DEFAULT_REPLY_TOKENS_MAX
    await_default_s: float = 60.0
    await_max_s: float = 600.0
    progress_every_s: float = 10.0
    caller_bytes: int = CALLER_BYTES_MAX


@dataclass(frozen=True, slots=True, kw_only=True)
class SpawnOrder:
    """What a client asks for. `tools` None means all there are; see RunSpawned for the rest."""

    task: str
    principal: PrincipalId
    caller: CallerId
    model: ModelName | None = None
    service_class: ServiceClass = ServiceClass.INTERACTIVE
    system: str | None = None
    tools: tuple[str, ...] | None = None
    max_tool_calls: int = DEFAULT_TOOL_CALLS_MAX
    max_tokens: int = DEFAULT_REPLY_TOKENS_MAX
    parallel_tool_calls: bool = False
    parent: RunId | None = None
