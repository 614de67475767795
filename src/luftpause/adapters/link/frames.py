"""What is said over the link: one struct per frame, in the order in which a conversation uses them.

A frame is a msgpack array whose first element is its tag. Admits are answered by turn id, other requests by request
id. Fields are only ever appended, with a default; anything else is a new `LINK_PROTOCOL`. `Hello` and `Fault` keep
their shape in every protocol, so that two versions can still tell each other why they part.
Nothing here knows sockets, order or time.
"""

from typing import Final, TypeAlias

import msgspec

from luftpause.core.model.ids import ModelName, PeerId, PrincipalId, ReplicaId, RunId, TurnId
from luftpause.core.model.refusals import Refusal
from luftpause.core.model.replicas import Placement, ReplicaSpec
from luftpause.core.model.turns import TurnOffer
from luftpause.core.scheduling.events import KnownRun, OpenTurn
from luftpause.core.scheduling.residency.events import LauncherJoined

LINK_PROTOCOL: Final = 9

FAULT_TOKEN: Final = "bad_token"
FAULT_PROTOCOL: Final = "wrong_protocol"
FAULT_ILL_FORMED: Final = "ill_formed"
FAULT_REPLACED: Final = "replaced"
FAULT_LATE: Final = "no_hello"
FAULT_FULL: Final = "too_many_connections"


class Frame(msgspec.Struct, frozen=True, array_like=True):
    """What all frames share: immutable, and an array on the wire."""


class Hello(Frame, frozen=True, tag="hello"):
    """The client's first frame. `token` is empty when the link asks for none."""

    protocol: int
    peer: PeerId
    token: str = ""


class Welcome(Frame, frozen=True, tag="welcome"):
    """The server's answer to a hello. `instance` differs whenever the scheduler was started anew."""

    protocol: int
    instance: str


class Resync(Frame, frozen=True, tag="resync"):
    """A part of all that the client knows, before anything else on each connection; `last` ends it.

    `is_returning` counts in the last part: the client knew a scheduler before, and it was another instance.
    """

    turns: tuple[OpenTurn, ...]
    runs: tuple[KnownRun, ...]
    last: bool
    is_returning: bool = False


class Admit(Frame, frozen=True, tag="admit"):
    """Offer a turn. Answered by one Accepted and later one Placed or Refused, or by Refused alone."""

    offer: TurnOffer


class Report(Frame, frozen=True, tag="report"):
    """A report about turns: `kind` is its class name, `body` its fields, `seq` counts the client's reports."""

    seq: int
    kind: str
    body: msgspec.Raw


class EndRun(Frame, frozen=True, tag="end_run"):
    """Forget a run. Answered by RunGone."""

    request: int
    principal: PrincipalId
    run: RunId


class ListModels(Frame, frozen=True, tag="list_models"):
    """Ask for all models. Answered by Models."""

    request: int


class AddReplica(Frame, frozen=True, tag="add_replica"):
    """Declare a replica. Answered by Done."""

    request: int
    spec: ReplicaSpec


class RemoveReplica(Frame, frozen=True, tag="remove_replica"):
    """Take a replica away. Answered by Done."""

    request: int
    replica: ReplicaId


class Joined(Frame, frozen=True, tag="joined"):
    """A launcher tells all that it can start and all that it runs: on each connection, and when that changes."""

    inventory: LauncherJoined


class Told(Frame, frozen=True, tag="told"):
    """A launcher's report about a model: `kind` is its class name, `body` its fields."""

    kind: str
    body: msgspec.Raw


class LogLines(Frame, frozen=True, tag="log_lines"):
    """Answer to AskLog: lines that a model's engines wrote, and the number of the next one."""

    request: int
    lines: tuple[str, ...]
    next: int


class Goodbye(Frame, frozen=True, tag="goodbye"):
    """The client leaves for good: no grace."""


class Accepted(Frame, frozen=True, tag="accepted"):
    """The turn was accepted as one of this run's. `parent`: the run that it named as its parent, if that is known."""

    turn: TurnId
    run: RunId
    parent: RunId | None = None


class Placed(Frame, frozen=True, tag="placed"):
    """The accepted turn has its place."""

    turn: TurnId
    placement: Placement


class Recalled(Frame, frozen=True, tag="recalled"):
    """The placed turn is asked back. Answered by a report: that it returned, that it stays, or how it ended."""

    turn: TurnId


class Refused(Frame, frozen=True, tag="refused"):
    """The turn was turned away, at once or after it was accepted."""

    turn: TurnId
    refusal: Refusal


class Acknowledged(Frame, frozen=True, tag="acknowledged"):
    """All reports up to and including `seq` have been taken in."""

    seq: int


class RunGone(Frame, frozen=True, tag="run_gone"):
    """Answer to EndRun: whether the principal had such a run."""

    request: int
    ended: bool


class Models(Frame, frozen=True, tag="models"):
    """Answer to ListModels."""

    request: int
    models: tuple[ModelName, ...]


class Done(Frame, frozen=True, tag="done"):
    """Answer to a request that returns nothing."""

    request: int


class Ordered(Frame, frozen=True, tag="ordered"):
    """An order to a launcher: `kind` is its class name, `body` its fields. Its end is told."""

    kind: str
    body: msgspec.Raw


class AskLog(Frame, frozen=True, tag="ask_log"):
    """Ask a launcher for what a model's engines wrote from line `after` on. Answered by LogLines."""

    request: int
    model: ModelName
    after: int


class Failed(Frame, frozen=True, tag="failed"):
    """The scheduler broke on this request; the connection goes on."""

    request: int
    message: str


class Fault(Frame, frozen=True, tag="fault"):
    """Why the sender closes the connection right after this frame."""

    code: str
    message: str


Request: TypeAlias = EndRun | ListModels | AddReplica | RemoveReplica
"""What a client asks under a request id."""

Answer: TypeAlias = RunGone | Models | Done | Failed
"""What ends a request."""

LauncherFrame: TypeAlias = Joined | Told | LogLines
"""What only launchers say."""

PeerFrame: TypeAlias = Hello | Resync | Admit | Report | Request | Goodbye
ClientFrame: TypeAlias = PeerFrame | LauncherFrame
ServerFrame: TypeAlias = (
    Welcome | Accepted | Placed | Recalled | Refused | Acknowledged | Answer | Ordered | AskLog | Fault
)
