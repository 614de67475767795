"""Builders of the values that link tests speak of."""

from luftpause.core.model.ids import CallerId, ModelName, PeerId, PrincipalId, ReplicaId, RunId, ToolCallId, TurnId
from luftpause.core.model.replicas import Endpoint, ReplicaKind, ReplicaSpec
from luftpause.core.model.turns import IdentityKeys, ServiceClass, TurnOffer

PEER = PeerId("door-1")
PRINCIPAL = PrincipalId("ada")
MODEL = ModelName("tiny")


def offer(
    turn: int | str,
    *,
    model: str = MODEL,
    run: str = "",
    tool_calls: tuple[str, ...] = (),
    parent_call: str | None = None,
) -> TurnOffer:
    return TurnOffer(
        turn=TurnId(f"{PEER}.{turn}"),
        peer=PEER,
        model=ModelName(model),
        kind=ReplicaKind.GENERATIVE,
        service_class=ServiceClass.INTERACTIVE,
        caller=CallerId("caller"),
        principal=PRINCIPAL,
        keys=IdentityKeys(
            run=RunId(run) if run else None,
            tool_calls=tuple(ToolCallId(tool_call) for tool_call in tool_calls),
            parent_call=None if parent_call is None else ToolCallId(parent_call),
        ),
    )


def spec(name: str = "one", *models: str) -> ReplicaSpec:
    return ReplicaSpec(
        replica=ReplicaId(name),
        endpoint=Endpoint(url=f"http://127.0.0.1:9/{name}"),
        models=tuple(ModelName(model) for model in models or (MODEL,)),
    )
