"""How far a load is."""

from luftpause.services.launcher.loading import LoadProgress


def test_percents_and_memory_are_progress_and_repeats_are_not() -> None:
    load = LoadProgress(memory=1000)
    assert not load.further((), 0)
    assert not load.further(("hello", "took 12 ms"), 5)
    assert load.further(("shards:  50% Completed | 1/2",), 5)
    assert load.fraction == 0.5
    assert not load.further(("shards:  50% Completed | 1/2",), 9)
    assert load.further((), 700)
    assert load.fraction == 0.7
    assert load.further(("capture: 3%",), 700), "another stage began"
    assert load.fraction == 0.7, "it never goes back"
    assert load.further(("done: 100%",), 700)
    assert load.fraction == 0.99, "it is over when it is ready, not before"


def test_what_is_no_percent_is_none() -> None:
    assert not LoadProgress(memory=0).further(("threshold 150%", "9999%"), 0)


def test_an_engine_that_only_talks_gets_no_further_at_last() -> None:
    load = LoadProgress(memory=0)
    assert sum(load.further((f"{nth % 2}%",), 0) for nth in range(1000)) == 200


def test_where_nobody_knows_how_much_it_takes_only_much_growth_counts() -> None:
    load = LoadProgress(memory=0)
    assert not load.further((), 10 * 2**20)
    assert load.further((), 80 * 2**20)
    assert load.fraction == 0.0
