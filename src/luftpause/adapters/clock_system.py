"""The machine's own wall clock behind `ports.clock`."""

import time


class SystemClock:
    """Tells the time of day as the machine has it."""

    def utc(self) -> float:
        """Return seconds since the Unix epoch."""
        return time.time()
