"""`python -m luftpause.adapters.tether PARENT PROGRAM [ARG ...]`: becomes a program that ends when its parent does.

Linux only: the kernel is asked to kill the process with its parent, and that wish outlives the exec. So an engine does
not stay behind, holding memory and a port, when its launcher is killed and can clean up nothing.
"""

import ctypes
import os
import signal
import sys
from typing import Final

_PR_SET_PDEATHSIG: Final = 1
WORD_VARIABLE: Final = "LUFTPAUSE_ENGINE"
"""The variable by which a launcher knows the processes that it started, and their children, from all others."""
CANNOT_RUN: Final = 127
"""Exit code when there is no such program, as a shell's."""


def die_with_parent() -> None:
    """Ask the kernel to end this process with its parent, where it can (Linux)."""
    # SIGKILL, because the process may be busy inside a library when its parent ends.
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, int(signal.SIGKILL), 0, 0, 0)


def tethered(argv: tuple[str, ...]) -> tuple[str, ...]:
    """Return the command line that runs `argv` tethered to this process; `argv` itself where that cannot be had."""
    if sys.platform != "linux":
        return argv
    # Neither site nor our own package is needed for that, and both take their time.
    return (sys.executable, "-I", "-S", __file__, str(os.getpid()), *argv)


def main(arguments: list[str]) -> int:
    """Become the program. Return only when that fails, or when the parent ended before the kernel was asked."""
    parent, program = int(arguments[0]), arguments[1]
    die_with_parent()
    if os.getppid() != parent:
        return 0
    try:
        os.execvp(program, arguments[1:])
    except OSError as error:
        sys.stderr.write(f"cannot run {program!r}: {error.strerror}\n")
    return CANNOT_RUN


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
