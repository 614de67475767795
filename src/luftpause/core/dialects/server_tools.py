"""Tools that run at a model's provider (searches, reading pages, running code): one rule for each translated dialect.

No engine runs them. Beside tools that the client runs they are left out: a model can go on without them, and coding
agents offer them with every request. That they were left out is told. Where nothing else is offered, the request is
about them and its answer would be made up, so it is refused.
"""

from collections.abc import Iterable

from luftpause.core.dialects.request import BadRequestError


def left_out(server_tools: Iterable[str], *, has_others: bool) -> tuple[str, ...]:
    """Return the names of what is left out, each once.

    Args:
        server_tools: what the request offers of such tools, by names of which there are few.
        has_others: whether it offers any that its client runs.

    Raises:
        BadRequestError: it offers nothing else.
    """
    names = tuple(dict.fromkeys(server_tools))
    if names and not has_others:
        raise BadRequestError(
            f"the request offers no other tools than {', '.join(names)}: such tools run at a model's provider, nothing "
            "here runs them, and without them the answer would be made up"
        )
    return names
