import asyncio

from luftpause.adapters.tools_mcp.patience import Patience


def test_each_sign_of_progress_gives_as_much_time_again_up_to_a_point() -> None:
    now = 100.0
    patience = Patience(lambda: now, 10.0, 25.0)
    assert (patience.left_s, patience.granted_s) == (10.0, 10.0)
    now = 109.0
    asyncio.run(patience.progressed(1, None, None))
    assert (patience.left_s, patience.granted_s) == (10.0, 19.0)
    now = 118.0
    asyncio.run(patience.progressed(2, None, None))
    assert (patience.left_s, patience.granted_s) == (7.0, 25.0)
    now = 130.0
    assert patience.left_s == 0.0


def test_it_never_has_less_than_without_progress() -> None:
    assert Patience(lambda: 0.0, 10.0, 5.0).left_s == 10.0
