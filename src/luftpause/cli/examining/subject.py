"""What is looked at, and with what: the same for all looks."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from luftpause.config.schema import Config
from luftpause.ports.engines import Engines
from luftpause.services.scheduler.fetching import Fetcher

BODY_BYTES_MAX = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """A configuration as `luftpause up` would run it.

    Attributes:
        file: where it was read; None: the embedded default.
        named: whether that was named on the command line.
        env: our environment.
        engines: sends a key only where the configuration says so.
        look_s: the longest that one look may take, seconds.
    """

    config: Config
    file: Path | None
    named: bool
    env: Mapping[str, str]
    engines: Engines
    look_s: float

    @property
    def fetcher(self) -> Fetcher:
        """What looks at endpoints."""
        return Fetcher(self.engines, self.look_s)

    def command(self, words: str) -> str:
        """Return a command of ours that reads this configuration."""
        return f"luftpause {words}{f' --config {self.file}' if self.named else ''}"
