"""The types of single values in `luftpause.toml`, and what all its sections share."""

from typing import Annotated, Final, Literal, get_args

import msgspec
from msgspec import Meta

_DURATION: Final = r"([0-9]+(\.[0-9]+)?(ms|s|m|h|d))+"
_SIZE: Final = r"[0-9]+(\.[0-9]+)? ?(B|kB|KB|KiB|MB|MiB|GB|GiB|TB|TiB)"

Port = Annotated[int, Meta(ge=0, le=65535, description="0 picks a free port and prints it")]
Name = Annotated[
    str,
    Meta(
        min_length=1,
        max_length=128,
        pattern=r"^[A-Za-z0-9][A-Za-z0-9._:/@-]*$",
        title="name of letters, digits and ._:/@- that begins with a letter or digit",
        examples=["llama-3.2-1b"],
    ),
]
ToolServerName = Annotated[
    str,
    Meta(
        pattern=r"^[A-Za-z0-9_-]{1,32}$",
        title="name of at most 32 letters, digits, _ and -",
        examples=["wikipedia"],
    ),
]
Duration = Annotated[
    str,
    Meta(pattern=f"^{_DURATION}$", title="duration", examples=["10m", "500ms", "2h30m"]),
]
KvParking = Literal["auto", "off"]
RequestEdit = Literal[
    "model", "id_slot", "stream", "stream_options.include_usage", "priority", "max_tokens", "max_output_tokens"
]
REQUEST_EDITS: Final[tuple[RequestEdit, ...]] = get_args(RequestEdit)
Size = Annotated[
    str,
    Meta(
        pattern=f"^{_SIZE}$",
        title="size",
        examples=["20GiB", "600MB"],
    ),
]
AllowedHost = Annotated[
    str,
    Meta(
        pattern=r"^[^\s/@]{1,255}$",
        title="host name",
        examples=["box.lan", "box.lan:8080"],
    ),
]
Origin = Annotated[
    str,
    Meta(
        pattern=r"^[A-Za-z][A-Za-z0-9+.-]*://[^\s/]{1,255}/?$",
        title="web origin",
        examples=["https://chat.example.org"],
    ),
]
Ttl = Annotated[
    str,
    Meta(
        pattern=f"^(never|{_DURATION})$",
        title="duration or 'never'",
        examples=["10m", "never"],
    ),
]
OptionalSize = Annotated[
    str,
    Meta(
        pattern=f"^({_SIZE})?$",
        title="size, or nothing,",
        examples=["20GiB", "600MB"],
    ),
]
OptionalTtl = Annotated[
    str,
    Meta(
        pattern=f"^(never|{_DURATION})?$",
        title="duration, 'never', or nothing,",
        examples=["10m", "never"],
    ),
]
Engine = Literal["auto", "sglang", "vllm", "llama.cpp", "ollama", "router", "openai"]
Backend = Literal["llama.cpp", "vllm", "sglang", "ollama", "command"]


class Section(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """What all sections share: immutable, by name, strict."""
