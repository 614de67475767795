"""Counters of one runtime. Labels never hold anything that a client chose."""

from typing import Final

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from luftpause.core.runs.events import (
    ApprovalAsked,
    ApprovalDecided,
    Ending,
    Event,
    MessageSent,
    RunCancelled,
    RunFailed,
    RunFinished,
    RunSpawned,
    ToolCallRejected,
    ToolReturned,
    TurnFailed,
    TurnTaken,
)
from luftpause.telemetry.exposition import Counts, counts_of

_SECONDS: Final = (0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600)


class RuntimeMetrics:
    """Counts what happens; in a registry of its own, so that several runtimes fit into one process."""

    def __init__(self) -> None:
        self._registry = CollectorRegistry()
        self._running = Gauge("luftpause_runtime_running_runs", "Runs that are not over", registry=self._registry)
        self._journal_failed = Gauge(
            "luftpause_runtime_journal_failed", "1 once the journal keeps nothing any more", registry=self._registry
        )
        self._spawned = Counter("luftpause_runtime_runs_spawned", "Runs begun", registry=self._registry)
        self._ended = Counter("luftpause_runtime_runs_ended", "Runs over", ["how"], registry=self._registry)
        self._turns = Counter("luftpause_runtime_turns", "Turns taken", registry=self._registry)
        tokens = Counter("luftpause_runtime_tokens", "Tokens of turns", ["kind"], registry=self._registry)
        self._prompt_tokens, self._completion_tokens = tokens.labels("prompt"), tokens.labels("completion")
        self._failed_turns = Counter("luftpause_runtime_turns_failed", "Turns not to be had", registry=self._registry)
        self._asked = Counter(
            "luftpause_runtime_approvals_asked", "Tool calls that a person must allow", registry=self._registry
        )
        self._decided = Counter("luftpause_runtime_approvals", "Decisions on them", ["how"], registry=self._registry)
        self._messages = Counter("luftpause_runtime_messages", "Messages sent to runs", registry=self._registry)
        self._exceeded = Counter(
            "luftpause_runtime_budget_cancelled_runs", "Runs that a budget ended", ["limit"], registry=self._registry
        )
        self._recovered = Counter(
            "luftpause_runtime_recovered_tool_calls",
            "Tool calls that a model wrote as text, by the way in which it wrote them",
            ["form"],
            registry=self._registry,
        )
        self._turn_seconds = Histogram(
            "luftpause_runtime_turn_seconds", "Turns of runs, held or not", buckets=_SECONDS, registry=self._registry
        )
        self._tool_seconds = Histogram(
            "luftpause_runtime_tool_seconds", "Tool calls, waiting included", buckets=_SECONDS, registry=self._registry
        )
        calls = Counter("luftpause_runtime_tool_calls", "Tool calls settled", ["how"], registry=self._registry)
        self._answered, self._failed, self._rejected = map(calls.labels, ("answered", "failed", "rejected"))

    def count(self, event: Event) -> None:
        """Count one durable event."""
        match event:
            case RunSpawned():
                self._spawned.inc()
            case TurnTaken() | TurnFailed():
                self._count_turn(event)
            case ToolCallRejected():
                self._rejected.inc()
            case ToolReturned():
                (self._failed if event.failed else self._answered).inc()
                self._tool_seconds.observe(event.took_ms / 1000)
            case ApprovalAsked():
                self._asked.inc()
            case ApprovalDecided():
                self._decided.labels("allowed" if event.allow else "declined").inc()
            case MessageSent():
                self._messages.inc()
            case RunFinished() | RunFailed() | RunCancelled():
                self._count_end(event)
            case _:
                return

    def _count_turn(self, event: TurnTaken | TurnFailed) -> None:
        if isinstance(event, TurnFailed):
            self._failed_turns.inc()
            return
        self._turns.inc()
        self._turn_seconds.observe(event.took_ms / 1000)
        for call in event.message.tool_calls:
            if call.recovered_from:
                self._recovered.labels(call.recovered_from).inc()
        if event.usage is not None:
            self._prompt_tokens.inc(event.usage.prompt_tokens)
            self._completion_tokens.inc(event.usage.completion_tokens)

    def _count_end(self, event: Ending) -> None:
        self._ended.labels(type(event).__name__.removeprefix("Run").lower()).inc()
        if isinstance(event, RunCancelled) and event.exceeded is not None:
            self._exceeded.labels(event.exceeded.which).inc()

    def counts(self, *, running: int, journal_failed: bool) -> Counts:
        """Return what was counted, with how things stand right now."""
        self._running.set(running)
        self._journal_failed.set(int(journal_failed))
        return counts_of(self._registry)
