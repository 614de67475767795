"""What a request means that does not say everything."""

import pytest

from core.scheduling.builders import World, spec
from core.scheduling.residency.words import joined, model
from luftpause.core.model.ids import ModelName
from luftpause.core.model.refusals import MODELS_NAMED_MAX, Refusal, RefusalReason
from luftpause.core.model.replicas import ReplicaKind
from luftpause.core.scheduling.services import PATTERN_CHARS_MAX, offered, own_name, service_for

GENERATIVE, SINGLE_PASS = ReplicaKind.GENERATIVE, ReplicaKind.SINGLE_PASS


def serving(*services: tuple[ReplicaKind, str]) -> dict[tuple[ReplicaKind, ModelName], None]:
    return {(kind, ModelName(model)): None for kind, model in services}


BOTH = serving((GENERATIVE, "m"), (GENERATIVE, "both"), (SINGLE_PASS, "labels"), (SINGLE_PASS, "both"))
ONE_EACH = serving((GENERATIVE, "m"), (SINGLE_PASS, "labels"))


@pytest.mark.parametrize(
    ("kind", "model", "meant"),
    [
        (GENERATIVE, "m", (GENERATIVE, "m")),
        (GENERATIVE, "labels", (GENERATIVE, "labels")),
        (None, "labels", (SINGLE_PASS, "labels")),
        (None, "both", (SINGLE_PASS, "both")),
        (None, "m", (GENERATIVE, "m")),
        (None, "nope", (GENERATIVE, "nope")),
    ],
)
def test_a_named_model_is_looked_for_among_classifiers_first_where_the_kind_is_open(
    kind: ReplicaKind | None, model: str, meant: tuple[ReplicaKind, str]
) -> None:
    assert service_for(BOTH, kind, ModelName(model)) == meant


def test_without_a_model_the_only_one_of_the_kind_is_meant() -> None:
    assert service_for(ONE_EACH, SINGLE_PASS, ModelName("")) == (SINGLE_PASS, "labels")
    assert service_for(ONE_EACH, GENERATIVE, ModelName("")) == (GENERATIVE, "m")
    same = serving((GENERATIVE, "m"), (SINGLE_PASS, "m"))
    assert service_for(same, None, ModelName("")) == (SINGLE_PASS, "m")


@pytest.mark.parametrize(
    ("services", "kind", "reason", "message"),
    [
        (
            BOTH,
            SINGLE_PASS,
            RefusalReason.MODEL_NEEDED,
            "the request names no model, and Single-pass replicas serve 2: 'both', 'labels'",
        ),
        (
            ONE_EACH,
            None,
            RefusalReason.MODEL_NEEDED,
            "the request names no model, and replicas serve 2: 'labels', 'm'",
        ),
        (
            serving((GENERATIVE, "m")),
            SINGLE_PASS,
            RefusalReason.UNKNOWN_MODEL,
            "the request names no model, and no Single-pass replica is declared",
        ),
        ({}, None, RefusalReason.UNKNOWN_MODEL, "the request names no model, and no replica is declared"),
    ],
)
def test_what_cannot_be_meant_is_refused_in_words(
    services: dict[tuple[ReplicaKind, ModelName], None], kind: ReplicaKind | None, reason: RefusalReason, message: str
) -> None:
    assert service_for(services, kind, ModelName("")) == Refusal(reason=reason, message=message)


def test_a_refusal_lists_a_few_models_only() -> None:
    many = serving(*((GENERATIVE, f"m{number:03}") for number in range(500)))
    refusal = service_for(many, GENERATIVE, ModelName(""))
    assert isinstance(refusal, Refusal)
    assert refusal.message.count("'") == 2 * MODELS_NAMED_MAX
    assert refusal.message.endswith("…")


def test_a_launchers_models_are_meant_by_name_alias_and_pattern_in_this_order() -> None:
    world = World(spec("static", "plain"))
    first = model("A", aliases=("small", "B"), pattern=r"a-\d+")
    world.tell(joined(first, model("B", pattern="a.*"), model("labels", kind=SINGLE_PASS)))
    serving, residency = world.state.serving, world.state.residency

    def meant(name: str) -> str:
        service = service_for(serving, None, ModelName(name), residency)
        assert not isinstance(service, Refusal)
        return service[1]

    names = ("A", "small", "B", "a-7", "a-x", "xa-7", "a", "Small", "plain", "")
    assert [meant(name) if name else "" for name in names] == [
        "A",
        "A",
        "B",
        "A",
        "B",
        "xa-7",
        "B",
        "Small",
        "plain",
        "",
    ]
    assert service_for(serving, None, ModelName("labels"), residency) == (SINGLE_PASS, "labels")
    assert meant("a" * (PATTERN_CHARS_MAX + 1)) == "a" * (PATTERN_CHARS_MAX + 1)
    assert {name for _, name in offered(serving, residency)} == {"A", "B", "labels", "plain"}


def test_the_only_model_may_be_a_launchers() -> None:
    world = World()
    world.tell(joined(model("A")))
    assert service_for(world.state.serving, None, ModelName(""), world.state.residency) == (GENERATIVE, "A")


@pytest.mark.parametrize("name", ["../../etc/passwd", "a\0b", "A" * 10_000])
def test_a_hostile_name_is_a_name_that_nobody_serves(name: str) -> None:
    world = World()
    world.tell(joined(model("A", pattern="[a-z]+")))
    assert own_name(world.state.serving, world.state.residency, ModelName(name)) == name
