"""How long real processes are watched, and how fast their time goes. Decides nothing."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """Planned seconds before anything is counted, planned minutes that are, and the speed of time.

    `real`: the engines are no fakes, so time has its own speed.
    """

    warmup_s: float = 30.0
    minutes: float = 2.0
    speed: float = 8.0
    real: bool = False

    @property
    def pace(self) -> float:
        """So many planned seconds pass in one."""
        return 1.0 if self.real else self.speed

    @property
    def until_s(self) -> float:
        """Planned seconds from the beginning to the end."""
        return self.warmup_s + self.minutes * 60
