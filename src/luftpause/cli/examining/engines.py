"""How the declared engines are: reachable and healthy, which they are, what they report, speak and serve."""

import asyncio
from collections.abc import Iterable
from typing import Final

import msgspec

from luftpause.assembly.declared import replica_specs
from luftpause.cli.examining.engine_flags import flags
from luftpause.cli.examining.findings import Finding, Says
from luftpause.cli.examining.subject import BODY_BYTES_MAX, Subject
from luftpause.core.model.replicas import EngineKind, Placement, ReplicaKind, ReplicaSpec
from luftpause.core.scheduling.events import ReplicaProbed
from luftpause.services.dataplane.spoken import PATHS, Spoken
from luftpause.services.scheduler.probes import SILENT, ReplicaProbe

SAYS = Says("engines")
_MODELS: Final = "/v1/models"
_OWNERS: Final = {
    "vllm": EngineKind.VLLM,
    "sglang": EngineKind.SGLANG,
    "llamacpp": EngineKind.LLAMA_CPP,
    "library": EngineKind.OLLAMA,
}
"""Who owns their models, as engines tell that report no load."""
_STRICT: Final = frozenset((EngineKind.VLLM, EngineKind.OLLAMA))
"""Engines that refuse a model which they do not have. Others answer with what they do have."""
_SHOW_LOAD: Final = {
    EngineKind.LLAMA_CPP: "llama-server ... --metrics",
    EngineKind.SGLANG: "python -m sglang.launch_server ... --enable-metrics",
    EngineKind.VLLM: "vllm serve ...  (without --disable-log-stats)",
    EngineKind.ROUTER: 'load_from = ["http://ENGINE:PORT"]',
}
"""What makes an engine report its load."""
_SHOWN_MAX: Final = 8


class _Card(msgspec.Struct, frozen=True):
    id: str
    owned_by: str = ""


class _Listing(msgspec.Struct, frozen=True):
    data: list[_Card] = []


async def examined(subject: Subject) -> list[Finding]:
    """Return how they are, those of each replica together."""
    specs = replica_specs(subject.config)
    if not specs:
        return [SAYS.note("no [[replicas]]; engines that the launcher starts are looked at by the scheduler")]
    groups = await asyncio.gather(*(_replica(subject, spec) for spec in specs))
    return [finding for group in groups for finding in group]


async def _replica(subject: Subject, spec: ReplicaSpec) -> list[Finding]:
    probed = await ReplicaProbe(subject.engines, subject.look_s).ask(spec)
    if not probed.healthy:
        return [SAYS.error(f"{spec.replica} at {spec.endpoint.url}: {probed.cause}", _mend_health(spec, probed.cause))]
    cards = await _cards(subject, spec)
    engine = _engine(spec, probed, cards)
    found = [SAYS.ok(f"{spec.replica} at {spec.endpoint.url} is healthy: {_named(engine)}")]
    found.append(_load(spec, probed, engine))
    found += _models(spec, engine, cards)
    if spec.kind is ReplicaKind.GENERATIVE:
        spoken, told = await asyncio.gather(_dialects(subject, spec, engine), flags(subject, spec, engine))
        found += [spoken, *told]
    return found


def _mend_health(spec: ReplicaSpec, cause: str) -> str:
    if cause.startswith("HTTP 404"):
        return f'health = "/v1/models"  (of [[replicas]] {spec.replica})'
    if "does not accept" in cause or "environment variable" in cause:
        variable = spec.endpoint.api_key_env
        return f"export {variable}=..." if variable else f'api_key_env = "NAME"  (of [[replicas]] {spec.replica})'
    return f"start it there, or correct url of [[replicas]] {spec.replica}"


def _engine(spec: ReplicaSpec, probed: ReplicaProbed, cards: Iterable[_Card] | None) -> EngineKind:
    known = (probed.engine, spec.engine, *(_OWNERS.get(card.owned_by, EngineKind.AUTO) for card in cards or ()))
    return next((kind for kind in known if kind is not EngineKind.AUTO), EngineKind.AUTO)


def _named(engine: EngineKind) -> str:
    return "an engine that does not say which it is" if engine is EngineKind.AUTO else engine.value


def _load(spec: ReplicaSpec, probed: ReplicaProbed, engine: EngineKind) -> Finding:
    if probed.load is not None:
        return SAYS.ok(f"{spec.replica} runs {probed.load.running} requests and queues {probed.load.waiting}")
    what = f"{spec.replica} reports no load at /metrics: only our own turns are counted"
    if engine in SILENT:
        return SAYS.note(what)
    return SAYS.warning(what, _SHOW_LOAD.get(engine, f'engine = "openai"  (of [[replicas]] {spec.replica})'))


async def _cards(subject: Subject, spec: ReplicaSpec) -> list[_Card] | None:
    """Return what it says that it serves; None where it does not."""
    fetched = await subject.fetcher.fetch(spec.endpoint, _MODELS, BODY_BYTES_MAX)
    try:
        return None if fetched.text is None else msgspec.json.decode(fetched.text, type=_Listing).data
    except (msgspec.MsgspecError, RecursionError):
        return None


def _models(spec: ReplicaSpec, engine: EngineKind, cards: list[_Card] | None) -> list[Finding]:
    if cards is None:
        return [SAYS.note(f"{spec.replica} does not list its models at {_MODELS}")]
    served = [card.id for card in cards]
    absent = [model for model in spec.models if not {model, f"{model}:latest"} & set(served)]
    listed = ", ".join(served[:_SHOWN_MAX]) or "none"
    if not absent:
        return [SAYS.ok(f"{spec.replica} serves all that is declared: {', '.join(spec.models[:_SHOWN_MAX])}")]
    what = f"{spec.replica} is declared to serve {', '.join(absent)}, and serves {listed}"
    names = ", ".join(f'"{name}"' for name in served[:_SHOWN_MAX])
    way = f"models = [{names}]  (of [[replicas]] {spec.replica})"
    return [SAYS.error(what, way) if engine in _STRICT else SAYS.warning(what, way)]


async def _dialects(subject: Subject, spec: ReplicaSpec, engine: EngineKind) -> Finding:
    placement = Placement(
        replica=spec.replica, endpoint=spec.endpoint, why="doctor", engine=engine, dialects=spec.dialects
    )
    spoken = Spoken(subject.engines, ask_s=subject.look_s)
    try:
        answers = await asyncio.gather(*(spoken.at(placement, dialect) for dialect in PATHS))
    finally:
        await spoken.close()
    spoken_ones = ["chat", *(dialect for dialect, speaks in zip(PATHS, answers, strict=True) if speaks)]
    return SAYS.ok(f"{spec.replica} speaks {', '.join(spoken_ones)}; the rest is translated")
