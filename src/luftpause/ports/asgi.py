"""The ASGI interface between a door's server and its application, as types.

ASGI's scopes and messages are open dictionaries by its specification, hence the `Any`.
"""

from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any, Final, TypeAlias

Scope: TypeAlias = MutableMapping[str, Any]
Message: TypeAlias = MutableMapping[str, Any]
Receive: TypeAlias = Callable[[], Awaitable[Message]]
Send: TypeAlias = Callable[[Message], Awaitable[None]]
Application: TypeAlias = Callable[[Scope, Receive, Send], Awaitable[None]]

CUT_EXTENSION: Final = "luftpause.http"
"""Key in `scope["extensions"]` of a dictionary whose `"cut"` is a call without arguments: it ends an answer as broken.

What was sent goes out, then the connection closes without the final chunk. Servers other than ours lack it.
"""
