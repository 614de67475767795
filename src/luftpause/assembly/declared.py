"""From the configuration to the values that services and adapters are constructed with."""

from collections.abc import Mapping
from pathlib import Path

from immutables import Map

from luftpause.adapters.door_guard.keyring import Key
from luftpause.adapters.journal_file.book import Retention
from luftpause.adapters.journal_file.journal import Upkeep
from luftpause.adapters.link.server import Graces
from luftpause.adapters.tools_mcp.transports import ToolServerSpec
from luftpause.adapters.turns_http.retry import Patience
from luftpause.assembly.doors import is_loopback
from luftpause.config.launcher_schema import Launcher
from luftpause.config.problems import ConfigError, Problem
from luftpause.config.schema import Config
from luftpause.config.units import seconds, size_bytes
from luftpause.core.dialects.edits import Edit
from luftpause.core.model.ids import CallerId, ModelName, PrincipalId, ReplicaId
from luftpause.core.model.principals import Principal
from luftpause.core.model.replicas import Endpoint, EngineKind, ReplicaKind, ReplicaSpec
from luftpause.core.model.turns import ServiceClass
from luftpause.core.scheduling.residency.state import ResidencyLimits
from luftpause.core.scheduling.routing import Routing, Rule
from luftpause.core.scheduling.state import Limits
from luftpause.core.scheduling.working_set.limits import WorkingSetLimits
from luftpause.core.scheduling.working_set.weights import Weights
from luftpause.services.dataplane.settings import DataplaneSettings
from luftpause.services.runtime.orders import RuntimeSettings
from luftpause.services.scheduler.settings import SchedulerSettings

RENEWALS_PER_TIMEOUT = 8
"""Open turns are renewed so often within the turn timeout that a few lost renewals do no harm."""


def require_keys(config: Config, env: Mapping[str, str]) -> None:
    """Refuse to start where a key is to be sent that is not there: nothing could ever reach that replica.

    Raises:
        ConfigError: a variable that holds a replica's key is not set.
    """
    problems = [
        Problem(where="environment", key=f"replicas[{at}].api_key_env", what=f"the variable {name} is not set")
        for at, replica in enumerate(config.replicas)
        if (name := replica.api_key_env) and not env.get(name, "").strip()
    ]
    if problems:
        raise ConfigError(*problems)


def engine_key(section: Launcher, env: Mapping[str, str]) -> str:
    """Return the key that engines on demand are started with, empty where they need none.

    Raises:
        ConfigError: others could reach them and there is none, or its variable is not set.
    """
    name = section.api_key_env
    key = env.get(name, "").strip() if name else ""
    if name and not key:
        raise ConfigError(
            Problem(where="environment", key="launcher.api_key_env", what=f"the variable {name} is not set")
        )
    if not key and section.models and not is_loopback(section.host):
        what = f"engines on {section.host} would answer whoever reaches it; name a variable with a key for them"
        raise ConfigError(Problem(where="launcher", key="launcher.api_key_env", what=what))
    return key


def principal_keys(config: Config, env: Mapping[str, str], *, operator_token: str) -> tuple[Key, ...]:
    """Return the declared principals with the tokens that their variables hold.

    Raises:
        ConfigError: a variable is not set, holds what no client can send, or holds a token that is another's.
    """
    problems: list[Problem] = []
    keys: list[Key] = []
    owners = {operator_token: "LUFTPAUSE_TOKEN"} if operator_token else {}
    for at, declared in enumerate(config.principals):
        name = declared.token_env
        token = env.get(name, "").strip()
        if not token:
            what = f"the variable {name} is not set"
        elif not is_sendable(token):
            what = f"the variable {name} holds a character that no client can send; use printable ASCII"
        elif token in owners:
            what = f"the variable {name} holds the same token as {owners[token]}; each needs its own"
        else:
            owners[token] = f"principals[{at}]"
            classes = tuple(ServiceClass(each) for each in declared.classes or ("interactive", "batch"))
            keys.append(Key(token=token, principal=Principal(name=PrincipalId(declared.name), classes=classes)))
            continue
        problems.append(Problem(where="environment", key=f"principals[{at}].token_env", what=what))
    if problems:
        raise ConfigError(*problems)
    return tuple(keys)


def is_sendable(token: str) -> bool:
    """Return whether a token can stand in a header as it is: printable ASCII without blanks."""
    return all("!" <= character <= "~" for character in token)


def replica_specs(config: Config) -> tuple[ReplicaSpec, ...]:
    """Return the replicas that run somewhere already, in the order of the configuration."""
    return tuple(
        ReplicaSpec(
            replica=ReplicaId(replica.name),
            endpoint=Endpoint(url=replica.url.rstrip("/"), api_key_env=replica.api_key_env),
            models=tuple(ModelName(model) for model in replica.models),
            kind=ReplicaKind(replica.kind),
            engine=EngineKind(replica.engine),
            health=replica.health,
            load_from=tuple(url.rstrip("/") for url in replica.load_from),
            dialects=tuple(sorted(set(replica.dialects) - {"chat"})) if replica.dialects else None,
        )
        for replica in config.replicas
    )


def tool_server_specs(config: Config, env: Mapping[str, str]) -> tuple[ToolServerSpec, ...]:
    """Return the tool servers; their tokens are taken from the variables that the configuration names."""
    return tuple(
        ToolServerSpec(
            name=server.name,
            command=tuple(server.command),
            url=server.url,
            env=server.env,
            token=env.get(server.token_env, "") if server.token_env else "",
            timeout_s=seconds(server.timeout),
            timeout_max_s=seconds(server.timeout_max),
            concurrency=server.concurrency,
        )
        for server in config.tools
    )


def dataplane_settings(config: Config) -> DataplaneSettings:
    """Return the LLM door's limits and periods."""
    return DataplaneSettings(
        max_body_bytes=size_bytes(config.dataplane.max_body),
        body_timeout_s=seconds(config.dataplane.body_timeout),
        keepalive_after_s=seconds(config.dataplane.keepalive_after),
        keepalive_s=seconds(config.dataplane.keepalive),
        caller_bytes=config.dataplane.caller_bytes,
        renew_period_s=min(
            seconds(config.dataplane.renew_period), seconds(config.scheduler.turn_timeout) / RENEWALS_PER_TIMEOUT
        ),
        link_timeout_s=seconds(config.dataplane.link_timeout),
        looks_inside=routing(config).looks_inside,
        measures_pictures=config.scheduler.policy == "working-set" or bool(config.launcher.models),
        edits=frozenset(map(Edit, config.dataplane.edits)),
    )


def _residency_limits(section: Launcher) -> ResidencyLimits:
    return ResidencyLimits(
        max_wait_s=seconds(section.max_wait),
        min_residency_s=seconds(section.min_residency),
        unknown_tool_s=seconds(section.unknown_tool),
        soft_lease_s_max=seconds(section.soft_lease_max),
        circuit_after=section.circuit_after,
        circuit_s=seconds(section.circuit),
        circuit_s_max=seconds(section.circuit_max),
        stable_s=seconds(section.stable_after),
        silent_s=seconds(section.silent_after),
    )


def _weights(config: Config) -> Weights:
    told = {PrincipalId(each.name): each.weight for each in config.principals if each.weight != 1.0}
    callers = {CallerId(name): weight for name, weight in config.scheduler.caller_weights.items()}
    return Weights(principals=Map(told), callers=Map(callers))


def _working_set(config: Config) -> WorkingSetLimits:
    return WorkingSetLimits(weights=_weights(config), reply_caps=config.scheduler.reply_caps)


def scheduler_settings(config: Config) -> SchedulerSettings:
    """Return the scheduler's periods and timeouts."""
    section = config.scheduler
    limits = Limits(
        turn_timeout_s=seconds(section.turn_timeout),
        run_idle_expiry_s=seconds(section.run_idle_expiry),
        retry_after_s_max=seconds(section.retry_after_max),
        slow_start=section.slow_start,
        residency=_residency_limits(config.launcher),
        working_set=_working_set(config) if section.policy == "working-set" else None,
    )
    return SchedulerSettings(
        policy=section.policy,
        limits=limits,
        routing=routing(config),
        tool_call_memory_s=seconds(section.tool_call_memory),
        probe_period_s=seconds(section.probe_period),
        probe_timeout_s=seconds(section.probe_timeout),
        probe_eager_s=seconds(section.probe_eager),
        not_ready_warning_s=seconds(section.not_ready_warning),
    )


def routing(config: Config) -> Routing:
    """Return where turns of unknown models go."""
    return Routing(
        rules=tuple(
            Rule(
                to=ModelName(rule.to),
                pattern=rule.model,
                images=None if rule.images == "any" else rule.images == "with",
                code_share=rule.code_density,
                prompt_min=size_bytes(rule.prompt_min) if rule.prompt_min else 0,
                prompt_max=size_bytes(rule.prompt_max) if rule.prompt_max else None,
            )
            for rule in config.rules
        ),
        images=ModelName(config.heuristics.images),
        code=ModelName(config.heuristics.code),
        default=ModelName(config.default_model),
    )


def link_graces(config: Config) -> Graces:
    """Return how long the scheduler's link waits for its peers."""
    return Graces(
        peer_s=seconds(config.scheduler.link_grace),
        resync_s=seconds(config.scheduler.resync_grace),
        others_s=seconds(config.dataplane.link_retry),
    )


def runtime_settings(config: Config) -> RuntimeSettings:
    """Return the MCP door's limits and periods."""
    section = config.runtime
    return RuntimeSettings(
        default_model=ModelName(section.default_model) if section.default_model else None,
        max_running=section.max_running,
        max_depth=section.max_depth,
        max_children=section.max_children,
        max_tool_calls=section.max_tool_calls,
        max_tokens=section.max_tokens,
        await_default_s=seconds(section.await_default),
        await_max_s=seconds(section.await_max),
        progress_every_s=seconds(section.progress_period),
        orphan_grace_s=seconds(section.orphan_grace),
        caller_bytes=config.dataplane.caller_bytes,
    )


def patience(config: Config) -> Patience:
    """Return how long sub-agents' turns put up with engines."""
    section = config.runtime
    return Patience(
        turn_timeout_s=seconds(section.turn_timeout),
        tries=section.turn_tries,
        backoff_s=seconds(section.retry_pause),
        backoff_max_s=seconds(section.retry_pause_max),
        rate_limit_pause_s=seconds(section.rate_limit_pause),
    )


def state_folder(config: Config) -> Path:
    """Return where the runtime keeps its journal."""
    return Path(config.runtime.state_dir).expanduser()


def upkeep(config: Config) -> Upkeep:
    """Return how long the journal keeps runs that are over."""
    section = config.runtime
    keep_for_s = seconds(section.keep_for) or None
    return Upkeep(retention=Retention(keep_runs=section.keep_runs, keep_for_s=keep_for_s))


def log_folder(config: Config) -> Path | None:
    """Return where engines' output goes; None keeps only its end, in memory."""
    return Path(config.launcher.log_dir).expanduser() if config.launcher.log_dir else None


def kv_folder(config: Config) -> Path | None:
    """Return below which folder launchers of this name keep the KV of runs; None where none is kept."""
    section = config.launcher
    keeps = section.models and section.kv_parking == "auto"
    # What lies below the folder of the state is ours, and no link: held_folder refuses one.
    return Path(section.state_dir).expanduser().resolve() / "kv" / section.name if keeps else None


def marks_folder(config: Config) -> Path | None:
    """Return where the launcher keeps marks of its engines; None where it starts none."""
    return Path(config.launcher.state_dir).expanduser() if config.launcher.models else None
