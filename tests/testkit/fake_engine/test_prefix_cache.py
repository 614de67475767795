"""The prefix cache keeps chains whole and what is pinned."""

from hypothesis import given
from hypothesis import strategies as st

from luftpause.testkit.fake_engine.prefix_cache import Piece, PrefixCache


def chain(*names: str) -> tuple[Piece, ...]:
    return tuple(Piece("/".join(names[: end + 1]), 10) for end in range(len(names)))


def test_a_prompt_meets_as_much_of_its_prefix_as_is_kept() -> None:
    cache = PrefixCache()
    cache.keep(chain("a", "b"))
    assert cache.matched(chain("a", "b", "c")) == 2
    assert cache.matched(chain("a", "x", "c")) == 1
    assert cache.matched(chain("x")) == 0
    assert cache.tokens == 20


def test_a_piece_shared_by_two_conversations_counts_once() -> None:
    cache = PrefixCache()
    cache.keep(chain("a", "b"))
    cache.keep(chain("a", "c"))
    assert cache.tokens == 30


def test_the_end_of_the_conversation_untouched_longest_goes_first() -> None:
    cache = PrefixCache()
    cache.keep(chain("a", "old"))
    cache.keep(chain("a", "new"))
    assert cache.shrink_to(20)
    assert cache.matched(chain("a", "old")) == 1
    assert cache.matched(chain("a", "new")) == 2


def test_what_is_pinned_stays_until_every_pin_is_gone() -> None:
    cache = PrefixCache()
    cache.keep(chain("a"))
    cache.pin(chain("a"))
    cache.pin(chain("a"))
    cache.unpin(chain("a"))
    assert not cache.shrink_to(0)
    assert cache.matched(chain("a")) == 1
    cache.unpin(chain("a"))
    assert cache.shrink_to(0)
    assert cache.tokens == 0


@given(st.lists(st.tuples(st.text("abc", min_size=1, max_size=4), st.integers(0, 80)), max_size=30))
def test_no_piece_outlives_the_prefix_it_builds_on(steps: list[tuple[str, int]]) -> None:
    cache = PrefixCache()
    seen = set()
    for names, tokens in steps:
        cache.keep(chain(*names))
        seen.add(names)
        cache.shrink_to(tokens)
        assert cache.tokens <= tokens
        reachable = {piece.prefix for known in seen for piece in chain(*known)[: cache.matched(chain(*known))]}
        assert cache.tokens == 10 * len(reachable)
