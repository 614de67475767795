"""Whether the configuration can be loaded, and what it declares."""

from pathlib import Path

from luftpause.cli.examining.findings import Finding, Says
from luftpause.config.load import Loaded
from luftpause.config.problems import ConfigError
from luftpause.config.schema import Config

SAYS = Says("config")


def broken(error: ConfigError, file: Path | None) -> list[Finding]:
    """Return what keeps it from being loaded, a finding for each mistake."""
    named = "" if file is None else f" --config {file}"
    return [
        SAYS.error(str(problem), f"edit {problem.where}, then: luftpause config check{named}")
        for problem in error.problems
    ]


def examined(loaded: Loaded, running: Config, story: str) -> list[Finding]:
    """Return what it is. `running`: as it would run; `story`: what stands in where nothing is declared."""
    counts = (
        f"replicas: {len(running.replicas)}, models to launch: {len(running.launcher.models)},"
        f" tools: {len(running.tools)}"
    )
    found = [SAYS.ok(f"{loaded.source or 'the embedded default'} ({counts})")]
    if story:
        found.append(SAYS.note(f"no luftpause.toml here, so `luftpause up` starts {story}"))
    elif not running.replicas and not running.launcher.models:
        mend = '[[replicas]] name = "a", url = "http://127.0.0.1:30000", models = ["NAME"]'
        found.append(SAYS.warning("it declares no [[replicas]] and no [[launcher.models]]: turns are refused", mend))
    found += [SAYS.warning(str(each), _mend(each.what, each.where)) for each in loaded.warnings]
    return found


def _mend(what: str, where: str) -> str:
    variable = what.removeprefix("the variable ").partition(" is not set")[0]
    return f"export {variable}=..." if variable != what else f"edit {where}"
