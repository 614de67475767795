"""A box of models on its worst days, drawn from a seed: loads that take long or fail, a want of memory, crashes, a link
that breaks, settings that change, operators that load, unload and pin, clients that leave, and runs that come back
from their tools, or do not. Each order is audited by an account that does not know the core.
"""

import random
from dataclasses import replace

from core.scheduling.builders import arrived, failed, finished
from core.scheduling.residency.words import down, engine, joined, load_failed, model, saved, unload_asked, up
from luftpause.core.model.ids import Instant, KvFile, LauncherId, ModelName, RunId, TurnId
from luftpause.core.model.models import EnginePhase, ModelGroup, ModelSpec
from luftpause.core.model.parked_kv import SavedKv
from luftpause.core.scheduling.actions import Action, HoldTurn, PlaceTurn, RefuseTurn
from luftpause.core.scheduling.decide import decide, next_deadline
from luftpause.core.scheduling.events import Event, RunEnded, TurnAbandoned, TurnsRenewed, WokeUp
from luftpause.core.scheduling.invariants import check
from luftpause.core.scheduling.residency.actions import DropKv, KvVerdict, LoadModel, UnloadModel
from luftpause.core.scheduling.residency.events import LauncherLost, LoadAsked, LoadProgressed, PinAsked
from luftpause.core.scheduling.residency.state import ResidencyLimits
from luftpause.core.scheduling.state import Limits, empty_state
from luftpause.testkit.sim.model_account import ModelAccount

BOX = LauncherId("box")
LIMITS = Limits(residency=ResidencyLimits(max_wait_s=20.0, min_residency_s=3.0, soft_lease_s_max=60.0))
PLAIN = (
    model("a", 6, load=2.0, ttl=20.0),
    model("b", 6, load=2.0, ttl=5.0),
    model("c", 3, load=1.0, ttl=0.0),
    model("d", 2, "persistent", load=1.0, ttl=30.0),
    model("e", 12, load=1.0),
    model("f", 1, load=0.5, ttl=40.0, group=ModelGroup(name="g", swap=True)),
    model("g", 1, "auto_restart", load=0.5, group=ModelGroup(name="g", swap=True)),
    model("h", 4, "unload_at_tree_end", load=0.5, ttl=60.0),
)
NAMES = tuple(spec.model for spec in PLAIN)
PARKING = 200 << 20
"""Bytes for files with KV: some of what is to be kept does not fit."""
WAIT_S_MAX = 900.0
"""No turn waits longer on any of these days: eight models that do not fit together, with their loads and stops."""


class Disk:
    """The files of a launcher, and an account of them that does not know the core."""

    def __init__(self) -> None:
        self._files: dict[KvFile, SavedKv] = {}
        self._owner: dict[KvFile, RunId] = {}
        self.restoring: set[TurnId] = set()
        self.restored = 0

    def files(self) -> tuple[SavedKv, ...]:
        return tuple(self._files.values())

    def saved(self, verdict: KvVerdict) -> KvFile | None:
        if verdict.file is not None:
            assert verdict.file not in self._owner, f"file {verdict.file} is written twice"
            self._owner[verdict.file] = verdict.run
        return verdict.file

    def write(self, kept: list[SavedKv]) -> tuple[SavedKv, ...]:
        self._files.update({each.file: each for each in kept})
        return tuple(kept)

    def placed(self, order: PlaceTurn) -> None:
        if order.restore is not None:
            assert order.restore in self._files, f"file {order.restore} is restored, and is not there"
            assert self._owner[order.restore] == order.run, f"{order.run} gets KV of {self._owner[order.restore]}"
            self.restoring.add(order.turn)
            self.restored += 1

    def drop(self, files: tuple[KvFile, ...]) -> None:
        for file in files:
            self._files.pop(file, None)


class LauncherChaos:
    """Tells a scheduler what it draws, and does as it is told. `wild`: things go wrong, too."""

    def __init__(self, seed: int, *, wild: bool = True) -> None:
        self.seed = seed
        self.dice = random.Random(seed)
        self.wild = wild
        self.now = 0.0
        self.told = 0
        self.minted = 0
        self.state = empty_state(LIMITS)
        self.account = ModelAccount(LIMITS.residency)
        self.under_way: list[tuple[float, int, Event]] = []
        self.held: dict[TurnId, ModelName] = {}
        self.flying: dict[TurnId, str] = {}
        self.out: dict[RunId, ModelName] = {}
        self.is_away = False
        self.disk = Disk()
        self.catalogue: tuple[ModelSpec, ...] = PLAIN
        self.tell(joined(*self.catalogue, ram=10, parking=PARKING))

    def run(self, steps: int) -> None:
        """Let so many things happen, then let everything end well.

        Raises:
            AssertionError: with the seed that shows it again.
        """
        try:
            for number in range(steps):
                self.step()
                if number % 25 == 0:
                    check(self.state)
            self.settle()
        except AssertionError as broken:
            raise AssertionError(f"seed {self.seed}, event {self.told}, at {self.now} s: {broken}") from broken

    def tell(self, event: Event) -> None:
        self.told += 1
        decision = decide(self.state, event, Instant(self.now))
        self.state = decision.state
        self.account.take(event, self.now, decision.actions)
        for action in decision.actions:
            self.perform(action)
        assert self.account.oldest_wait_s(self.now) < WAIT_S_MAX, f"they wait for ever: {self.account.waiting}"

    def perform(self, action: Action) -> None:
        match action:
            case PlaceTurn(turn=turn, replica=replica):
                self.held.pop(turn, None)
                self.disk.placed(action)
                self.flying[turn] = replica
            case HoldTurn(turn=turn):
                self.held.setdefault(turn, NAMES[0])
            case RefuseTurn(turn=turn):
                self.held.pop(turn, None)
            case LoadModel(model=name):
                self.later(self.dice.choice([0.1, 1.0, 2.0, 10.0]), self.end_of_load(name))
            case DropKv(files=files):
                self.disk.drop(files)
            case UnloadModel(model=name):
                self.under_way = [each for each in self.under_way if getattr(each[2], "model", "") != name]
                self.later(self.dice.choice([0.0, 0.5, 3.0]), self.end_of_stop(action))
            case _:
                pass

    def end_of_load(self, name: ModelName) -> Event:
        if self.wild and self.dice.random() < 0.2:
            return load_failed(name, oom=self.dice.random() < 0.5)
        return up(name, slots=self.dice.choice([0, 1, 2, 4]))

    def end_of_stop(self, order: UnloadModel) -> Event:
        """Save what was ordered, but for what fails, and what the disk does not take."""
        kept = []
        for verdict in order.kv:
            file = self.disk.saved(verdict)
            if file is not None and self.dice.random() < 0.8:
                kept.append(saved(file, verdict.tokens, self.dice.choice([8, 64, 200]) * 1024 * verdict.tokens, 0.001))
        return down(order.model, kv=self.disk.write(kept), prefill_s=self.dice.choice([0.0, 0.001, 0.00001]))

    def later(self, seconds: float, event: Event) -> None:
        self.minted += 1
        self.under_way.append((self.now + seconds, self.minted, event))

    def pass_time(self, seconds: float) -> None:
        """Let time pass, with all that falls due: deadlines, and what launchers have to say."""
        until = self.now + seconds
        while True:
            reports = [] if self.is_away else sorted(self.under_way, key=lambda each: each[:2])
            deadline = next_deadline(self.state)
            due = [each[0] for each in reports[:1]] + ([] if deadline is None else [deadline])
            if not due or min(due) > until:
                break
            self.now = max(self.now, min(due))
            if reports and reports[0][0] <= self.now:
                self.under_way.remove(reports[0])
                self.tell(reports[0][2])
            else:
                self.tell(WokeUp())
        self.now = until

    def step(self) -> None:
        dice = self.dice
        self.pass_time(dice.choice([0.0, 0.0, 0.05, 0.3, 1.0, 4.0]))
        roll = dice.random()
        if roll < 0.38:
            self.arrive()
        elif roll < 0.75:
            self.end_one()
        elif roll < 0.85 and self.out:
            self.tell(RunEnded(run=self.drop(dice.choice(sorted(self.out)))))
        elif roll < 0.9 and self.held:
            turn = dice.choice(sorted(self.held))
            del self.held[turn]
            self.tell(TurnAbandoned(turn=turn))
        elif roll < 0.92:
            self.tell(TurnsRenewed(turns=(*self.held, *self.flying)))
        elif self.wild:
            self.trouble()

    def drop(self, run: RunId) -> RunId:
        del self.out[run]
        return run

    def arrive(self) -> None:
        """Begin a run, or come back to one; now and then as the child of another."""
        dice = self.dice
        self.minted += 1
        name = dice.choice(NAMES)
        run, parent = RunId(f"r{self.minted}"), None
        if self.out and dice.random() < 0.6:
            run = dice.choice(sorted(self.out))
            name = self.out.pop(run)
        elif self.out and dice.random() < 0.4:
            parent = dice.choice(sorted(self.out))
        offer = arrived(f"t{self.minted}", run, model=name, batch=dice.random() < 0.5, caller=dice.choice("xyz"))
        self.tell(replace(offer, parent=parent))

    def end_one(self) -> None:
        if not self.flying:
            return
        dice = self.dice
        turn = dice.choice(sorted(self.flying))
        arrival = self.state.turns[turn].arrival
        del self.flying[turn]
        if dice.random() < 0.1:
            self.tell(failed(turn))
        elif dice.random() < 0.5:
            self.out[arrival.run] = arrival.model
            tools = dice.choice([("look",), ("ask",), ("look", "ask"), ("",)])
            self.tell(self.answered(turn, tools))
        else:
            self.tell(self.answered(turn, ()))

    def answered(self, turn: TurnId, tools: tuple[str, ...]) -> Event:
        dice = self.dice
        tokens = dice.choice([None, 100, 800, 4000, 4000])
        cached = None if tokens is None else dice.choice([None, 0, tokens])
        restore_s = dice.choice([None, 0.1]) if turn in self.disk.restoring else None
        return finished(turn, tools=tools, tokens=tokens, cached=cached, restore_s=restore_s)

    def trouble(self) -> None:
        name = self.dice.choice(NAMES)
        running = [each for each, it in sorted(self.account.engines.items()) if it.phase == "up"]
        roll = self.dice.randrange(9)
        if roll == 0 and running and not self.is_away:
            self.crash(self.dice.choice(running))
        elif roll == 1:
            self.come_back() if self.is_away else self.go_away()
        elif roll == 2 and not self.is_away:
            self.reload()
        elif roll == 3:
            self.tell(LoadAsked(model=name))
        elif roll == 4:
            self.tell(unload_asked(name, firmly=self.dice.random() < 0.3, keep=self.dice.random() < 0.5))
        elif roll == 5:
            self.tell(PinAsked(model=name, on=self.dice.random() < 0.3))
        else:
            self.tell(LoadProgressed(model=name, fraction=self.dice.random()))

    def crash(self, name: ModelName) -> None:
        replica = self.account.engines[name].replica
        cut = sorted(turn for turn, where in self.flying.items() if where == replica)
        self.tell(down(name, "signal 11"))
        for turn in cut:
            del self.flying[turn]
            self.tell(failed(turn))

    def go_away(self) -> None:
        self.is_away = True
        self.tell(LauncherLost(launcher=BOX))

    def come_back(self) -> None:
        """Join again, with what is there: orders and reports of before are lost, and their engines gone."""
        self.is_away = False
        lost = {getattr(event, "model", "") for _, _, event in self.under_way}
        self.under_way.clear()
        held = [
            engine(name) for name, it in sorted(self.account.engines.items()) if it.phase == "up" and name not in lost
        ]
        self.tell(joined(*self.catalogue, ram=10, engines=tuple(held), parking=PARKING, kv=self.disk.files()))

    def reload(self) -> None:
        """Read other settings: times to live, and now and then another way to start a model."""
        name = self.dice.choice(NAMES)
        self.catalogue = tuple(
            replace(spec, ttl_s=self.dice.choice([None, 0.0, 9.0])) if spec.model == name else spec
            for spec in self.catalogue
        )
        phases = {"loading": EnginePhase.LOADING, "up": EnginePhase.UP, "stopping": EnginePhase.STOPPING}
        held = [engine(each, phases[it.phase]) for each, it in sorted(self.account.engines.items())]
        parking = self.dice.choice([0, PARKING // 4, PARKING])
        self.tell(joined(*self.catalogue, ram=10, engines=tuple(held), parking=parking, kv=self.disk.files()))

    def settle(self) -> None:
        """Let nothing go wrong any more and nobody come: all turns are served or refused, and none is left."""
        self.wild = False
        if self.is_away:
            self.come_back()
        for name in NAMES:
            self.tell(PinAsked(model=name, on=False))
        for _ in range(10_000):
            if not self.held and not self.flying:
                break
            self.pass_time(1.0)
            for turn in sorted(self.flying):
                del self.flying[turn]
                self.tell(finished(turn))
        assert not self.held, f"they wait for ever: {self.held}"
        assert not self.state.turns, f"in flight for ever: {dict(self.state.turns)}"
        self.pass_time(30.0)
        for run, _ in sorted(self.state.runs):
            self.tell(RunEnded(run=run))
        assert not self.disk.files(), f"KV of runs that are over is kept: {self.disk.files()}"
        check(self.state)
