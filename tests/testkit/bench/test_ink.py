"""What pictures are drawn with."""

from collections.abc import Iterator
from itertools import pairwise

import pytest

from luftpause.testkit.bench.ink import DASHES, FIRST, GROUNDS, PEERS, SECOND, STYLE, looks
from luftpause.testkit.sim.arms import ARMS, WITHOUT

SEEN = 3.0
"""What lines must differ from their ground by, as the web's rules for people who see less have it."""


def brightness(colour: str) -> float:
    """Return the relative luminance of #rrggbb, 0 to 1."""
    shares = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    red, green, blue = [each / 12.92 if each <= 0.04045 else ((each + 0.055) / 1.055) ** 2.4 for each in shares]
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def inks() -> Iterator[tuple[str, str]]:
    """Return each colour with the ground that it stands on."""
    for night, ground in enumerate(GROUNDS):
        yield FIRST[night], ground
        yield SECOND[night], ground
        for colour in PEERS:
            yield colour, ground


@pytest.mark.parametrize(("colour", "ground"), list(inks()))
def test_every_line_is_seen_by_day_and_by_night(colour: str, ground: str) -> None:
    low, high = sorted((brightness(colour), brightness(ground)))
    assert (high + 0.05) / (low + 0.05) >= SEEN


def test_ours_are_the_strongest_lines_and_solid() -> None:
    found = looks([*ARMS, *WITHOUT])
    others = [look for arm, look in found.items() if arm not in ("working-set", "turn-admission")]
    assert found["working-set"].width > found["turn-admission"].width > max(look.width for look in others)
    assert not found["working-set"].dash
    assert not found["turn-admission"].dash
    assert not any(look.is_ours for look in others)


def test_twenty_others_differ_and_neighbours_differ_without_their_colours() -> None:
    found = list(looks([f"router-{number}" for number in range(20)]).values())
    assert len({(look.kind, look.dash) for look in found}) == 20
    assert all(one.dash != other.dash for one, other in pairwise(found))
    assert all(f".{look.kind}{{" in STYLE for look in found)


def test_an_arm_of_another_commit_looks_like_its_arm_but_dashed() -> None:
    found = looks(["working-set", "working-set@abc", "working-set@def", "turn-admission@abc"])
    assert {look.kind for look in found.values()} == {"first", "second"}
    assert len({(look.kind, look.dash) for look in found.values()}) == 4
    assert found["working-set@abc"].dash in DASHES[1:]
