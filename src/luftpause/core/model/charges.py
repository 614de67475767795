"""What a turn in flight is charged with, and what it is charged with once its answer has become longer than that.

Who sees the answer and who keeps the books ask here alike, and so agree on when it is spoken of next.
"""

from dataclasses import dataclass
from typing import Final

TOKENS_MAX: Final = 100_000_000
"""No turn has more."""

BYTES_MAX: Final = 1 << 48
"""No answer has more."""

GROWTH: Final = 4
"""An answer that outgrew its charge is charged with one part in so many more than it has."""

GROWTH_MIN: Final = 128
"""And with so many tokens more at least: few of them are worth no word."""


def still_to_come(made: int) -> int:
    """Return how many tokens more an answer is charged with that has so many and outgrew its charge."""
    return max(made // GROWTH, GROWTH_MIN)


@dataclass(frozen=True, slots=True, kw_only=True)
class Charge:
    """What one turn is charged with.

    Attributes:
        prompt: tokens of its prompt.
        reply: tokens of its answer, as long as that is taken to become.
        reply_bytes: what so long an answer comes to as its engine streams it: whoever sees it become that long says
            so; 0: nobody need say anything.
        reply_cap: tokens that its engine is to be told its answer may have; 0: it is told nothing.
    """

    prompt: int
    reply: int
    reply_bytes: int = 0
    reply_cap: int = 0

    @property
    def tokens(self) -> int:
        """All that it is charged with."""
        return self.prompt + self.reply

    def made(self, reply_bytes: int) -> int:
        """Return how many tokens an answer has of which so many bytes were streamed, where somebody is to say so."""
        return self.reply * reply_bytes // self.reply_bytes

    def grown(self, reply_bytes: int, reply_max: int) -> "Charge":
        """Return the charge when so many bytes of the answer were streamed: the same, while it was thought as long.

        Nobody knows how much is still to come: `still_to_come` keeps what is said of it rare. Past our cap it is one
        that was not told to its engine, or not obeyed.

        Args:
            reply_bytes: of the answer.
            reply_max: tokens that its request allows it; 0 where that does not say.
        """
        if not 0 < self.reply_bytes <= reply_bytes <= BYTES_MAX:
            return self
        made = self.made(reply_bytes)
        reply, most = made + still_to_come(made), reply_max or TOKENS_MAX
        if made < self.reply_cap < reply:
            reply = self.reply_cap
        if reply >= most:
            return Charge(prompt=self.prompt, reply=max(self.reply, most), reply_cap=self.reply_cap)
        spoken_of = min(BYTES_MAX, reply_bytes * reply // made)
        return Charge(prompt=self.prompt, reply=reply, reply_bytes=spoken_of, reply_cap=self.reply_cap)
