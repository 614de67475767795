"""From what a client asks for to a run: which tools and model it gets, what it may not, and never twice the same."""

import asyncio
import hashlib
import json
import logging
import re
import secrets
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from typing import Final

import msgspec

from luftpause.core.model.ids import CallerId, ModelName, PrincipalId, RunId
from luftpause.core.runs.events import RunSpawned
from luftpause.core.runs.go_on import barred
from luftpause.core.runs.state import Run
from luftpause.core.runs.tools import ToolSpec, find
from luftpause.core.runs.tree import ancestors, depth_of, tree_of
from luftpause.ports.tools import Tools
from luftpause.services.runtime.actor import SHUTTING_DOWN
from luftpause.services.runtime.answer_check import with_shape
from luftpause.services.runtime.ledger import Ledger
from luftpause.services.runtime.lives import Lives
from luftpause.services.runtime.orders import NotKeptError, RuntimeSettings, SpawnOrder, SpawnRefusedError
from luftpause.services.runtime.schema_soundness import unsound_schema
from luftpause.services.runtime.schema_words import shown
from luftpause.services.runtime.tool_check import names_of

_TRACE: Final = re.compile(r"[0-9a-f]{2}-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}")
STANDS_ALONE: Final = (
    "it stands alone: the tool call that asked for it is of no run that this token has here, so it counts for no other"
    " run's budget and no other run's end is its own"
)
logger = logging.getLogger("luftpause.runtime")
Models = Callable[[], Awaitable[Sequence[ModelName]]]


class Spawner:
    """Begins runs. `close` it before the lives."""

    def __init__(
        self, ledger: Ledger, lives: Lives, tools: Tools, settings: RuntimeSettings, models: Models | None
    ) -> None:
        self._ledger = ledger
        self._lives = lives
        self._tools = tools
        self._settings = settings
        self._models = models
        self._arriving: dict[RunId, RunId | None] = {}
        self._keyed: dict[tuple[PrincipalId, str], tuple[str, asyncio.Task[RunId]]] = {}
        self._open = True

    async def close(self) -> None:
        """Begin no more runs."""
        self._open = False
        begun = [task for _, task in self._keyed.values()]
        for task in begun:
            task.cancel()
        await asyncio.gather(*begun, return_exceptions=True)

    async def spawn(self, order: SpawnOrder) -> RunId:
        """Begin a run, or find the one that its key began; see the service."""
        self.refuse_if_closed()
        if order.idempotency_key is None:
            return await self._begin(order, "")
        key = (order.principal, order.idempotency_key)
        digest = _digest(order)
        known = self._ledger.state.keys.get(key)
        if known is not None:
            _refuse_other(order, digest, self._ledger.state.runs[known].spawn.arguments_digest)
            return known
        if key not in self._keyed:
            task = asyncio.create_task(self._begin(order, digest), name=f"spawn {order.idempotency_key}")
            self._keyed[key] = (digest, task)
            task.add_done_callback(lambda done: self._key_settled(key, done))
        first, task = self._keyed[key]
        _refuse_other(order, digest, first)
        try:
            return await asyncio.shield(task)
        except asyncio.CancelledError:
            if task.cancelled():
                raise SpawnRefusedError(f"nothing was spawned: {SHUTTING_DOWN}") from None
            raise

    def note_on(self, order: SpawnOrder) -> str:
        """Return what whoever orders a run should know of where it stands, empty for nothing.

        Runs belong to principals, so a run of somebody else's is none to a token: one cannot tell the two apart.
        """
        if order.spawner is None or order.parent is not None or self._spawner_of(order) is not None:
            return ""
        return STANDS_ALONE

    def refuse_if_closed(self) -> None:
        """Raise SpawnRefusedError unless runs can begin."""
        if self._lives.failure:
            raise SpawnRefusedError(f"nothing can be spawned: {self._lives.failure}")
        if not self._open:
            raise SpawnRefusedError(f"nothing can be spawned: {SHUTTING_DOWN}")

    def full(self) -> str:
        """Return why no further run may run, with the way out, empty while one may."""
        running = len(self._lives.running)
        if running < self._settings.max_running:
            return ""
        return f"{running} runs are running, no more fit; await or cancel some first"

    def _key_settled(self, key: tuple[PrincipalId, str], done: asyncio.Task[RunId]) -> None:
        del self._keyed[key]
        if not done.cancelled():
            done.exception()  # seen: whoever spawned may have left already

    async def _begin(self, order: SpawnOrder, digest: str) -> RunId:
        slip = "" if order.output_schema is None else await asyncio.to_thread(unsound_schema, order.output_schema)
        if slip:
            raise SpawnRefusedError(f"no answer can be checked by this outputSchema: {slip}")
        order = self._in_its_place(order)
        self._refuse_family(order)
        tools = await self._choose_tools(order.tools)
        model = await self._choose_model(order.model)
        guarded = [name for name in order.approve_tools if find(tools, name) is None]
        if guarded:
            raise SpawnRefusedError(f"there is no tool {shown(guarded[0])} to approve; tools: {names_of(tools)}")
        self.refuse_if_closed()
        self._refuse_family(order)
        full = self.full()
        if full:
            raise SpawnRefusedError(full)
        spawned = _spawned(order, tools, model, digest)
        self._arriving[spawned.run] = order.parent
        try:
            await self._lives.tell(tree_of(self._ledger.state, spawned), spawned)
        except NotKeptError as error:
            raise SpawnRefusedError(f"nothing was spawned: {error}") from error
        finally:
            del self._arriving[spawned.run]
        if self.note_on(order):
            logger.info("spawn_stands_alone", extra={"run": spawned.run, "said_spawner": order.spawner})
        return spawned.run

    def _in_its_place(self, order: SpawnOrder) -> SpawnOrder:
        """Return the order as a run below the sub-agent whose tool call it is: in its budget, and ended with it.

        Raises:
            SpawnRefusedError: it is to stand elsewhere, where that would not hold.
        """
        state, spawner = self._ledger.state, self._spawner_of(order)
        if spawner is None:
            return order
        own = spawner.spawn.run
        if order.parent is None:
            return replace(order, parent=own)
        if order.parent != own and all(above.spawn.run != own for above in ancestors(state, RunId(order.parent))):
            raise SpawnRefusedError(f"a sub-agent spawns below itself only, not below {shown(order.parent)}")
        return order

    def _spawner_of(self, order: SpawnOrder) -> Run | None:
        """Return the sub-agent whose tool call the order is, None where it is no run of the same principal here."""
        spawner = None if order.spawner is None else self._ledger.state.runs.get(order.spawner)
        return None if spawner is None or spawner.spawn.principal != order.principal else spawner

    def _refuse_family(self, order: SpawnOrder) -> None:
        """Look whether the run may stand where it is to stand, and whether all it comes after is there.

        Raises:
            SpawnRefusedError: the parent or one above was cancelled or has no budget left, or the family is too large.
            UnknownHandleError: the principal has no such parent, or no such run to come after.
        """
        for handle in order.after:
            self._ledger.find(order.principal, handle)
        if order.parent is None:
            return
        state, parent = self._ledger.state, self._ledger.find(order.principal, order.parent)
        name = shown(order.parent)
        bar = barred(state, parent, self._ledger.now(parent.tree))
        if bar:
            raise SpawnRefusedError(f"nothing can be spawned below {name}: {bar}")
        self._refuse_shape(parent, name)

    def _refuse_shape(self, parent: Run, name: str) -> None:
        state, settings = self._ledger.state, self._settings
        depth = depth_of(state, parent.spawn.run)
        if depth >= settings.max_depth:
            raise SpawnRefusedError(
                f"{name} stands {depth} runs deep, no deeper ones are allowed; spawn below a run further up"
            )
        children = sum(not state.runs[child].is_over for child in parent.children)
        # Whoever is on record already is among its parent's children, and may not have been told yet.
        arriving = (each for run, each in self._arriving.items() if run not in state.runs)
        children += sum(each == parent.spawn.run for each in arriving)
        if children >= settings.max_children:
            raise SpawnRefusedError(
                f"{children} children of {name} are running, no more fit; await or cancel some first"
            )

    async def _choose_tools(self, wanted: tuple[str, ...] | None) -> tuple[ToolSpec, ...]:
        if wanted == ():
            return ()
        catalogue = await self._tools.catalogue(wanted)
        if wanted is None:
            return tuple(catalogue)
        chosen: dict[str, ToolSpec] = {}
        for name in wanted:
            tool = find(catalogue, name)
            if tool is None:
                raise SpawnRefusedError(f"there is no tool {shown(name)}; tools: {names_of(catalogue)}")
            chosen.setdefault(tool.name, tool)
        return tuple(chosen.values())

    async def _choose_model(self, wanted: ModelName | None) -> ModelName:
        if wanted is not None:
            return wanted
        if self._settings.default_model is not None:
            return self._settings.default_model
        served = [] if self._models is None else await self._models()
        if not served:
            raise SpawnRefusedError("name a model: there is no default and none is served yet")
        return served[0]


def _spawned(order: SpawnOrder, tools: tuple[ToolSpec, ...], model: ModelName, digest: str) -> RunSpawned:
    schema = order.output_schema
    return RunSpawned(
        run=RunId(f"run_{secrets.token_urlsafe(16)}"),
        utc=time.time(),
        task=order.task,
        model=model,
        service_class=order.service_class,
        caller=order.caller,
        principal=order.principal,
        system=order.system if schema is None else with_shape(order.system, schema),
        fallback_models=order.fallback_models,
        tools=tools,
        max_tool_calls=order.max_tool_calls,
        max_tokens=order.max_tokens,
        parallel_tool_calls=order.parallel_tool_calls,
        parent=order.parent,
        budget=order.budget,
        approve_tools=order.approve_tools,
        after=tuple(RunId(handle) for handle in dict.fromkeys(order.after)),
        output_schema=schema,
        idempotency_key=order.idempotency_key,
        arguments_digest=digest,
        origin=order.origin,
        # It becomes a header, and clients can write into it what they like.
        traceparent=order.traceparent if _TRACE.fullmatch(order.traceparent) else "",
    )


def _digest(order: SpawnOrder) -> str:
    """Return what tells this order from others, whoever sends it and for whichever request."""
    asked = replace(order, caller=CallerId(""), idempotency_key=None, origin=None, spawner=None, traceparent="")
    plain = json.dumps(msgspec.to_builtins(asked), sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(plain.encode()).hexdigest()


def _refuse_other(order: SpawnOrder, digest: str, known: str) -> None:
    if digest != known:
        raise SpawnRefusedError(
            f"the idempotency key {shown(order.idempotency_key)} was used with other arguments; take a new key"
        )
