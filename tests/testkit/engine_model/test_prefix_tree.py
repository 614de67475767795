"""The prefix cache of the simulated engine."""

import random

import pytest

from luftpause.testkit.engine_model.prefix_tree import Chain, Pinned, PrefixTree

PAGE = 16


def kept(tree: PrefixTree, chain: Chain) -> Pinned:
    """Keep a chain that nothing needs any more."""
    pinned = tree.grow(tree.pin(chain), chain)
    tree.unpin(pinned)
    return pinned


def found(tree: PrefixTree, chain: Chain) -> int:
    return tree.match(chain)[0]


def test_whole_pages_of_a_prompt_are_found_again() -> None:
    tree = PrefixTree(PAGE)
    kept(tree, [("run", 100)])
    assert tree.tokens == tree.idle_tokens == 96
    assert found(tree, [("run", 300)]) == 96
    assert found(tree, [("run", 50)]) == 48
    assert found(tree, [("other", 300)]) == 0


def test_a_shared_beginning_is_found_by_those_who_share_it() -> None:
    tree = PrefixTree(PAGE)
    kept(tree, [("system", 64), ("one", 32)])
    assert found(tree, [("system", 64), ("two", 32)]) == 64
    kept(tree, [("system", 64), ("two", 32)])
    assert tree.tokens == 64 + 32 + 32


def test_the_least_recently_used_end_goes_first_and_what_is_pinned_stays() -> None:
    tree = PrefixTree(PAGE)
    for run in ("old", "busy", "new"):
        kept(tree, [("system", 64), (run, 64)])
    pinned = tree.pin([("system", 64), ("busy", 64)])
    tree.evict(20)
    assert found(tree, [("system", 64), ("old", 64)]) == 64 + 32, "two pages from its end"
    tree.evict(tree.idle_tokens)
    assert found(tree, [("system", 64), ("new", 64)]) == 64
    assert (tree.tokens, tree.idle_tokens) == (128, 0)
    tree.unpin(pinned)
    tree.evict(128)
    assert tree.tokens == 0


def test_a_beginning_goes_after_all_that_builds_on_it() -> None:
    tree = PrefixTree(PAGE)
    kept(tree, [("system", 64), ("one", 64)])
    kept(tree, [("lonely", 64)])
    tree.evict(64)
    assert found(tree, [("system", 64)]) == 64
    tree.evict(64)
    assert (found(tree, [("system", 64)]), found(tree, [("lonely", 64)])) == (0, 64)


def test_matching_tells_what_pinning_would_protect() -> None:
    tree = PrefixTree(PAGE)
    kept(tree, [("system", 64), ("one", 160)])
    chain = [("system", 64), ("one", 80)]
    assert tree.match(chain) == (64 + 80, 64 + 80)
    pinned = tree.pin(chain)
    assert (pinned.tokens, tree.tokens, tree.idle_tokens) == (144, 144, 0), "the lost end is dropped"
    assert tree.match(chain) == (144, 0)


def test_a_segment_that_another_request_made_meanwhile_is_shared() -> None:
    tree = PrefixTree(PAGE)
    chain = [("run", 64)]
    one, two = tree.pin(chain), tree.pin(chain)
    one = tree.grow(one, chain)
    before = tree.tokens
    two = tree.grow(two, chain)
    assert tree.tokens == before == two.tokens
    tree.unpin(one)
    assert tree.idle_tokens == 0
    tree.unpin(two)
    assert tree.idle_tokens == 64


def test_a_chain_that_ends_ahead_of_a_segments_first_page_leaves_it_alone() -> None:
    tree = PrefixTree(PAGE)
    kept(tree, [("prompt", 64), ("reply", 48)])
    again = [("prompt", 64), ("reply", 5)]
    assert tree.match(again) == (64, 64)
    pinned = tree.grow(tree.pin(again), again)
    assert (pinned.tokens, tree.idle_tokens) == (64, 48)
    tree.evict(48)
    assert tree.tokens == 64


def test_who_has_less_of_a_segment_than_is_kept_does_not_protect_all_of_it() -> None:
    tree = PrefixTree(PAGE)
    short = [("prompt", 64), ("reply", 32)]
    pinned = tree.pin(short)
    kept(tree, [("prompt", 64), ("reply", 96), ("more", 16)])
    idle = tree.idle_tokens
    pinned = tree.grow(pinned, short)
    assert (pinned.tokens, tree.idle_tokens) == (64, idle - 64)
    full = [("prompt", 64), ("reply", 96)]
    assert tree.grow(pinned, full).tokens == 160


@pytest.mark.parametrize("seed", range(5))
def test_counts_hold_whatever_is_kept_pinned_and_evicted(seed: int) -> None:
    dice = random.Random(seed)
    tree = PrefixTree(PAGE)
    held: list[tuple[Pinned, Chain]] = []
    for _ in range(2000):
        roll = dice.random()
        if roll < 0.4:
            length = dice.randrange(1, 400)
            chain = [("system", 64), (f"run-{dice.randrange(20)}", length)]
            expected, protected = tree.match(chain)
            idle = tree.idle_tokens
            pinned = tree.pin(chain)
            assert (pinned.tokens, idle - tree.idle_tokens) >= (expected, protected)
            held.append((tree.grow(pinned, chain), chain))
        elif roll < 0.8 and held:
            tree.unpin(held.pop(dice.randrange(len(held)))[0])
        elif tree.idle_tokens:
            wanted = dice.randrange(1, tree.idle_tokens + 1)
            before = tree.tokens
            tree.evict(wanted)
            assert wanted <= before - tree.tokens < wanted + PAGE
        for kept_chain, needed in held:
            assert tree.match(needed)[0] == kept_chain.tokens == 64 + needed[1][1] // PAGE * PAGE
        assert 0 <= tree.idle_tokens <= tree.tokens
    while held:
        tree.unpin(held.pop()[0])
    assert tree.idle_tokens == tree.tokens
    tree.evict(tree.tokens)
    assert tree.tokens == 0
