"""Whether the hot path of this luftpause is compiled. Imports nothing that the help would have to wait for."""

import importlib.util


def is_compiled() -> bool:
    """Return whether it is."""
    decide = importlib.util.find_spec("luftpause.core.scheduling.decide")
    return decide is not None and not str(decide.origin).endswith(".py")
