"""Entry point of `python -m luftpause`. A Ctrl-C ends it quietly even while its modules load."""

import importlib
import io
import sys


def run() -> None:
    """Load the command and run it. Where output takes no `×` or `–`, it has a `?` there, and no end with a trace."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")
    try:
        importlib.import_module("luftpause.cli.main").main()
    except KeyboardInterrupt:
        sys.exit(130)


if __name__ == "__main__":
    run()
