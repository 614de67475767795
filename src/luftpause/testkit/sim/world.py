"""One simulated world: runs from a source, an arm and engines on one virtual clock, as a heap of what happens next.

Events of one instant happen in the order in which they were planned. Deterministic: everything random is drawn from
the seed by name. An engine works on by itself; the arm hears of what a dataplane would hear of, when it would.
"""

from collections.abc import Callable
from functools import partial
from heapq import heappop, heappush
from itertools import count
from typing import Final

from luftpause.testkit.engine_model.engine import Engine, EngineTotals, Outcome, Progress
from luftpause.testkit.sim.arms import make_arm
from luftpause.testkit.sim.clients import Fate, SimRun, SimTurn, TurnPhase, draw_fate, request_of
from luftpause.testkit.sim.dice import Dice
from luftpause.testkit.sim.fairness import service_of
from luftpause.testkit.sim.past import AnsweredTurn, Begun, EndedRun, Past
from luftpause.testkit.sim.plans import RunPlan, alone_s
from luftpause.testkit.sim.setting import Launch, Setting
from luftpause.testkit.sim.sources import Source
from luftpause.testkit.sim.strangers import AGAIN_S, Stranger, strangers_of

RENEW_PERIOD_S: Final = 60.0
"""As often as a dataplane renews its open turns."""
ANSWER_S: Final = 0.005
"""How long a refusal, or the news of a dead replica, takes to its client."""
DRAIN_S_MAX: Final = 86_400.0
"""A checked world lets every run end after its time is over; one that takes longer than this is stuck."""

Callback = Callable[[], None]


class World:
    """A simulation under way. `run_until` lets time pass; `ended` is what came of it.

    Args:
        setting: where runs are served.
        source: where they come from.
        arm: one of ARMS.
        seed: what faults are drawn from.
        checked: prove every state and audit every decision.
    """

    def __init__(self, setting: Setting, source: Source, arm: str, seed: int, *, checked: bool = False) -> None:
        self.setting = setting
        self.seed = seed
        self.now = 0.0
        self.ended: list[EndedRun] = []
        self.answered: list[AnsweredTurn] = []
        self.failed_turns = 0
        self.held_turns = 0
        self.offers = 0
        self._source = source
        self._heap: list[tuple[float, int, Callback]] = []
        self._numbers = count()
        self.loads = 0
        self._engines: list[Engine | None] = [
            Engine(replica.engine) if replica.launch is None else None for replica in setting.replicas
        ]
        self._taken: dict[int, int] = {}
        self._loading: dict[int, int] = {}
        self._last_seen: list[tuple[int, int, int] | None] = [(0, 0, 0)] * len(setting.replicas)
        self._probes = 0
        self._planned_at: list[float | None] = [None] * len(setting.replicas)
        self._past_totals: list[EngineTotals] = []
        self._under_way: dict[str, SimRun] = {}
        self._turns: dict[int, SimTurn] = {}
        self._begins_runs = True
        self._arm = make_arm(arm, self, setting, checked=checked)
        self._probe()
        self._after(RENEW_PERIOD_S, self._renew)
        for at, stream in source.starts():
            self._at(at, partial(self._start, stream))
        for each in setting.outages:
            self._after(each.at_s, partial(self._die, each.replica))
            self._after(each.at_s + each.for_s, partial(self._recover, each.replica))
        self._strangers: dict[int, Stranger] = {}
        for at, stranger in strangers_of(setting.strangers, seed):
            self._at(at, partial(self._ask_past_us, stranger))
        for at in setting.restarts_s:
            self._at(at, self._arm.restarted)

    def past(self) -> Past:
        """Return what happened until now."""
        roots = [run for run in self._under_way.values() if run.parent is None]
        return Past(
            ended=self.ended,
            answered=self.answered,
            under_way=[Begun(stream=run.stream, begun_at=run.begun_at) for run in roots],
            unfinished=self.unfinished,
            failed_turns=self.failed_turns,
            retractions=self._totals().retractions,
            loads=self.loads,
        )

    @property
    def unfinished(self) -> int:
        """Runs that have begun and not ended."""
        return len(self._under_way)

    def _totals(self) -> EngineTotals:
        """Return what all engines did, dead ones included."""
        total = EngineTotals()
        for each in (*self._past_totals, *(engine.totals for engine in self._engines if engine is not None)):
            total.prefilled_tokens += each.prefilled_tokens
            total.cached_tokens += each.cached_tokens
            total.generated_tokens += each.generated_tokens
            total.retractions += each.retractions
            total.steps += each.steps
        return total

    def run_until(self, at: float) -> None:
        """Let everything happen that happens until then."""
        heap = self._heap
        while heap and heap[0][0] <= at:
            self.now, _, callback = heappop(heap)
            callback()
        self.now = at

    def drain(self) -> None:
        """Begin no more runs, let those under way end, and check that nothing is left.

        Raises:
            AssertionError: something is left open or does not end.
        """
        self._begins_runs = False
        limit = self.now + DRAIN_S_MAX
        while self._under_way:
            assert self.now < limit, f"never ended: {sorted(self._under_way)[:10]}"
            self.run_until(self.now + self.setting.probe_period_s)
        assert not self._turns, f"turns without a run: {list(self._turns)}"
        self._arm.at_rest()

    # What arms see of the world: the Pool protocol.

    def is_up(self, replica: int) -> bool:
        """Say whether a replica lives."""
        return self._engines[replica] is not None

    def send(self, turn: SimTurn, replica: int) -> None:
        """Send a turn to an engine."""
        turn.step(TurnPhase.SENT)
        self.held_turns += self.now > turn.offered_at
        run = turn.run
        run.moves += run.home is not None and run.home != replica
        run.home = turn.replica = replica
        run.turns += 1
        fate = draw_fate(turn, self.seed, self.setting.faults)
        if (engine := self._engines[replica]) is None:
            self._after(ANSWER_S, partial(self._fail, turn, "unreachable"))
        elif fate is Fate.REFUSED:
            self._after(ANSWER_S, partial(self._fail, turn, "429"))
        else:
            engine.submit(request_of(turn, self.seed, fate), self.now)
            self._plan_engine(replica, engine)

    def cut(self, turn: SimTurn) -> None:
        """Take a sent turn back from its engine; its agent sees it fail."""
        engine = self._engines[turn.replica]
        if engine is not None:
            engine.abort(turn.key, self.now)
            self._plan_engine(turn.replica, engine)
        self._after(ANSWER_S, partial(self._fail, turn, "cut"))

    def take_back(self, turn: SimTurn) -> bool:
        """Take a sent turn back from its engine, unless that has begun to answer, or never got it."""
        engine = self._engines[turn.replica]
        if engine is None or turn.spoke or turn.key not in engine.open_keys():
            return False
        engine.abort(turn.key, self.now)
        self._plan_engine(turn.replica, engine)
        return True

    def refuse(self, turn: SimTurn) -> None:
        """Turn a turn away."""
        turn.step(TurnPhase.ENDED)
        self._after(ANSWER_S, partial(self._try_again, turn))

    def load(self, replica: int) -> None:
        """Begin to load an engine."""
        launch = self._launch_of(replica)
        assert replica not in self._taken, f"replica {replica} is loaded while it is there"
        self._taken[replica] = launch.memory
        taken = sum(self._taken.values())
        assert taken <= self.setting.memory, f"{taken} bytes are taken of {self.setting.memory}"
        self.loads += 1
        self._loading[replica] = self.loads
        self._after(launch.load_s, partial(self._end_load, replica, self.loads))

    def unload(self, replica: int) -> None:
        """Begin to stop an engine, or end its load."""
        engine, self._engines[replica] = self._engines[replica], None
        assert engine is not None or replica in self._loading, f"replica {replica} is stopped, and is not there"
        self._loading.pop(replica, None)
        if engine is not None:
            assert not engine.open_keys(), f"replica {replica} is stopped at work on {engine.open_keys()}"
            self._past_totals.append(engine.totals)
        self._after(self._launch_of(replica).stop_s, partial(self._end_stop, replica))

    def wake_at(self, at: float) -> None:
        """Call the arm then."""
        self._at(at, lambda: self._arm.woke_up())

    # What happens.

    def _start(self, stream: int) -> None:
        next_at = self._source.next_at(stream, self.now)
        if next_at is not None:
            self._at(next_at, partial(self._start, stream))
        if self._begins_runs:
            self._begin_run(self._source.begin(stream), stream)

    def _begin_run(self, plan: RunPlan, stream: int, parent: SimRun | None = None) -> None:
        run = SimRun(plan, self.now, stream, parent)
        self._under_way[run.run_id] = run
        self._offer(run, 1)

    def _offer(self, run: SimRun, attempt: int) -> None:
        self.offers += 1
        turn = SimTurn(run, self.offers, attempt, self.now)
        self._turns[turn.key] = turn
        self._arm.offered(turn)

    def _engine_is_due(self, replica: int, at: float) -> None:
        engine = self._engines[replica]
        if engine is None or engine.next_at != at:
            return  # planned anew meanwhile
        self._planned_at[replica] = None
        for progress in engine.advance(at):
            self._take_in(progress)
        self._plan_engine(replica, engine)

    def _ask_past_us(self, stranger: Stranger) -> None:
        engine = self._engines[stranger.replica]
        if self.now >= stranger.until_s or not self._begins_runs:
            return
        if engine is None:
            self._after(AGAIN_S, partial(self._ask_past_us, stranger))
            return
        engine.submit(request := stranger.asks(), self.now)
        self._strangers[request.key] = stranger
        self._plan_engine(stranger.replica, engine)

    def _take_in(self, progress: Progress) -> None:
        if progress.key in self._strangers:
            if progress.outcome is Outcome.DONE:
                self._ask_past_us(self._strangers.pop(progress.key))
            return
        turn = self._turns[progress.key]
        match progress.outcome:
            case Outcome.FIRST_TOKEN:
                turn.cached_tokens, turn.spoke = progress.cached_tokens, True
                run = turn.run
                run.reprefilled_tokens += max(0, min(run.prompt_tokens_before, turn.prompt_tokens) - turn.cached_tokens)
                self._arm.spoke(turn)
            case Outcome.GREW:
                self._arm.spoke(turn, progress.made)
            case Outcome.DONE:
                self._finish(turn)
            case Outcome.DIED:
                self._fail(turn, "died mid-stream")

    def _finish(self, turn: SimTurn) -> None:
        turn.step(TurnPhase.ENDED)
        del self._turns[turn.key]
        run, leg = turn.run, turn.run.leg
        self._arm.finished(turn)
        self._note_answer(turn)
        run.answered(turn, self.now)
        if leg.away_s is None:
            self._end_run(run, failed=False)
        elif leg.children:
            run.awaited = leg.enough
            for child in leg.children:
                self._begin_run(child, run.stream, run)
        else:
            self._after(leg.away_s, partial(self._offer, run, 1))

    def _note_answer(self, turn: SimTurn) -> None:
        run = turn.run
        answered = AnsweredTurn(
            ended_at=self.now,
            principal=run.plan.principal,
            caller=run.plan.caller,
            prompt_tokens=turn.prompt_tokens,
            cached_tokens=turn.cached_tokens,
            reply_tokens=run.leg.reply_tokens,
            known_tokens=min(run.prompt_tokens_before, turn.prompt_tokens),
        )
        run.service += service_of(answered)
        self.answered.append(answered)

    def _fail(self, turn: SimTurn, cause: str) -> None:
        if turn.phase is TurnPhase.ENDED:
            return  # its replica died before this refusal arrived
        turn.step(TurnPhase.ENDED)
        self.failed_turns += 1
        self._arm.failed(turn, cause)
        self._try_again(turn)

    def _try_again(self, turn: SimTurn) -> None:
        del self._turns[turn.key]
        faults = self.setting.faults
        if turn.attempt < faults.attempts:
            self._after(faults.retry_s, partial(self._offer, turn.run, turn.attempt + 1))
        else:
            self._end_run(turn.run, failed=True)

    def _end_run(self, run: SimRun, *, failed: bool) -> None:
        del self._under_way[run.run_id]
        self.ended.append(
            EndedRun(
                run=run.run_id,
                service_class=run.service_class,
                stream=run.stream,
                parent=run.plan.parent,
                principal=run.plan.principal,
                caller=run.plan.caller,
                alone_s=alone_s(run.plan, self.setting.replicas[0].engine),
                service=run.service,
                begun_at=run.begun_at,
                ended_at=self.now,
                turns=run.turns,
                turn_s=tuple(run.turn_s),
                reprefilled_tokens=run.reprefilled_tokens,
                moves=run.moves,
                failed=failed,
            )
        )
        if run.plan.says_end or failed:
            self._arm.run_ended(run)
        if run.parent is not None:
            self._hear_of_child(run.parent)
            return
        follower = self._source.follow(run.stream) if self._begins_runs else None
        if follower is not None:
            self._begin_run(follower, run.stream)

    def _hear_of_child(self, parent: SimRun) -> None:
        if parent.awaited:
            parent.awaited -= 1
            if not parent.awaited:
                self._offer(parent, 1)

    def _probe(self) -> None:
        self._probes += 1
        for replica, engine in enumerate(self._engines):
            stale = self.setting.faults.stale_probes
            if not stale or Dice(f"probe {self.seed} {replica} {self._probes}").unit() >= stale:
                self._last_seen[replica] = None if engine is None else engine.report(self.now)
            self._arm.probed(replica, self._last_seen[replica])
        self._after(self.setting.probe_period_s, self._probe)

    def _renew(self) -> None:
        self._arm.renewed()
        self._after(RENEW_PERIOD_S, self._renew)

    def _die(self, replica: int) -> None:
        engine, self._engines[replica] = self._engines[replica], None
        if engine is None:
            return
        self._past_totals.append(engine.totals)
        for key in engine.open_keys():
            if key in self._strangers:
                self._after(AGAIN_S, partial(self._ask_past_us, self._strangers.pop(key)))
            else:
                self._after(ANSWER_S, partial(self._fail, self._turns[key], "connection lost"))

    def _recover(self, replica: int) -> None:
        if self._engines[replica] is None:
            self._engines[replica] = Engine(self.setting.replicas[replica].engine)

    def _launch_of(self, replica: int) -> Launch:
        launch = self.setting.replicas[replica].launch
        assert launch is not None, f"replica {replica} is always up"
        return launch

    def _end_load(self, replica: int, number: int) -> None:
        if self._loading.get(replica) == number:  # else it was ended before
            del self._loading[replica]
            self._engines[replica] = Engine(self.setting.replicas[replica].engine)
            self._planned_at[replica] = None
            self._arm.loaded(replica)

    def _end_stop(self, replica: int) -> None:
        del self._taken[replica]
        self._arm.unloaded(replica)

    def _plan_engine(self, replica: int, engine: Engine) -> None:
        if (at := engine.next_at) is not None and at != self._planned_at[replica]:
            self._planned_at[replica] = at
            self._at(at, partial(self._engine_is_due, replica, at))

    def _after(self, seconds: float, callback: Callback) -> None:
        self._at(self.now + seconds, callback)

    def _at(self, at: float, callback: Callback) -> None:
        heappush(self._heap, (at, next(self._numbers), callback))
