"""Other people's routers, as far as the bench copies what they do."""

from luftpause.testkit.sim.clients import SimRun
from luftpause.testkit.sim.plans import draw_plan
from luftpause.testkit.sim.routers import CacheAware, Manual, StickyLeastLoaded
from testkit.sim.test_arms import NotedPool, run_of, setting, turn
from testkit.sim.worlds import group


def test_cache_aware_keeps_a_conversation_where_it_was_and_puts_new_ones_where_least_is() -> None:
    pool = NotedPool()
    arm = CacheAware(pool, setting())
    first = turn(1)
    for each in (first, turn(2), turn(3)):
        arm.offered(each)
    assert pool.where == [0, 1, 0]
    arm.finished(first)
    first.run.prompt_tokens_before = first.prompt_tokens
    arm.offered(turn(4, first.run))
    assert pool.where[-1] == 0
    arm.offered(turn(5))
    assert pool.where[-1] == 1


def test_cache_aware_leaves_a_home_that_is_down_or_far_too_busy() -> None:
    pool = NotedPool()
    arm = CacheAware(pool, setting(), balance_abs=1)
    run = run_of(0)
    for key in range(3):
        run.home, run.prompt_tokens_before = 0, 10_000
        arm.offered(turn(key, run))
    assert pool.where == [0, 0, 1]
    arm.in_flight = [0, 0]
    pool.down, run.home = {0}, 0
    arm.offered(turn(9, run))
    assert pool.where[-1] == 1


def test_cache_aware_sends_all_who_share_enough_of_their_prompt_to_one_replica() -> None:
    pool = NotedPool()
    arm = CacheAware(pool, setting())
    for number in range(5):
        arm.offered(turn(number, SimRun(draw_plan(group(system_tokens=2000), 1, number), 0.0)))
    assert pool.where == [0, 0, 0, 0, 0]


def test_manual_keeps_a_key_and_assigns_new_ones_by_load() -> None:
    pool = NotedPool()
    arm = Manual(pool, setting())
    first, second = turn(1), turn(2)
    arm.offered(first)
    arm.offered(second)
    assert sorted(pool.where) == [0, 1]
    arm.offered(turn(3, first.run))
    assert pool.where[2] == pool.where[0]
    pool.down = {pool.where[0]}
    arm.offered(turn(4, first.run))
    assert pool.where[3] == pool.where[1]


def test_sticky_least_loaded_counts_sessions_that_nobody_ends() -> None:
    pool = NotedPool()
    arm = StickyLeastLoaded(pool, setting())
    runs = [run_of(number) for number in range(4)]
    for key, run in enumerate(runs):
        each = turn(key, run)
        arm.offered(each)
        arm.finished(each)
        arm.run_ended(run)
    assert sorted(pool.where) == [0, 0, 1, 1]
    arm.offered(turn(9, runs[0]))
    assert pool.where[-1] == pool.where[0]
    pool.down = {pool.where[0]}
    arm.offered(turn(10, runs[0]))
    assert pool.where[-1] != pool.where[0]
