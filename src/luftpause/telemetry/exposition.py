"""What several processes counted, as one: plain values that travel between them, summed, and Prometheus' text.

It does not know what is counted. Counters and distributions add up; so do gauges that say how many there are.
"""

from collections.abc import Iterable, Iterator, Sequence

import msgspec
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import Metric
from prometheus_client.registry import Collector

Labels = tuple[tuple[str, str], ...]


class Sample(msgspec.Struct, frozen=True, array_like=True):
    """One number of a family, such as a bucket of a histogram."""

    name: str
    labels: Labels
    value: float


class Family(msgspec.Struct, frozen=True, array_like=True):
    """Numbers of one name. `kind` is Prometheus' word for it: counter, gauge or histogram."""

    name: str
    said: str
    kind: str
    samples: tuple[Sample, ...]


Counts = Sequence[Family]


def counts_of(collector: Collector) -> Counts:
    """Return the numbers of the moment."""
    return tuple(
        Family(
            metric.name,
            metric.documentation,
            metric.type,
            tuple(Sample(each.name, tuple(each.labels.items()), each.value) for each in metric.samples),
        )
        for metric in collector.collect()
    )


def summed(parts: Iterable[Counts]) -> Counts:
    """Return what several counted together; families and samples stand in the order in which they are first met."""
    known: dict[str, Family] = {}
    totals: dict[str, dict[tuple[str, Labels], float]] = {}
    for family in (family for part in parts for family in part):
        known.setdefault(family.name, family)
        of_family = totals.setdefault(family.name, {})
        for sample in family.samples:
            key = (sample.name, sample.labels)
            of_family[key] = of_family.get(key, 0.0) + sample.value
    return tuple(
        msgspec.structs.replace(
            family, samples=tuple(Sample(*key, value) for key, value in totals[family.name].items())
        )
        for family in known.values()
    )


def outlasting(counts: Counts) -> Counts:
    """Return what stays true of a process that has ended: what it counted, not what it had open."""
    return tuple(family for family in counts if family.kind != "gauge")


def rendered(counts: Counts) -> bytes:
    """Return the numbers in Prometheus' text format."""
    registry = CollectorRegistry(auto_describe=False)
    registry.register(_Shown(counts))
    return generate_latest(registry)


class _Shown(Collector):
    def __init__(self, counts: Counts) -> None:
        self._counts = counts

    def collect(self) -> Iterator[Metric]:
        """Return the numbers as the registry wants them."""
        for family in self._counts:
            metric = Metric(family.name, family.said, family.kind)
            for sample in family.samples:
                metric.add_sample(sample.name, dict(sample.labels), sample.value)
            yield metric
