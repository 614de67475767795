"""Finding out how replicas are."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import pytest

from luftpause.core.model.ids import ReplicaId
from luftpause.core.model.replicas import Endpoint, EngineKind, Load, Priorities
from luftpause.core.scheduling.events import ReplicaProbed
from luftpause.core.scheduling.state import Limits
from luftpause.core.scheduling.working_set.limits import WorkingSetLimits
from luftpause.ports.engines import EngineBrokeError, EngineRequest, EngineUnreachableError, Header, Sink
from luftpause.services.scheduler.probes import METRICS_BYTES_MAX, Prober
from luftpause.services.scheduler.service import SchedulerService
from luftpause.services.scheduler.settings import SchedulerSettings
from services.scheduler.running import WAIT_S, eventually, run, soon, spec

SGLANG = b"sglang:num_running_reqs 3.0\nsglang:num_queue_reqs 1.0\n"
VLLM = b"vllm:num_requests_running 4\nvllm:num_requests_waiting 0\n"
QUICK = SchedulerSettings(probe_period_s=0.02, probe_eager_s=0.01, probe_timeout_s=0.1)


@dataclass
class FakeExchange:
    status: int
    pieces: list[bytes]
    headers: Sequence[Header] = ()
    breaks: bool = False
    closed: bool = False

    async def read(self) -> bytes:
        if self.pieces:
            return self.pieces.pop(0)
        if self.breaks:
            raise EngineBrokeError("cut")
        return b""

    async def pour(self, sink: Sink) -> None:
        raise AssertionError("nobody pours this answer")

    def finish(self) -> bool:
        raise NotImplementedError

    def close(self) -> None:
        self.closed = True


@dataclass
class FakeEngines:
    """Answers by URL: a body (200), a status, "hang", "refuse" or "break"."""

    answers: dict[str, bytes | int | str] = field(default_factory=dict)
    asked: list[tuple[str, str]] = field(default_factory=list)
    exchanges: list[FakeExchange] = field(default_factory=list)

    async def send(self, endpoint: Endpoint, request: EngineRequest) -> FakeExchange:
        assert request.method == b"GET"
        url = endpoint.url + request.path.decode()
        self.asked.append((url, endpoint.api_key_env))
        await asyncio.sleep(0)
        answer = self.answers.get(url, "refuse")
        if answer == "hang":
            await asyncio.Event().wait()
        if answer == "refuse":
            raise EngineUnreachableError("connection refused")
        if isinstance(answer, bytes):
            exchange = FakeExchange(status=200, pieces=[answer[:7], answer[7:]] if answer else [])
        elif isinstance(answer, int):
            exchange = FakeExchange(status=answer, pieces=[b"no"])
        else:
            exchange = FakeExchange(status=200, pieces=[b"half"], breaks=True)
        self.exchanges.append(exchange)
        return exchange

    async def close(self) -> None:
        pass


def probe(answers: dict[str, bytes | int | str], **changes: object) -> tuple[ReplicaProbed, FakeEngines]:
    """Probe a replica `a` once."""
    engines = FakeEngines(answers={f"http://{url}": answer for url, answer in answers.items()})

    async def story() -> ReplicaProbed:
        declared = replace(spec("a"), **changes)  # type: ignore[arg-type]
        return await soon(Prober(SchedulerService(QUICK), engines).probe(declared))

    return run(story), engines


def test_a_good_probe_tells_health_load_and_engine_and_shows_the_replicas_key() -> None:
    seen, engines = probe({"a.invalid/health": b"", "a.invalid/metrics": SGLANG})
    assert seen == ReplicaProbed(
        replica=ReplicaId("a"), healthy=True, load=Load(running=3, waiting=1), engine=EngineKind.SGLANG
    )
    assert sorted(engines.asked) == [("http://a.invalid/health", "A_KEY"), ("http://a.invalid/metrics", "A_KEY")]
    assert all(exchange.closed for exchange in engines.exchanges)


def test_any_health_path_can_be_declared() -> None:
    seen, engines = probe({"a.invalid/v1/models": b"{}"}, health="/v1/models")
    assert seen.healthy
    assert ("http://a.invalid/v1/models", "A_KEY") in engines.asked


def test_only_a_200_from_the_health_path_means_healthy() -> None:
    for answer in (204, 301, 401, 503, "refuse", "hang", "break"):
        seen, _ = probe({"a.invalid/health": answer, "a.invalid/metrics": VLLM})
        assert not seen.healthy, answer


def test_a_failed_probe_says_what_failed() -> None:
    causes: dict[bytes | int | str, str] = {
        503: "HTTP 503 from /health",
        401: "HTTP 401 from /health: it does not accept the key in A_KEY",
        "refuse": "connection refused",
        "break": "cut",
        "hang": "no answer from /health within 0.1 s",
        b"": "",
    }
    for answer, cause in causes.items():
        assert probe({"a.invalid/health": answer, "a.invalid/metrics": VLLM})[0].cause == cause
    keyless = Endpoint(url="http://a.invalid")
    seen, _ = probe({"a.invalid/health": 403}, endpoint=keyless)
    assert seen.cause == "HTTP 403 from /health: it does not accept a request without a key"


def test_a_blocked_or_missing_report_means_unknown_load_not_ill_health() -> None:
    """Case 20."""
    for answer in ("hang", "refuse", "break", 404, b"", b"\xff\xfe junk"):
        seen, _ = probe({"a.invalid/health": b"ok", "a.invalid/metrics": answer})
        assert (seen.healthy, seen.load) == (True, None), answer


def test_a_report_is_read_up_to_its_limit_only() -> None:
    seen, _ = probe({"a.invalid/health": b"", "a.invalid/metrics": b"#" * METRICS_BYTES_MAX + b"\n" + VLLM})
    assert seen.load is None


def test_a_router_has_the_summed_load_of_the_engines_behind_it_and_keeps_its_key_to_itself() -> None:
    seen, engines = probe(
        {"a.invalid/health": b"", "e1.invalid/metrics": SGLANG, "e2.invalid/metrics": VLLM, "e3.invalid/metrics": 503},
        load_from=("http://e1.invalid", "http://e2.invalid", "http://e3.invalid"),
    )
    assert (seen.load, seen.engine) == (Load(running=7, waiting=1), EngineKind.ROUTER)
    assert {key for url, key in engines.asked if "metrics" in url} == {""}


def test_a_router_s_load_is_unknown_while_the_report_of_an_engine_behind_it_is_late() -> None:
    seen, _ = probe(
        {"a.invalid/health": b"", "e1.invalid/metrics": SGLANG, "e2.invalid/metrics": "hang"},
        load_from=("http://e1.invalid", "http://e2.invalid"),
    )
    assert (seen.healthy, seen.load, seen.engine) == (True, None, EngineKind.ROUTER)


def test_engines_that_report_nothing_are_not_asked_for_a_report() -> None:
    for engine in (EngineKind.OLLAMA, EngineKind.OPENAI, EngineKind.ROUTER):
        seen, engines = probe({"a.invalid/health": b""}, engine=engine)
        assert seen.healthy
        assert engines.asked == [("http://a.invalid/health", "A_KEY")]


async def until(service: SchedulerService, name: str, *, healthy: bool) -> None:
    """Wait until the scheduler believes a replica to be so."""

    def is_so() -> bool:
        known = service.state.replicas.get(ReplicaId(name))
        return known is not None and known.healthy is healthy

    await eventually(is_so)


def test_replicas_declared_before_and_after_the_start_are_probed_until_taken_away() -> None:
    engines = FakeEngines({"http://a.invalid/health": b"", "http://b.invalid/health": b""})

    async def story() -> None:
        service = SchedulerService(QUICK)
        service.start()
        service.add_replica(spec("a"))
        prober = Prober(service, engines)
        prober.start()
        service.add_replica(spec("b"))
        await until(service, "a", healthy=True)
        await until(service, "b", healthy=True)
        engines.answers["http://b.invalid/health"] = 503
        await until(service, "b", healthy=False)
        service.remove_replica(ReplicaId("a"))
        await asyncio.sleep(0)
        before = sum("a.invalid" in url for url, _ in engines.asked)
        engines.answers["http://b.invalid/health"] = b""
        await until(service, "b", healthy=True)
        assert sum("a.invalid" in url for url, _ in engines.asked) == before
        await soon(prober.close())
        assert asyncio.all_tasks() == {asyncio.current_task()}

    run(story)


def test_a_replica_that_hangs_delays_no_other() -> None:
    engines = FakeEngines({"http://slow.invalid/health": "hang", "http://fast.invalid/health": b""})

    async def story() -> None:
        service = SchedulerService(replace(QUICK, probe_timeout_s=WAIT_S * 10))
        service.start()
        prober = Prober(service, engines)
        prober.start()
        service.add_replica(spec("slow"))
        service.add_replica(spec("fast"))
        await until(service, "fast", healthy=True)
        await soon(prober.close())

    run(story)


def test_a_replica_declared_anew_is_probed_at_its_new_address_only() -> None:
    engines = FakeEngines({"http://a.invalid/health": b"", "http://new.invalid/health": b""})

    async def story() -> None:
        service = SchedulerService(QUICK)
        service.start()
        prober = Prober(service, engines)
        prober.start()
        service.add_replica(spec("a"))
        await until(service, "a", healthy=True)
        moved = replace(spec("a"), endpoint=Endpoint(url="http://new.invalid"))
        service.add_replica(moved)
        await asyncio.sleep(0)
        engines.asked.clear()
        await until(service, "a", healthy=True)
        assert {url for url, _ in engines.asked} == {"http://new.invalid/health", "http://new.invalid/metrics"}
        service.add_replica(moved)
        await soon(prober.close())

    run(story)


def test_a_new_replica_is_probed_eagerly_until_it_is_healthy_for_the_first_time() -> None:
    engines = FakeEngines({"http://a.invalid/health": 503})

    async def story() -> None:
        service = SchedulerService(replace(QUICK, probe_period_s=3600.0))
        service.start()
        prober = Prober(service, engines)
        prober.start()
        service.add_replica(spec("a"))
        await eventually(lambda: len(engines.asked) >= 6)
        engines.answers["http://a.invalid/health"] = b""
        await until(service, "a", healthy=True)
        engines.asked.clear()
        service.add_replica(spec("b"))
        await eventually(lambda: len(engines.asked) >= 6)
        assert not any("a.invalid" in url for url, _ in engines.asked), "its next probe comes an hour later"
        await soon(prober.close())

    run(story)


def test_a_probe_that_breaks_leaves_the_replica_ill_and_the_probing_alive() -> None:
    class Broken(FakeEngines):
        async def send(self, endpoint: Endpoint, request: EngineRequest) -> FakeExchange:
            if self.answers.get("broken"):
                raise ValueError("not a URL")
            return await super().send(endpoint, request)

    engines = Broken({"http://a.invalid/health": b""})

    async def story() -> None:
        service = SchedulerService(QUICK)
        service.start()
        prober = Prober(service, engines)
        prober.start()
        service.add_replica(spec("a"))
        await until(service, "a", healthy=True)
        engines.answers["broken"] = b"yes"
        await until(service, "a", healthy=False)
        del engines.answers["broken"]
        await until(service, "a", healthy=True)
        await soon(prober.close())

    run(story)


INFO = b'{"enable_priority_scheduling": true}'


def watched_until(
    answers: dict[str, bytes | int | str], *, native: bool, probes: int
) -> tuple[list[ReplicaProbed], int]:
    """Return what a prober tells, and how often it asked how the engine was started."""
    engines = FakeEngines(answers={f"http://{url}": answer for url, answer in answers.items()})
    told: list[ReplicaProbed] = []

    class Listening(SchedulerService):
        def probed(self, probe: ReplicaProbed) -> None:
            told.append(probe)
            if len(told) == 2:
                engines.answers["http://a.invalid/health"] = 503
            if len(told) == 3:
                engines.answers["http://a.invalid/health"] = b""
            super().probed(probe)

    async def story() -> None:
        limits = Limits(working_set=WorkingSetLimits(native_priority=native))
        service = Listening(replace(QUICK, limits=limits))
        service.start()
        service.add_replica(spec("a"))
        prober = Prober(service, engines)
        prober.start()
        await eventually(lambda: len(told) >= probes)
        await prober.close()

    run(story)
    return told[:probes], sum("server_info" in url for url, _ in engines.asked)


@pytest.mark.interpreted
def test_an_engine_is_asked_once_in_each_of_its_lives_whether_it_takes_priorities() -> None:
    answers: dict[str, bytes | int | str] = {"a.invalid/health": b"", "a.invalid/metrics": SGLANG}
    told, asked = watched_until({**answers, "a.invalid/get_server_info": INFO}, native=True, probes=5)
    higher = Priorities.HIGHER_FIRST
    assert [probe.priorities for probe in told] == [higher, higher, None, higher, higher]
    assert asked == 2


@pytest.mark.interpreted
@pytest.mark.parametrize("native", [True, False])
def test_an_engine_that_does_not_say_so_takes_none_and_nobody_asks_without_need(native: bool) -> None:
    answers: dict[str, bytes | int | str] = {"a.invalid/health": b"", "a.invalid/metrics": VLLM}
    told, asked = watched_until(answers, native=native, probes=2)
    assert [probe.priorities for probe in told] == [None, None]
    assert asked == (1 if native else 0)


@pytest.mark.interpreted
def test_an_engine_that_is_too_busy_to_say_so_is_asked_again() -> None:
    late: dict[str, bytes | int | str] = {"a.invalid/health": b"", "a.invalid/metrics": SGLANG}
    _, asked = watched_until({**late, "a.invalid/get_server_info": "hang"}, native=True, probes=2)
    assert asked == 2


def test_what_an_engine_has_read_is_told_of_one_engine_only() -> None:
    read = VLLM + b"vllm:prompt_tokens_total 700\n"
    one, _ = probe({"a.invalid/health": b"", "a.invalid/metrics": read})
    assert one.load is not None
    assert one.load.prompt_tokens == 700
    several, _ = probe(
        {"a.invalid/health": b"", "e1.invalid/metrics": read, "e2.invalid/metrics": 503},
        load_from=("http://e1.invalid", "http://e2.invalid"),
    )
    assert several.load is not None
    assert several.load.prompt_tokens is None, "one of them that is away would seem to be a new life of all"
