"""Which models should be up now: the stage of a decision that follows when something changed that matters to it.

Looks at every model, of which there are few. A plan is whole before anything stops: first it is clear which models
would have to go, and that they may; only then they are stopped, all of them. Where some of them must end turns first,
all of them take no more, and are up again should the plan fall through meanwhile.
"""

from collections.abc import Iterable, Sequence
from itertools import chain, islice
from operator import attrgetter

from luftpause.core.model.ids import DeviceId, Instant, LauncherId, ModelName, RunId
from luftpause.core.scheduling.draft import Draft
from luftpause.core.scheduling.places import all_of
from luftpause.core.scheduling.residency import steps
from luftpause.core.scheduling.residency.demand import Wish, in_order, wish_for
from luftpause.core.scheduling.residency.leases import Returns, ancestors_of, out_but
from luftpause.core.scheduling.residency.obstacles import Hold, Holds, Use
from luftpause.core.scheduling.residency.reasons import Blocked, LoadReason, Obstacle, UnloadReason, UnloadWhy
from luftpause.core.scheduling.residency.refusing import refusal_of, told_short
from luftpause.core.scheduling.residency.room import beside, budget_of, excludes, shortage
from luftpause.core.scheduling.residency.state import NOBODY, Model, ModelPhase
from luftpause.core.scheduling.residency.victims import Candidate, cheapest

WAITERS_SEEN = 64
"""So many of the turns of each class that wait for a model, the oldest, are asked for their parents."""

SPIN_S_MIN = 0.01
"""Nothing is looked at again sooner than this, so that a deadline that rounding keeps from being met never spins."""


def review(draft: Draft, now: Instant) -> None:
    """Load, drain and unload what should be, and note when to look again."""
    _Review(draft, now).carry_out()


class _Review:
    """One review. `claims`: room that is being made, for whom it is made, bytes."""

    def __init__(self, draft: Draft, now: Instant) -> None:
        self._draft = draft
        self._now = now
        self._limits = draft.limits.residency
        self._returns = Returns(draft.tools, self._limits, now)
        self._claims: dict[tuple[LauncherId, DeviceId], int] = {}
        self._drained: set[ModelName] = set()
        self._look_at: float | None = None
        self._is_pressed = False

    def carry_out(self) -> None:
        draft = self._draft
        draft.is_review_due = False
        for model in self._reachable():
            self._end_what_is_over(model)
        wishes = [wish for model in self._reachable() if (wish := self._wish_for(model)) is not None]
        for wish in in_order(wishes):
            self._make_room(wish)
        for model in self._reachable():
            if model.phase is ModelPhase.DRAINING and _makes_room(model) and model.name not in self._drained:
                steps.undrain(draft, model, self._now)
        for model in self._reachable():
            self._let_idle_go(model)
        wished = {wish.model for wish in wishes}
        for model in self._reachable():
            if model.name not in wished:
                if model.blocked is not None:
                    model = steps.put(draft, model._replace(blocked=None))
                self._load_ahead(model)
        drains = any(model.phase is ModelPhase.DRAINING for model in draft.residency.models.values())
        look_at = self._look_at
        draft.residency = draft.residency._replace(
            is_pressed=self._is_pressed or drains,
            look_at=None if look_at is None else Instant(max(look_at, self._now + SPIN_S_MIN)),
        )

    def _reachable(self) -> list[Model]:
        """Return the models whose launcher takes orders, as they are now, in order of declaration."""
        residency = self._draft.residency
        found = [each for each in residency.models.values() if residency.launchers[each.launcher].connected]
        return sorted(found, key=attrgetter("order"))

    def _look(self, at: float | None) -> None:
        if at is not None and (self._look_at is None or at < self._look_at):
            self._look_at = at

    def _end_what_is_over(self, model: Model) -> None:
        """Let an engine go whose settings are not these any more, that has done its last turn, or answers nothing."""
        is_old = model.is_dropped or model.build != model.spec.build
        reason = UnloadReason.DROPPED if model.is_dropped else UnloadReason.CHANGED
        if model.phase is ModelPhase.LOADING and is_old:
            steps.stop(self._draft, model, UnloadWhy(reason=reason), self._now)
            return
        if model.is_serving and is_old and (model.phase is ModelPhase.UP or _makes_room(model)):
            steps.drain(self._draft, model, UnloadWhy(reason=reason), self._now)
            model = self._draft.residency.models[model.name]
        if self._is_silent(model):
            steps.stop(self._draft, model, UnloadWhy(reason=UnloadReason.SILENT), self._now)
            return
        if model.phase is ModelPhase.DRAINING and not _makes_room(model) and not steps.in_flight(self._draft, model):
            assert model.unload_why is not None, f"{model.name} drains for a reason"
            steps.stop(self._draft, model, model.unload_why, self._now)

    def _is_silent(self, model: Model) -> bool:
        """Say whether turns wait in vain for an engine that is up and answers nothing; each failed probe asks anew."""
        draft = self._draft
        if model.phase is not ModelPhase.UP or model.replica is None or model.name not in draft.residency.waiting:
            return False
        ill_since = draft.replicas[model.replica].ill_since
        is_overdue = ill_since is not None and ill_since + self._limits.silent_s <= self._now
        return is_overdue and not steps.in_flight(draft, model)

    def _wish_for(self, model: Model) -> Wish | None:
        if model.phase is not ModelPhase.DOWN or model.is_dropped:
            return None
        closed_until = model.closed_until
        if closed_until is not None and closed_until > self._now:
            self._look(closed_until if model.asked is not None else None)
            return None
        if model.asked is not None and model.not_before is not None and model.not_before > self._now:
            self._look(model.not_before)
        is_served = (model.spec.kind, model.name) in self._draft.serving
        return wish_for(self._draft.residency, model, self._limits, self._now, is_served=is_served)

    def _make_room(self, wish: Wish) -> None:
        """Load a model that is wanted, or do what comes before that."""
        draft, residency = self._draft, self._draft.residency
        model = residency.models[wish.model]
        short = shortage(residency, model)
        if short is not None:
            steps.put(draft, model._replace(asked=None, failed_why=told_short(model, short)))
            steps.refuse_waiters(draft, model, refusal_of(model, short), self._now)
            return
        others = sorted(beside(residency, model), key=attrgetter("order"))
        leaving = [each for each in others if _leaves(each)]
        staying = [each for each in others if not _leaves(each)]
        must = [each for each in staying if excludes(model, each)]
        missing = model.memory - self._room(model, staying)
        if staying and (must or missing > 0):
            blocked = self._choose(model, wish, staying, must, missing)
        else:
            gone_first = [each for each in leaving if excludes(model, each)]
            if not gone_first and missing <= 0 and model.memory <= self._room(model, others):
                self._load(model, wish)
                return
            leaver = (gone_first or leaving or others)[0]
            blocked = Blocked(by=leaver.name, obstacle=Obstacle.LEAVING)
            if missing <= 0:
                self._claim(model)
        self._is_pressed = True
        steps.put(draft, draft.residency.models[model.name]._replace(blocked=blocked))

    def _load(self, model: Model, wish: Wish) -> None:
        if wish.turn is not None:
            steps.load(self._draft, model, LoadReason.TURNS_WAIT, self._draft.held[wish.turn].payer, self._now)
        else:
            steps.load(self._draft, model, model.asked or LoadReason.ASKED, None, self._now)

    def _room(self, model: Model, taken_by: Iterable[Model]) -> int:
        """Return what is left of a model's device beside others and what is claimed there, bytes."""
        device = model.spec.device
        taken = sum(each.memory for each in taken_by if each.spec.device == device)
        return budget_of(self._draft.residency, model) - taken - self._claims.get((model.launcher, device), 0)

    def _claim(self, model: Model) -> None:
        where = model.launcher, model.spec.device
        self._claims[where] = self._claims.get(where, 0) + model.memory

    def _choose(
        self, model: Model, wish: Wish, staying: Sequence[Model], must: Sequence[Model], missing: int
    ) -> Blocked:
        """Choose who goes, and stop them or let them drain; return what the model waits for."""
        device = model.spec.device
        ancestors = ancestors_of(self._parents(model), self._draft.runs, self._draft.models_of)
        holder = Holds(model, wish, self._limits, self._returns)
        may_go = [each for each in staying if not each.stays and (each in must or each.spec.device == device)]
        holds = {each.name: holder.of(each, self._use_of(each, ancestors)) for each in may_go}
        by_name = {each.name: each for each in staying}
        sets = _Sets(device, by_name, [each.name for each in must], missing)
        why = UnloadWhy(reason=UnloadReason.MAKES_ROOM, room_for=model.name)
        now_free = sets.cheapest({name: hold for name, hold in holds.items() if hold.obstacle is None})
        if now_free is not None:
            for name in now_free:
                steps.stop(self._draft, by_name[name], why, self._now)
            self._claim(model)
            return Blocked(by=now_free[0], obstacle=Obstacle.LEAVING)
        drainable = {name: hold for name, hold in holds.items() if hold.obstacle is None or hold.may_drain}
        chosen = sets.cheapest(drainable)
        if chosen is not None:
            for name in chosen:
                if by_name[name].phase is ModelPhase.UP:
                    steps.drain(self._draft, by_name[name], why, self._now)
            self._drained.update(chosen)
            self._claim(model)
        else:
            for hold in holds.values():
                self._look(hold.look_at)
            chosen = sets.cheapest(holds) or tuple(holds) or tuple(by_name)
        obstacles = [(name, holds[name].obstacle) for name in chosen if name in holds]
        return next(
            (Blocked(by=name, obstacle=obstacle) for name, obstacle in obstacles if obstacle is not None),
            Blocked(by=chosen[0], obstacle=Obstacle.KEPT),
        )

    def _parents(self, model: Model) -> Iterable[RunId | None]:
        waiters = self._draft.residency.waiting.get(model.name, NOBODY)
        seen = (islice(all_of(places), WAITERS_SEEN) for places in (waiters.interactive, waiters.batch))
        for _, _, turn in chain.from_iterable(seen):
            arrival = self._draft.held[turn].arrival
            run = self._draft.runs.get(arrival.part)
            yield arrival.parent if run is None else run.parent

    def _use_of(self, model: Model, ancestors: set[tuple[RunId, ModelName]]) -> Use:
        draft = self._draft
        return Use(
            replica=None if model.replica is None else draft.replicas[model.replica],
            waiting=draft.residency.waiting.get(model.name, NOBODY),
            out=out_but(draft.residency, model.name, ancestors, draft.runs),
        )

    def _let_idle_go(self, model: Model) -> None:
        """Unload a model that nobody has used for its TTL, or whose tree has ended."""
        ttl_s = model.spec.ttl_s
        if model.phase is not ModelPhase.UP or model.pinned or (ttl_s is None and not model.is_released):
            return
        residency = self._draft.residency
        if model.name in residency.waiting or steps.in_flight(self._draft, model):
            return
        due_at = self._now if ttl_s is None or model.is_released else model.used_at + ttl_s
        if due_at <= self._now:
            out = residency.paused.get(model.name)
            leased_until = None if out is None else self._returns.leased_until(out)
            if leased_until is None:
                reason = UnloadReason.TREE_ENDED if model.is_released else UnloadReason.IDLE
                steps.stop(self._draft, model, UnloadWhy(reason=reason), self._now)
                return
            due_at = leased_until
        self._look(due_at)

    def _load_ahead(self, model: Model) -> None:
        """Load a model to which a run is about to come back, if there is room without unloading anything."""
        residency = self._draft.residency
        out = residency.paused.get(model.name)
        if out is None or model.phase is not ModelPhase.DOWN or model.is_dropped or model.failures:
            return
        at = self._returns.next_ahead(out, model.load_s)
        if at is None or at > self._now:
            self._look(at)
            return
        others = list(beside(residency, model))
        is_free = model.memory <= self._room(model, others) and not any(excludes(model, each) for each in others)
        if is_free and shortage(residency, model) is None:
            steps.load(self._draft, model, LoadReason.AHEAD, None, self._now)


class _Sets:
    """The choice of victims: some must go, of the others as many as it takes."""

    def __init__(
        self, device: DeviceId, models: dict[ModelName, Model], must: Sequence[ModelName], missing: int
    ) -> None:
        self._device = device
        self._models = models
        self._must = must
        self._missing = missing - sum(models[name].memory for name in must if models[name].spec.device == device)

    def cheapest(self, holds: dict[ModelName, Hold]) -> tuple[ModelName, ...] | None:
        """Return who goes if these may; None when that is not enough."""
        if any(name not in holds for name in self._must):
            return None
        candidates = [
            Candidate(hold.price_s, name, self._models[name].memory)
            for name, hold in holds.items()
            if name not in self._must and self._models[name].spec.device == self._device
        ]
        rest = cheapest(candidates, self._missing)
        return None if rest is None else (*self._must, *rest)


def _leaves(model: Model) -> bool:
    """Say whether a model goes whoever needs its room."""
    return model.phase is ModelPhase.STOPPING or (model.phase is ModelPhase.DRAINING and not _makes_room(model))


def _makes_room(model: Model) -> bool:
    return model.unload_why is not None and model.unload_why.reason is UnloadReason.MAKES_ROOM
