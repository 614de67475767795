"""Names of things: one `NewType` per kind of id, so that they cannot be mixed up.

`Instant` is seconds on a monotonic clock that only the process at hand understands: it never crosses a link.
"""

from typing import Final, NewType

ActiveMs = NewType("ActiveMs", int)
"""Milliseconds on a tree of runs' own clock: it begins at 0 and stands still while no runtime has the tree."""

CallerId = NewType("CallerId", str)
"""Who a turn is accounted to for fairness: a label below the principal, at most 128 bytes."""

DeviceId = NewType("DeviceId", str)
"""A memory that engines take: `ram`, or one accelerator's."""

Instant = NewType("Instant", float)
"""Seconds on the shell's monotonic clock."""

KvFile = NewType("KvFile", int)
"""The KV of one run that a launcher keeps in a file: a number that no other file of it has."""

LauncherId = NewType("LauncherId", str)
"""One launcher, by a name that it keeps when it comes back."""

Mark = NewType("Mark", str)
"""Something that a run is recognised by: a harness's session, an echoed id, what was said. Its kind stands in front."""

ModelName = NewType("ModelName", str)
PeerId = NewType("PeerId", str)
"""One dataplane instance: the first part of every turn id that it mints."""

PrincipalId = NewType("PrincipalId", str)
"""Who presented a credential; runs, tool-call ids and handles belong to it."""

ReplicaId = NewType("ReplicaId", str)
RunId = NewType("RunId", str)
ToolCallId = NewType("ToolCallId", str)
ToolName = NewType("ToolName", str)
"""What a model calls a tool by: `core/model/tool_names.py` finds its server in it."""

TurnId = NewType("TurnId", str)
"""`<peer>.<counter>`: admitting the same id again returns the same placement."""

ANONYMOUS_CALLER: Final = CallerId("anonymous")
ANONYMOUS_PRINCIPAL: Final = PrincipalId("anonymous")
OPERATOR_PRINCIPAL: Final = PrincipalId("operator")
CALLER_BYTES_MAX: Final = 128
