"""The shape of `luftpause.toml`: one frozen struct per section, unknown keys refused, every default in place.

Durations are strings like "10m", "500ms" or "2h30m"; sizes like "20GiB" or "600MB" (see `config.units`).
Secrets never stand here: a key that ends in `_env` names the environment variable that holds one.
The `Attributes` sections are what the generated reference and the JSON schema say about each key.
"""

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from luftpause.config.launcher_schema import Launcher
from luftpause.config.value_types import (
    REQUEST_EDITS,
    AllowedHost,
    Duration,
    Engine,
    Name,
    OptionalSize,
    Origin,
    Port,
    RequestEdit,
    Section,
    Size,
    ToolServerName,
)


class Replica(Section, frozen=True):
    """An endpoint that already runs somewhere.

    Attributes:
        name: how status, logs and metrics call it; unique.
        url: base URL of the endpoint, without `/v1`. The variable `SSL_CERT_FILE` names a private authority.
        models: names of the models it serves.
        kind: `generative` answers token by token, `single-pass` in one forward pass (a classifier).
        engine: which engine answers; `auto` finds out from what it reports.
        api_key_env: environment variable with the endpoint's key, which must be set; empty means none is sent.
        health: path whose 200 means healthy; hosted APIs have no `/health`, so `/v1/models` there, and Ollama too.
        load_from: when the URL is a router, base URLs of the engines behind it; their loads are summed.
        dialects: wire formats that it speaks; empty: it is asked. What it does not speak is translated to `chat`.
    """

    name: Name
    url: str
    models: list[Name]
    kind: Literal["generative", "single-pass"] = "generative"
    engine: Engine = "auto"
    api_key_env: str = ""
    health: str = "/health"
    load_from: list[str] = []
    dialects: list[Literal["chat", "messages", "responses"]] = []


class ToolServer(Section, frozen=True):
    """An MCP tool server for sub-agents: `command` (stdio) or `url` (streamable HTTP), one of the two.

    Attributes:
        name: stands before its tools' names; unique.
        command: program and arguments of a server over stdio.
        url: address of a server over streamable HTTP.
        env: variables added to the environment of `command`.
        token_env: environment variable with a bearer token for `url`; empty means none is sent.
        timeout: a tool call that takes longer has failed, counted from when the server gets it.
        timeout_max: each sign of progress gives a call another `timeout`, up to this in all.
        concurrency: calls that the server gets at once, the others wait; 0 for as many as come.
    """

    name: ToolServerName
    command: list[str] = []
    url: str = ""
    env: dict[str, str] = {}
    token_env: str = ""
    timeout: Duration = "2m"
    timeout_max: Duration = "10m"
    concurrency: Annotated[int, Meta(ge=0)] = 0


class Principal(Section, frozen=True):
    """Somebody with a token of their own: their runs are theirs alone, and turns are shared fairly among principals.

    Whoever presents `LUFTPAUSE_TOKEN` is the principal `operator`, who alone may use the scheduler's addresses.

    Attributes:
        name: how status, logs and metrics call it; unique.
        token_env: environment variable with the token, which must be set.
        classes: the service classes it may ask for, empty: all; the first is taken where a request names none.
        weight: how much of the engines it gets beside the others, by policy `working-set`: 2 is twice as much as 1.
    """

    name: Name
    token_env: str
    classes: list[Literal["interactive", "batch"]] = []
    weight: float = 1.0


class Dataplane(Section, frozen=True):
    """The LLM door.

    Attributes:
        host: address it listens on.
        port: port it listens on; 0 picks a free one and prints it.
        workers: processes that serve the port together, for when one core is full; more than one needs Linux.
        max_body: a larger request body is refused.
        body_timeout: a request body that takes longer to arrive is refused.
        keepalive_after: a streaming client that waits this long gets its 200 and a first sign of life.
        keepalive: time between two signs of life until the engine's first byte; "0s" sends none.
        connect_timeout: an engine that cannot be reached within this, TLS included, is unreachable.
        edits: what may be set in a request where that is due: `model` (its engine's own name for it), `id_slot` (a
            run's own place), `stream` and its usage (llama.cpp notices only then that a client left), `priority` (ours,
            where an engine takes one; a client's own goes there only where ours is left out), `max_tokens` and
            `max_output_tokens` (a cap, see `reply_caps` of the scheduler).
        engine_idle: a connection to an engine without a request is closed after this; SGLang closes its own after 5 s.
        caller_bytes: the header `x-luftpause-caller` is cut at so many bytes: names stand in every status and metric.
        renew_period: open turns show the scheduler a sign of life this often, and 8 times within its `turn_timeout`.
        link_retry: the longest pause before the scheduler is tried again; it waits so long for all after its restart.
        link_timeout: a list of models or the end of a run waits this long for the scheduler; turns wait for ever.
        drain: open turns get this long to end when the door closes.
        allowed_hosts: names it answers for besides `host`, localhost and any address, such as "box.lan".
        allowed_origins: web origins that may call it besides its own, and read its answers (CORS).
    """

    host: str = "127.0.0.1"
    port: Port = 8080
    workers: Annotated[int, Meta(ge=1, le=64)] = 1
    max_body: Size = "32MiB"
    body_timeout: Duration = "1m"
    keepalive_after: Duration = "20s"
    keepalive: Duration = "10s"
    connect_timeout: Duration = "2s"
    engine_idle: Duration = "4s"
    edits: list[RequestEdit] = msgspec.field(default_factory=lambda: list(REQUEST_EDITS))
    caller_bytes: Annotated[int, Meta(ge=1, le=4096)] = 128
    renew_period: Duration = "1m"
    link_retry: Duration = "500ms"
    link_timeout: Duration = "5s"
    drain: Duration = "5s"
    allowed_hosts: list[AllowedHost] = []
    allowed_origins: list[Origin] = []


class Scheduler(Section, frozen=True):
    """The scheduler: `port` is the link for the other services, `http_port` status and page.

    Attributes:
        host: address both ports listen on.
        port: the link for the other services; 0 picks a free port and prints it.
        http_port: status, page and metrics; 0 picks a free port and prints it.
        policy: `turn-admission` holds turns while an engine queues; `working-set` lets runs begin only where their
            tokens fit into an engine's memory, and keeps their place while a tool is out as long as that pays.
        caller_weights: how much callers (`x-luftpause-caller`) get beside the others of their principal, by policy
            `working-set`; 1 for each that is not here.
        reply_caps: where a request says nothing of how long its answer may become, its engine is told a cap, by policy
            `working-set`: four times the longest of its caller's last 20 answers, 4096 tokens at least, and twice as
            much once that cut one off.
        probe_period: time between two looks at a replica's health and load; admission follows load with this delay.
        probe_timeout: a look that takes longer has failed: no health is ill health, no load is an unknown one.
        probe_eager: time between two looks at a new replica until it is healthy, so that a start is seen at once.
        not_ready_warning: a new replica that is not healthy by then is warned about, once.
        turn_timeout: a turn without a sign of life for this long has ended.
        run_idle_expiry: a run without a turn for this long is forgotten; agents with their own loop never say goodbye.
        slow_start: turns that a replica may have in flight when it comes back from an outage; more as it answers them.
        retry_after_max: no engine that asks to be left alone (Retry-After) is left alone for longer.
        tool_call_memory: a run is recognised this long by the tool-call ids that its agent echoes back.
        link_grace: turns of a lost dataplane stay charged this long, in case it returns.
        resync_grace: after a restart, turns wait at most this long until all dataplanes have told what they know.
        runtimes: base URLs of MCP doors whose runs the page shows, besides ours; empty: the one of `[runtime]`.
        allowed_hosts: names it answers for besides `host`, localhost and any address, such as "box.lan".
        allowed_origins: web origins that may call it besides its own, and read its answers (CORS).
    """

    host: str = "127.0.0.1"
    port: Port = 5000
    http_port: Port = 5001
    policy: Literal["turn-admission", "working-set"] = "turn-admission"
    caller_weights: dict[str, float] = {}
    reply_caps: bool = False
    probe_period: Duration = "2s"
    probe_timeout: Duration = "2s"
    probe_eager: Duration = "250ms"
    not_ready_warning: Duration = "5s"
    turn_timeout: Duration = "10m"
    run_idle_expiry: Duration = "30m"
    slow_start: Annotated[int, Meta(ge=1, le=100_000)] = 4
    retry_after_max: Duration = "5m"
    tool_call_memory: Duration = "30m"
    link_grace: Duration = "10s"
    resync_grace: Duration = "3s"
    runtimes: list[Origin] = []
    allowed_hosts: list[AllowedHost] = []
    allowed_origins: list[Origin] = []


class Runtime(Section, frozen=True):
    """The MCP door. `dataplane_url` is where its sub-agents take their turns; empty means this process's own.

    Attributes:
        host: address it listens on.
        port: port it listens on; 0 picks a free one and prints it.
        state_dir: folder of `runs.jsonl`, from which runs are resumed after a restart, and of `scheduler.memory`.
        keep_runs: so many runs that are over are kept for status and transcripts; beyond that the oldest trees go.
        keep_for: a tree whose last run ended longer ago is forgotten; "0s" keeps all that `keep_runs` leaves.
        dataplane_url: base URL of the dataplane that sub-agents use; empty means this process's own.
        default_model: model of a sub-agent that names none; empty means that it must name one.
        max_running: how many sub-agents may run at once.
        max_depth: how many sub-agents may stand below each other, counted from the first.
        max_children: how many sub-agents may run at once below one.
        max_tool_calls: tool calls of a sub-agent whose spawn names no number; it bounds its turns at one more.
        max_tokens: longest reply per turn where spawn names none, 0 for no limit; engines reserve memory for it.
        await_default: `await` without a timeout waits this long; many MCP clients give up after a minute.
        await_max: `await` waits at most this long, whatever is asked for.
        progress_period: a client that waits is told this often that it is still being waited for.
        orphan_grace: a run whose client cancels its `run` call by leaving is cancelled after this long.
        turn_timeout: one turn of a sub-agent takes at most this long without a sign of life.
        turn_tries: a turn whose reply is broken is tried so often, in all.
        retry_pause: pause before the second try of a turn; it doubles before each further one.
        retry_pause_max: longest pause between two tries of a turn.
        rate_limit_pause: pause after a 429 without a Retry-After.
        allowed_hosts: names it answers for besides `host`, localhost and any address, such as "box.lan".
        allowed_origins: web origins that may call it besides its own, and read its answers (CORS).
    """

    host: str = "127.0.0.1"
    port: Port = 7000
    state_dir: str = "state"
    keep_runs: Annotated[int, Meta(ge=0, le=1_000_000)] = 100_000
    keep_for: Duration = "30d"
    dataplane_url: str = ""
    default_model: str = ""
    max_running: Annotated[int, Meta(ge=1, le=100_000)] = 1000
    max_depth: Annotated[int, Meta(ge=1, le=100)] = 8
    max_children: Annotated[int, Meta(ge=1, le=100_000)] = 100
    max_tool_calls: Annotated[int, Meta(ge=0, le=1000)] = 8
    max_tokens: Annotated[int, Meta(ge=0, le=10_000_000)] = 256
    await_default: Duration = "1m"
    await_max: Duration = "10m"
    progress_period: Duration = "10s"
    orphan_grace: Duration = "30s"
    turn_timeout: Duration = "10m"
    turn_tries: Annotated[int, Meta(ge=1, le=100)] = 5
    retry_pause: Duration = "500ms"
    retry_pause_max: Duration = "5s"
    rate_limit_pause: Duration = "1s"
    allowed_hosts: list[AllowedHost] = []
    allowed_origins: list[Origin] = []


class Rule(Section, frozen=True):
    """Where a turn goes whose model no replica and no launcher knows by name. The first rule that fits counts.

    Attributes:
        model: a regular expression that the asked name must match whole; empty: any name.
        images: whether there must be a picture in the request.
        code_density: at least this many in a hundred bytes of the request must be in fenced code.
        prompt_min: the request must be at least this long.
        prompt_max: the request must be at most this long.
        to: the model that it goes to.
    """

    to: Name
    model: Annotated[str, Meta(max_length=256)] = ""
    images: Literal["any", "with", "without"] = "any"
    code_density: Annotated[int, Meta(ge=0, le=100)] = 0
    prompt_min: OptionalSize = ""
    prompt_max: OptionalSize = ""


class Heuristics(Section, frozen=True):
    """Where a turn of an unknown model goes by what is in it, after all rules; each only where it has a target.

    Attributes:
        images: model for requests with a picture; empty: none.
        code: model for requests of which at least 30 in a hundred bytes are fenced code; empty: none.
    """

    images: str = ""
    code: str = ""


class Config(Section, frozen=True):
    """The whole file.

    Attributes:
        default_model: model of turns that ask for an unknown one, after all rules; empty: they are refused with a 404.
        replicas: endpoints that already run somewhere, as `[[replicas]]`.
        launcher: engines that this machine starts.
        tools: MCP tool servers for sub-agents, as `[[tools]]`.
        principals: who may come in, as `[[principals]]`; without any, whoever has `LUFTPAUSE_TOKEN`.
        rules: where turns of unknown models go, as `[[rules]]`.
        heuristics: where they go by what is in them, after all rules.
        dataplane: the LLM door.
        scheduler: where and when turns run.
        runtime: the MCP door.
    """

    default_model: str = ""
    replicas: list[Replica] = []
    launcher: Launcher = Launcher()
    tools: list[ToolServer] = []
    principals: list[Principal] = []
    rules: list[Rule] = []
    heuristics: Heuristics = Heuristics()
    dataplane: Dataplane = Dataplane()
    scheduler: Scheduler = Scheduler()
    runtime: Runtime = Runtime()
