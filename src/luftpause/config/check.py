"""What no single key can tell: names used twice, colliding ports, urls that lead nowhere, options that exclude others.

Looks at values only; whether anything answers at an address is not its business.
"""

import re
from collections.abc import Iterator, Mapping

from luftpause.config.check_launcher import check_launcher
from luftpause.config.faults import (
    argv_faults,
    engine_url_faults,
    environment_faults,
    health_faults,
    repeats,
    url_faults,
    variable_faults,
)
from luftpause.config.launcher_schema import replica_names
from luftpause.config.problems import KeyPath, dotted, shown
from luftpause.config.schema import Config, Principal, Replica, ToolServer
from luftpause.config.shape import Finding
from luftpause.config.units import seconds, size_bytes
from luftpause.core.model.ids import ANONYMOUS_PRINCIPAL, OPERATOR_PRINCIPAL

_HOST = re.compile(r"[A-Za-z0-9._:%-]+")
EVERYWHERE = frozenset({"0.0.0.0", "::"})  # noqa: S104 - recognised here, never bound
"""Hosts that mean every address of the machine."""
_LOOPBACK = "127.0.0.1"
_AT_LEAST_S: Mapping[KeyPath, float] = {("dataplane", "renew_period"): 0.1, ("scheduler", "turn_timeout"): 1.0}
"""Shorter ones would keep a dataplane busy with nothing but signs of life."""
_WEIGHT_MIN, _WEIGHT_MAX = 0.01, 100.0


def check(config: Config) -> Iterator[Finding]:
    """Yield what cannot work."""
    yield from _repeated_names(config)
    for at, replica in enumerate(config.replicas):
        yield from _replica(("replicas", at), replica)
    yield from check_launcher(config.launcher)
    for at, tool in enumerate(config.tools):
        yield from _tool(("tools", at), tool)
    for at, principal in enumerate(config.principals):
        yield from _principal(("principals", at), principal)
    for section in ("dataplane", "scheduler", "runtime"):
        host: str = getattr(config, section).host
        if not _HOST.fullmatch(host):
            yield (section, "host"), f"expected a host name or address, got {shown(host)}"
    if config.runtime.dataplane_url:
        yield from url_faults(("runtime", "dataplane_url"), config.runtime.dataplane_url)
    yield from _weights(config)
    yield from _caps(config)
    yield from _rules(config)
    yield from _quantities(config)
    yield from _addresses(config)


def unset_secrets(config: Config, env: Mapping[str, str]) -> Iterator[Finding]:
    """Yield each key that names an environment variable which is not set."""
    named: list[tuple[KeyPath, str]] = [
        *((("replicas", at, "api_key_env"), replica.api_key_env) for at, replica in enumerate(config.replicas)),
        *((("tools", at, "token_env"), tool.token_env) for at, tool in enumerate(config.tools)),
    ]
    for path, name in named:
        if name and not env.get(name):
            yield path, f"the variable {name} is not set; without it nothing is sent to this endpoint"
    for at, principal in enumerate(config.principals):
        if not env.get(principal.token_env):
            what = f"the variable {principal.token_env} is not set; without it no door opens"
            yield ("principals", at, "token_env"), what


def _repeated_names(config: Config) -> Iterator[Finding]:
    models: list[tuple[KeyPath, str]] = []
    for at, model in enumerate(config.launcher.models):
        path: KeyPath = ("launcher", "models", at)
        models.append(((*path, "name"), model.name))
        models += [((*path, "aliases", nth), alias) for nth, alias in enumerate(model.aliases)]
    replicas: list[tuple[KeyPath, str]] = [
        (("replicas", at, "name"), item.name) for at, item in enumerate(config.replicas)
    ]
    yield from repeats(replicas)
    owners = {name: dotted(path) for path, name in reversed(replicas)}
    for at, model in enumerate(config.launcher.models):
        for name in replica_names(model):
            if name in owners:
                what = f"its engine would be called {shown(name)}, which {owners[name]} is; call one of them otherwise"
                yield ("launcher", "models", at, "name"), what
    yield from repeats(models)
    yield from repeats(((("tools", at, "name"), item.name) for at, item in enumerate(config.tools)))
    yield from repeats(((("principals", at, "name"), item.name) for at, item in enumerate(config.principals)))


def _replica(path: KeyPath, replica: Replica) -> Iterator[Finding]:
    yield from engine_url_faults((*path, "url"), replica.url)
    for at, url in enumerate(replica.load_from):
        yield from engine_url_faults((*path, "load_from", at), url)
    if not replica.models:
        yield (*path, "models"), "names no model; without one no turn can reach this replica"
    yield from health_faults((*path, "health"), replica.health)
    yield from variable_faults((*path, "api_key_env"), replica.api_key_env)


def _tool(path: KeyPath, tool: ToolServer) -> Iterator[Finding]:
    if bool(tool.command) == bool(tool.url):
        had = "both" if tool.url else "neither"
        yield path, f"has {had} of command (stdio) and url (streamable HTTP); it needs one of the two"
    if tool.url:
        yield from url_faults((*path, "url"), tool.url)
    yield from argv_faults((*path, "command"), tool.command)
    yield from environment_faults((*path, "env"), tool.env)
    yield from variable_faults((*path, "token_env"), tool.token_env)


def _rules(config: Config) -> Iterator[Finding]:
    for at, rule in enumerate(config.rules):
        path: KeyPath = ("rules", at)
        if rule.model:
            try:
                re.compile(rule.model)
            except re.error as error:
                yield (*path, "model"), f"is no regular expression: {error}"
        for key in ("prompt_min", "prompt_max"):
            try:
                if getattr(rule, key):
                    size_bytes(getattr(rule, key))
            except ValueError as error:
                yield (*path, key), str(error)
    known = {name for replica in config.replicas for name in replica.models}
    known |= {name for model in config.launcher.models for name in (model.name, *model.aliases)}
    targets: list[tuple[KeyPath, str]] = [(("default_model",), config.default_model)]
    targets += [(("rules", at, "to"), rule.to) for at, rule in enumerate(config.rules)]
    targets += [(("heuristics", key), getattr(config.heuristics, key)) for key in ("images", "code")]
    for path, target in targets:
        # Without any model here the names are those of launchers elsewhere.
        if target and known and target not in known:
            yield path, f"no [[replicas]] and no [[launcher.models]] has a model {shown(target)}"


def _principal(path: KeyPath, principal: Principal) -> Iterator[Finding]:
    if principal.name in (ANONYMOUS_PRINCIPAL, OPERATOR_PRINCIPAL):
        yield (*path, "name"), f"{shown(principal.name)} has a meaning of its own; choose another name"
    if not principal.token_env:
        yield (*path, "token_env"), "is empty; name the environment variable that holds the token"
    yield from variable_faults((*path, "token_env"), principal.token_env)
    if len(set(principal.classes)) < len(principal.classes):
        yield (*path, "classes"), "names a class twice"


def _weights(config: Config) -> Iterator[Finding]:
    told: list[tuple[KeyPath, float]] = [
        (("principals", at, "weight"), principal.weight)
        for at, principal in enumerate(config.principals)
        if principal.weight != 1.0
    ]
    told += [
        (("scheduler", "caller_weights", name), weight) for name, weight in config.scheduler.caller_weights.items()
    ]
    for path, weight in told:
        if not _WEIGHT_MIN <= weight <= _WEIGHT_MAX:
            yield path, f"expected a number from {_WEIGHT_MIN:g} to {_WEIGHT_MAX:g}, got {shown(weight)}"
        elif config.scheduler.policy != "working-set":
            yield path, f"policy '{config.scheduler.policy}' weighs nobody; set policy = \"working-set\""


def _caps(config: Config) -> Iterator[Finding]:
    if config.scheduler.reply_caps and config.scheduler.policy != "working-set":
        needed = 'set policy = "working-set"'
        yield ("scheduler", "reply_caps"), f"policy '{config.scheduler.policy}' learns of no answers; {needed}"


def _quantities(config: Config) -> Iterator[Finding]:
    durations: list[tuple[KeyPath, str, bool]] = [
        (("dataplane", "body_timeout"), config.dataplane.body_timeout, False),
        (("dataplane", "keepalive_after"), config.dataplane.keepalive_after, False),
        (("dataplane", "keepalive"), config.dataplane.keepalive, True),
        (("dataplane", "connect_timeout"), config.dataplane.connect_timeout, False),
        (("dataplane", "engine_idle"), config.dataplane.engine_idle, False),
        (("dataplane", "renew_period"), config.dataplane.renew_period, False),
        (("dataplane", "link_retry"), config.dataplane.link_retry, False),
        (("dataplane", "link_timeout"), config.dataplane.link_timeout, False),
        (("dataplane", "drain"), config.dataplane.drain, True),
        (("scheduler", "probe_period"), config.scheduler.probe_period, False),
        (("scheduler", "probe_timeout"), config.scheduler.probe_timeout, False),
        (("scheduler", "probe_eager"), config.scheduler.probe_eager, False),
        (("scheduler", "not_ready_warning"), config.scheduler.not_ready_warning, True),
        (("scheduler", "tool_call_memory"), config.scheduler.tool_call_memory, False),
        (("scheduler", "turn_timeout"), config.scheduler.turn_timeout, False),
        (("scheduler", "run_idle_expiry"), config.scheduler.run_idle_expiry, False),
        (("scheduler", "retry_after_max"), config.scheduler.retry_after_max, False),
        (("scheduler", "link_grace"), config.scheduler.link_grace, True),
        (("scheduler", "resync_grace"), config.scheduler.resync_grace, True),
        (("runtime", "keep_for"), config.runtime.keep_for, True),
        (("runtime", "await_default"), config.runtime.await_default, True),
        (("runtime", "await_max"), config.runtime.await_max, False),
        (("runtime", "progress_period"), config.runtime.progress_period, False),
        (("runtime", "orphan_grace"), config.runtime.orphan_grace, True),
        (("runtime", "turn_timeout"), config.runtime.turn_timeout, False),
        (("runtime", "retry_pause"), config.runtime.retry_pause, True),
        (("runtime", "retry_pause_max"), config.runtime.retry_pause_max, True),
        (("runtime", "rate_limit_pause"), config.runtime.rate_limit_pause, False),
    ]
    for at, tool in enumerate(config.tools):
        durations.append((("tools", at, "timeout"), tool.timeout, False))
        durations.append((("tools", at, "timeout_max"), tool.timeout_max, False))
    for path, text, may_be_zero in durations:
        try:
            if seconds(text) == 0 and not may_be_zero:
                yield path, "must be longer than zero"
            elif seconds(text) < _AT_LEAST_S.get(path, 0.0):
                yield path, f"must be at least {_AT_LEAST_S[path]:g}s: each open turn gives signs of life by it"
        except ValueError as error:
            yield path, str(error)
    try:
        if size_bytes(config.dataplane.max_body) == 0:
            yield ("dataplane", "max_body"), "must be larger than zero"
    except ValueError as error:
        yield ("dataplane", "max_body"), str(error)


def _addresses(config: Config) -> Iterator[Finding]:
    taken: list[tuple[KeyPath, str, int]] = [
        (("dataplane", "port"), config.dataplane.host, config.dataplane.port),
        (("scheduler", "port"), config.scheduler.host, config.scheduler.port),
        (("scheduler", "http_port"), config.scheduler.host, config.scheduler.http_port),
        (("runtime", "port"), config.runtime.host, config.runtime.port),
    ]
    for at, model in enumerate(config.launcher.models):
        taken.append((("launcher", "models", at, "port"), _LOOPBACK, model.port))
    for nth, (path, host, port) in enumerate(taken):
        for other, other_host, other_port in taken[:nth]:
            if port and port == other_port and _overlap(host, other_host):
                yield path, f"{host}:{port} is taken by {dotted(other)}"
                break


def _overlap(one: str, other: str) -> bool:
    hosts = {_LOOPBACK if host == "localhost" else host for host in (one, other)}
    return len(hosts) == 1 or bool(hosts & EVERYWHERE)
