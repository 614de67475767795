"""SIGUSR1: the launcher's catalogue is read anew from the same places; everything else keeps what it started with."""

import asyncio
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from luftpause.assembly.parts import launcher_plan
from luftpause.cli.options import ServiceOptions
from luftpause.cli.say import say
from luftpause.config.load import DEFAULT_FILE, Loaded
from luftpause.config.problems import ConfigError, Problem
from luftpause.services.launcher.planning import LauncherPlan
from luftpause.services.launcher.service import LauncherService


@contextmanager
def reloading(options: ServiceOptions, launcher: LauncherService) -> Iterator[None]:
    """Heed the signal for the length of a block. A file that cannot be used changes nothing, and says why."""
    number = getattr(signal, "SIGUSR1", None)
    if number is None:
        yield
        return
    loop = asyncio.get_running_loop()
    loop.add_signal_handler(number, _reload, options, launcher)
    try:
        yield
    finally:
        loop.remove_signal_handler(number)


def _reload(options: ServiceOptions, launcher: LauncherService) -> None:
    try:
        plan = _plan(options.load(), launcher.kv_folder)
    except ConfigError as error:
        for line in str(error).splitlines():
            say(f"error: {line}", err=True)
        say("the catalogue of models was not changed", err=True)
        return
    launcher.reload(plan)
    say(f"launcher: {len(plan.models)} models, read anew")


def _plan(loaded: Loaded, kv_folder: Path | None) -> LauncherPlan:
    if loaded.source is None:  # else a file that is being replaced would unload every model
        raise ConfigError(Problem(where=str(DEFAULT_FILE), what="there is no such file to read the models from"))
    try:
        return launcher_plan(loaded.config, kv_folder)
    except ConfigError as error:
        raise ConfigError(*map(loaded.placed, error.problems)) from None
