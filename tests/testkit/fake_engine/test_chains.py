"""Prompts as chains of the prefix tree's segments."""

import random

from luftpause.testkit.engine_model.engine import Engine, Outcome
from luftpause.testkit.engine_model.figures import EngineFigures
from luftpause.testkit.engine_model.prefix_tree import Chain
from luftpause.testkit.engine_model.sequence import Request
from luftpause.testkit.fake_engine.chains import Piece, chain_of
from testkit.engine_model.asking import run_out


def pieces(*tokens: int) -> tuple[Piece, ...]:
    """Return messages of so many tokens, each named by all up to it."""
    return tuple(Piece("-".join(map(str, tokens[: end + 1])), tokens[end]) for end in range(len(tokens)))


def length(chain: Chain) -> int:
    return sum(tokens for _, tokens in chain)


def test_a_page_belongs_to_the_message_in_which_it_ends() -> None:
    assert chain_of(pieces(20, 30), "reply", 16) == (("20", 16), ("20-30", 32), ("reply", 2))


def test_a_message_in_which_no_page_ends_has_no_segment() -> None:
    assert chain_of(pieces(20, 5, 10), "reply", 16) == (("20", 16), ("20-5-10", 16), ("reply", 3))
    assert chain_of(pieces(15), "reply", 16) == (("reply", 15),)


def test_the_reply_begins_where_the_whole_pages_end() -> None:
    assert chain_of(pieces(32), "reply", 16) == (("32", 32), ("reply", 0))


def test_no_token_is_lost_whatever_the_pages() -> None:
    dice = random.Random(1)
    for _ in range(200):
        prompt = pieces(*(dice.randrange(1, 60) for _ in range(dice.randrange(1, 9))))
        page = dice.choice((1, 16, 64))
        chain = chain_of(prompt, "reply", page)
        assert length(chain) == sum(piece.tokens for piece in prompt)
        assert all(tokens % page == 0 and tokens for _, tokens in chain[:-1])
        assert 0 <= chain[-1][1] < page


def test_the_next_turn_finds_all_whole_pages_of_prompt_and_reply() -> None:
    """Of random conversations in a memory that is large enough, each turn finds what the one before left."""
    dice = random.Random(2)
    for conversation in range(60):
        page = dice.choice((1, 16, 64))
        engine = Engine(EngineFigures(page_tokens=page, kv_tokens=1 << 20))
        tokens = [dice.randrange(1, 90) for _ in range(dice.randrange(1, 4))]
        expected = 0
        for key in range(6):
            prompt = pieces(*tokens)
            made = dice.randrange(1, 70)
            read_again = made + dice.randrange(5)  # an echoed reply is a little longer than what was made
            reply = pieces(*tokens, read_again)[-1].prefix
            chain = chain_of(prompt, reply, page)
            engine.submit(Request(key=key, prompt=chain, reply_tokens=made, reply_tokens_max=made), 0.0)
            progress = run_out(engine)[-1][1]
            assert progress.outcome is Outcome.DONE
            assert progress.cached_tokens == min(expected, sum(tokens) - 1), (conversation, key)
            left = sum(tokens) + made
            expected = left - left % page
            tokens += [read_again, *(dice.randrange(1, 90) for _ in range(dice.randrange(1, 3)))]


def test_twins_share_their_prompt_and_a_second_asking_leaves_the_first_reply_alone() -> None:
    engine = Engine(EngineFigures())
    prompt = pieces(100, 60)
    chain = chain_of(prompt, pieces(100, 60, 40)[-1].prefix, 16)
    cached = []
    for key in range(3):
        engine.submit(Request(key=key, prompt=chain, reply_tokens=40, reply_tokens_max=40), 0.0)
        cached.append(run_out(engine)[-1][1].cached_tokens)
        assert engine.kv_used == 192  # twelve pages; the rest of the reply ends in none
    assert cached == [0, 159, 159]
