from luftpause.telemetry.tallies import Tally


def test_a_value_on_a_bound_belongs_below_it_and_buckets_add_up() -> None:
    tally = Tally((0.1, 1, 10))

    for value in (0.05, 0.1, 0.5, 10, 11):
        tally.add(value)

    assert tally.buckets() == [("0.1", 2), ("1.0", 3), ("10.0", 4), ("+Inf", 5)]
    assert tally.sum == 21.65


def test_an_empty_tally_has_all_its_buckets() -> None:
    assert Tally((1,)).buckets() == [("1.0", 0), ("+Inf", 0)]
