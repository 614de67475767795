"""Several processes' counts as one."""

from collections.abc import Iterator

import msgspec
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.registry import Collector

from luftpause.telemetry.exposition import Counts, Family, Sample, counts_of, outlasting, rendered, summed


class Counted(Collector):
    """One process: answers by status, a distribution, and what is open."""

    def __init__(self, statuses: dict[str, int], *, opened: int = 0) -> None:
        self._statuses = statuses
        self._open = opened

    def collect(self) -> Iterator[Metric]:
        answers = CounterMetricFamily("answers", "Answers, by status", labels=("status",))
        for status, count in self._statuses.items():
            answers.add_metric((status,), count)
        total = sum(self._statuses.values())
        waits = HistogramMetricFamily("waits", "Waits", labels=("class",))
        waits.add_metric(("batch",), [("1.0", total), ("+Inf", total + 1)], 2.5)
        opened = GaugeMetricFamily("opened", "Open ones", value=self._open)
        yield from (answers, waits, opened)


def travelled(counts: Counts) -> Counts:
    """Return counts as they arrive in another process."""
    return msgspec.msgpack.decode(msgspec.msgpack.encode(tuple(counts)), type=tuple[Family, ...])


ONE = counts_of(Counted({"200": 3, "500": 1}, opened=2))
OTHER = counts_of(Counted({"200": 4, "404": 1}, opened=5))


def test_numbers_of_the_same_name_and_labels_add_up_and_others_stand_beside_them() -> None:
    text = rendered(summed([travelled(ONE), travelled(OTHER)])).decode()
    assert "# HELP answers_total Answers, by status\n# TYPE answers_total counter\n" in text
    for line in (
        'answers_total{status="200"} 7.0',
        'answers_total{status="500"} 1.0',
        'answers_total{status="404"} 1.0',
    ):
        assert line in text.splitlines()
    assert "opened 7.0" in text.splitlines()
    assert 'waits_bucket{class="batch",le="+Inf"} 11.0' in text.splitlines()
    assert 'waits_sum{class="batch"} 5.0' in text.splitlines()
    assert text.count("# TYPE answers_total") == 1


def test_the_sum_of_one_is_what_it_counted() -> None:
    assert summed([ONE]) == ONE
    assert summed([]) == ()


def test_what_a_process_counted_outlasts_it_and_what_it_had_open_does_not() -> None:
    assert [family.name for family in outlasting(ONE)] == ["answers", "waits"]
    together = summed([outlasting(ONE), OTHER])
    opened = next(family for family in together if family.name == "opened")
    assert opened.samples == (Sample("opened", (), 5.0),)
