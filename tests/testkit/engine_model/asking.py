"""Short ways to say what tests of the engine model need."""

from luftpause.testkit.engine_model.engine import Engine, Outcome, Progress
from luftpause.testkit.engine_model.sequence import Request


def request(
    key: int,
    prompt: int = 100,
    reply: int = 10,
    *,
    run: str = "",
    system: int = 0,
    reply_max: int = 0,
    priority: int = 0,
    dies_after: int | None = None,
    stalls_after: int | None = None,
    spoken_of: int = 0,
) -> Request:
    """Ask for a reply; `prompt` counts the system prompt in. Its run is named after it unless told otherwise."""
    own = (run or f"run-{key}", prompt - system)
    return Request(
        key=key,
        prompt=(("system", system), own) if system else (own,),
        reply_tokens=reply,
        reply_tokens_max=reply_max or reply,
        priority=priority,
        dies_after=dies_after,
        stalls_after=stalls_after,
        spoken_of=spoken_of,
    )


def run_out(engine: Engine, until: float = 1e9) -> list[tuple[float, Progress]]:
    """Let the engine work until then or until it has nothing to do; return what happened when."""
    seen = []
    while (at := engine.next_at) is not None and at <= until:
        seen += [(at, progress) for progress in engine.advance(at)]
    return seen


def done(seen: list[tuple[float, Progress]]) -> dict[int, float]:
    """Return when each request was done."""
    return {progress.key: at for at, progress in seen if progress.outcome is Outcome.DONE}


def first(seen: list[tuple[float, Progress]]) -> dict[int, float]:
    """Return when each request's answer began."""
    return {progress.key: at for at, progress in seen if progress.outcome is Outcome.FIRST_TOKEN}
