"""Entry point of `python -m luftpause`. A Ctrl-C ends it quietly even while its modules load."""

import importlib
import sys


def run() -> None:
    """Load the command and run it."""
    try:
        importlib.import_module("luftpause.cli.main").main()
    except KeyboardInterrupt:
        sys.exit(130)


if __name__ == "__main__":
    run()
