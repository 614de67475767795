"""A replica: something that takes turns, reached at an endpoint."""

from dataclasses import dataclass
from enum import Enum
from typing import Final

from luftpause.core.model.charges import Charge
from luftpause.core.model.ids import ModelName, ReplicaId

_NO_MODEL: Final = ModelName("")


class ReplicaKind(Enum):
    """How a replica answers: token by token, or in one forward pass (a classifier)."""

    GENERATIVE = "generative"
    SINGLE_PASS = "single-pass"

    __hash__ = object.__hash__  # there is one object of each member; enum's own hash runs in Python at every look-up


class EngineKind(Enum):
    """Which engine answers at an endpoint; AUTO is found out from what it reports."""

    AUTO = "auto"
    SGLANG = "sglang"
    VLLM = "vllm"
    LLAMA_CPP = "llama.cpp"
    OLLAMA = "ollama"
    ROUTER = "router"
    OPENAI = "openai"


ON_ONE_MACHINE: Final = (EngineKind.SGLANG, EngineKind.VLLM, EngineKind.LLAMA_CPP, EngineKind.OLLAMA)
"""Engines that do no more than compute: they read one prompt after the other, and cease when their client leaves."""


class Priorities(Enum):
    """Which priorities an engine serves first."""

    LOWER_FIRST = "lower first"
    HIGHER_FIRST = "higher first"


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoint:
    """Where a replica answers. `api_key_env` names the variable that holds its key; empty means none."""

    url: str
    api_key_env: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplicaSpec:
    """A replica as the config or the launcher declares it.

    Attributes:
        health: path whose 200 means healthy.
        load_from: base URLs of the engines behind it when it is a router; their loads are summed.
        dialects: the wire formats, by name, that it speaks beside Chat Completions; None: it is asked.
    """

    replica: ReplicaId
    endpoint: Endpoint
    models: tuple[ModelName, ...]
    kind: ReplicaKind = ReplicaKind.GENERATIVE
    engine: EngineKind = EngineKind.AUTO
    health: str = "/health"
    load_from: tuple[str, ...] = ()
    dialects: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """What an engine says of itself: requests it runs and requests it queues.

    Attributes:
        kv_tokens: tokens that its KV memory holds, all in all; None where it does not say.
        preemptions: how often it took memory back from a request under way, ever; None where it does not say.
        prompt_tokens: of all prompts that it was given since it was started; None where it does not say.
    """

    running: int
    waiting: int
    kv_tokens: int | None = None
    preemptions: int | None = None
    prompt_tokens: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Placement:
    """Where an admitted turn runs, and why there, in words a person can read.

    Attributes:
        engine: which engine answers there; AUTO while nobody knows.
        dialects: the wire formats, by name, that it is declared to speak beside Chat Completions; None: it is asked.
        kind: as what the replica takes the turn.
        model: which model the turn was taken for, also where its offer named none; empty from an older scheduler.
        life: which of its lives the replica is in: one that fell ill may come back as another engine.
        slot: where in its engine the turn goes; None: the engine chooses.
        restore: the file that is to be read into that slot first; empty for none.
        priority: in its engine's queue; None: none is sent.
        owns_priority: a `priority` in the request is none of its client's business: it is that one, or taken out.
        charge: what the turn is charged with; None where nobody asks how long its answer becomes.
    """

    replica: ReplicaId
    endpoint: Endpoint
    why: str
    engine: EngineKind = EngineKind.AUTO
    dialects: tuple[str, ...] | None = None
    kind: ReplicaKind = ReplicaKind.GENERATIVE
    model: ModelName = _NO_MODEL
    life: int = 0
    slot: int | None = None
    restore: str = ""
    priority: int | None = None
    owns_priority: bool = False
    charge: Charge | None = None
