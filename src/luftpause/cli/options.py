"""The options that all service commands share, and how options of their own set configuration keys.

`@service_options()` stands right below `@click.command()`, then a `@setting("--port", "dataplane.port", help=…)` for
each key that deserves its own option, then the function, which takes one ServiceOptions and begins with its `load()`.
"""

import functools
import math
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import click

from luftpause.cli.files import FilePath
from luftpause.config.load import Loaded, load
from luftpause.telemetry import logs

_OVERRIDES = "luftpause.overrides"

Callback = Callable[..., None]


class FiniteRange(click.FloatRange):
    """A number within bounds. The word nan is none, and lies within all bounds for click."""

    def convert(self, value: float, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Return the number."""
        number = float(super().convert(value, param, ctx))
        if not math.isfinite(number):
            self.fail(f"{value!r} is no finite number.", param, ctx)
        return number


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceOptions:
    """What the shared options said.

    Attributes:
        overrides: dotted key to text, from `--set` and from options made with `setting`.
        ready_file: where to write the ready file; None writes none.
        log_level: what is logged, and everything graver.
    """

    config: Path | None
    ready_file: Path | None
    overrides: Mapping[str, str]
    log_level: str

    def load(self) -> Loaded:
        """Read the configuration and print its warnings.

        Raises:
            ConfigError: it cannot be used.
        """
        loaded = load(self.config, os.environ, self.overrides)
        for warning in loaded.warnings:
            click.echo(f"warning: {warning}", err=True)
        return loaded


def config_option(callback: Callback) -> Callback:
    """Add `--config FILE`, passed as `config`."""
    return click.option(
        "--config",
        type=FilePath(path_type=Path),
        metavar="FILE",
        help="Configuration file; luftpause.toml if absent.",
    )(callback)


def set_option(callback: Callback) -> Callback:
    """Add `--set SECTION.KEY=VALUE`, repeatable; `overrides_of` has what it said."""
    return click.option(
        "--set",
        multiple=True,
        metavar="KEY=VALUE",
        expose_value=False,
        callback=_take_assignments,
        help="Set a configuration key, for example dataplane.port=9090; repeatable.",
    )(callback)


def setting(option: str, key: str, *, help: str) -> Callable[[Callback], Callback]:
    """Make an option that sets a configuration key, such as `--port` for `dataplane.port`."""

    def take(ctx: click.Context, _: click.Parameter, value: str | None) -> None:
        if value is not None:
            _overrides(ctx)[key] = value

    return click.option(option, metavar="VALUE", expose_value=False, callback=take, help=help)


def overrides_of(ctx: click.Context) -> Mapping[str, str]:
    """Return the keys that the command line set."""
    return _overrides(ctx)


def service_options(*, log_level: str = "info") -> Callable[[Callable[[ServiceOptions], None]], Callback]:
    """Add `--config`, `--set`, `--ready-file` and `--log-level`; set up logs; pass the rest as ServiceOptions.

    `log_level` is what is logged unless the command line says otherwise.
    """

    def add(callback: Callable[[ServiceOptions], None]) -> Callback:
        @functools.wraps(callback)
        def run(config: Path | None, ready_file: Path | None, log_level: str) -> None:
            logs.configure(log_level)
            overrides = overrides_of(click.get_current_context())
            callback(ServiceOptions(config=config, ready_file=ready_file, overrides=overrides, log_level=log_level))

        return config_option(set_option(_ready_file_option(_log_level_option(log_level)(run))))

    return add


def _log_level_option(default: str) -> Callable[[Callback], Callback]:
    return click.option(
        "--log-level",
        type=click.Choice(logs.LEVELS, case_sensitive=False),
        default=default,
        show_default=True,
        help="Log this and everything graver.",
    )


def _ready_file_option(callback: Callback) -> Callback:
    return click.option(
        "--ready-file",
        type=FilePath(path_type=Path, dir_okay=False),
        metavar="PATH",
        help="Write the services' addresses there once they answer.",
    )(callback)


def _take_assignments(ctx: click.Context, _: click.Parameter, values: tuple[str, ...]) -> None:
    for value in values:
        key, equals, text = value.partition("=")
        if not equals or not key:
            raise click.BadParameter(f"{value!r} is not KEY=VALUE, for example dataplane.port=9090")
        _overrides(ctx)[key.strip()] = text


def _overrides(ctx: click.Context) -> dict[str, str]:
    overrides: dict[str, str] = ctx.meta.setdefault(_OVERRIDES, {})
    return overrides
