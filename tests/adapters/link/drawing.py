"""Hypothesis strategies for anything that goes over the link, made from its type alone."""

import types
from dataclasses import fields, is_dataclass
from enum import Enum
from typing import Any, NewType, Union, get_args, get_origin, get_type_hints

import msgspec
from hypothesis import strategies as st

_PLAIN: dict[type, st.SearchStrategy[Any]] = {
    str: st.text(max_size=20),
    int: st.integers(-(2**63), 2**63 - 1),
    float: st.floats(0, 1e9),
    bool: st.booleans(),
    types.NoneType: st.none(),
}


def values(kind: Any) -> st.SearchStrategy[Any]:  # noqa: ANN401 a type form of any sort
    """Return a strategy for every value of a type that the wire can carry."""
    if isinstance(kind, NewType):
        return values(kind.__supertype__)
    if isinstance(kind, types.UnionType) or get_origin(kind) is Union:
        return st.one_of(*(values(member) for member in get_args(kind)))
    if get_origin(kind) is tuple:
        members = [values(member) for member in get_args(kind) if member is not Ellipsis]
        endless = Ellipsis in get_args(kind)
        return st.lists(members[0], max_size=4).map(tuple) if endless else st.tuples(*members)
    if kind in _PLAIN:
        return _PLAIN[kind]
    if issubclass(kind, Enum):
        return st.sampled_from(list(kind))
    hints = get_type_hints(kind)
    if is_dataclass(kind):
        names = [field.name for field in fields(kind)]
    else:
        names = [field.name for field in msgspec.structs.fields(kind)]
    return st.builds(kind, **{name: values(hints[name]) for name in names})
