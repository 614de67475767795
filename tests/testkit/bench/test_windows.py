"""How long and how fast real processes are watched."""

from luftpause.testkit.bench.windows import Window


def test_real_engines_have_their_own_time() -> None:
    fast = Window(warmup_s=30.0, minutes=1.5, speed=10.0)
    assert (fast.pace, fast.until_s) == (10.0, 120.0)
    assert Window(speed=10.0, real=True).pace == 1.0
