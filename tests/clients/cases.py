"""The clients that are tried. How a client is told of the MCP door is what `luftpause connect` says."""

from dataclasses import replace
from typing import Final

from clients.case import CALL, MODEL, PLANNER, Case
from clients.shell_programs import COPILOT_WIRES, PI_WIRES, continue_cli, copilot, kilo, llm, pi, qwen
from luftpause.cli.connecting.clients import CLIENTS
from luftpause.cli.connecting.merging import merged
from luftpause.cli.connecting.steps import Addresses, Door, Format, Fragment

NESTED: Final = "Run it. {{tools:1}} {{parallel:1}} {{tokens:12}} {{tool:{tool}}} {{arg:{argument}=echo hello}}"
"""The same, as it is handed on to a sub-agent."""


def program(
    name: str, package: str, wires: tuple[str, ...], *, runs: int = 1, open_calls: int = 0, folder: str = "python"
) -> list[Case]:
    """Return the cases of a program in tests/clients/programs, one for each wire format that it speaks."""
    return [
        Case(
            name=name,
            package=package,
            folder=folder,
            wire=wire,
            runs=runs,
            open_calls=open_calls,
            command=("python", f"{{programs}}/{name}.py", "{base}", wire),
        )
        for wire in wires
    ]


PYTHON: Final = [
    *program("openai_package", "openai", ("chat", "responses")),
    *program("anthropic_package", "anthropic", ("messages",)),
    *program("google_genai", "google-genai", ("gemini",), folder="google-genai"),
    *program("openai_agents", "openai-agents", ("chat", "responses"), runs=2),
    *program("langgraph_agents", "langgraph", ("chat", "responses", "messages"), runs=2),
    *program("pydantic_agents", "pydantic-ai-slim", ("chat", "responses", "messages", "gemini"), runs=2),
    *program("smol_agents", "smolagents", ("chat",), runs=2, open_calls=2),
    *program("strands_agents", "strands-agents", ("chat", "responses", "messages"), folder="agents"),
    *program("agno_agents", "agno", ("chat", "responses", "messages"), runs=2, folder="agents"),
    *program("litellm_package", "litellm", ("chat", "responses", "messages", "gemini"), folder="litellm"),
    *program("magentic_prompt", "magentic", ("chat", "messages"), folder="magentic"),
    *program("llamaindex_agents", "llama-index-core", ("chat", "responses", "gemini"), folder="llama-index"),
    *program("haystack_agent", "haystack-ai", ("chat", "responses", "messages", "gemini"), folder="haystack"),
    *program("agent_framework_agent", "agent-framework-core", ("chat", "responses", "messages"), folder="microsoft"),
    *program("adk_agents", "google-adk", ("gemini",), runs=2, folder="google-adk"),
]
PROVIDERS: Final = [
    replace(case, name=package, command=(*case.command, package))
    for package in ("groq", "together", "mistralai", "huggingface-hub", "cerebras-cloud-sdk")
    for case in program("provider_packages", package, ("chat",), folder="providers")
]
"""Packages of those who offer Chat Completions, each with habits of its own."""

NODE: Final = [
    Case(
        name=name,
        package=package,
        folder=folder,
        wire=wire,
        calls=6,
        command=("node", f"{{programs}}/{name}.cjs", "{base}", wire),
        env={"NODE_PATH": "{own}/node_modules"},
    )
    for name, package, folder, wires in (
        ("openai_node", "openai", "javascript", ("chat", "responses")),
        ("anthropic_node", "@anthropic-ai/sdk", "javascript", ("messages",)),
        ("google_genai_node", "@google/genai", "javascript", ("gemini",)),
        ("ai_sdk", "ai", "javascript", ("chat", "responses", "messages", "gemini")),
        ("ai_sdk", "ai", "ai-7", ("chat", "responses", "messages", "gemini")),
        ("openai_agents_node", "@openai/agents", "javascript", ("chat", "responses")),
        ("genkit_node", "genkit", "genkit", ("chat", "gemini")),
        ("adk_node", "@google/adk", "google-adk-node", ("gemini",)),
    )
    for wire in wires
]

LANGCHAIN_NODE: Final = [
    Case(
        name="langchain_node",
        package="langchain",
        folder="langchain",
        wire=wire,
        runs=3,
        calls=4,
        command=("node", "{programs}/langchain_node.cjs", "{base}", wire),
        env={"NODE_PATH": "{own}/node_modules"},
    )
    for wire in ("chat", "responses", "messages", "gemini")
]

EXAMPLES: Final = [
    Case(
        name=name,
        package=package,
        folder="python",
        wire=wire,
        command=("python", f"{{examples}}/{name}.py", "{base}", "Weather in Bonn? [tools:1] [parallel:1]"),
    )
    for name, package, wire in (
        ("own_loop_openai", "openai", "chat"),
        ("anthropic_loop", "anthropic", "messages"),
        ("openai_agents_sdk", "openai-agents", "chat"),
        ("langgraph_agent", "langgraph", "chat"),
        ("pydantic_ai_agent", "pydantic-ai-slim", "chat"),
    )
]
"""What `examples/` shows, as it is."""

CLAUDE_CODE: Final = {
    "ANTHROPIC_BASE_URL": "{base}",
    "ANTHROPIC_AUTH_TOKEN": "x",
    "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
    "IS_SANDBOX": "1",
}


def agents(tool: str, shell: str, argument: str, **arguments: str) -> str:
    """Return the task of calling two sub-agents at once, each of which calls a shell."""
    others = " ".join(f"[arg:{name}={value}]" for name, value in arguments.items())
    nested = NESTED.format(tool=shell, argument=argument)
    return f"Ask two. [tools:1] [parallel:2] [tool:{tool}] [arg:prompt={nested}] [arg:message={nested}] {others}"


def claude_code(wanted: str, *, runs: int = 1, children: int = 0, calls: int = 1) -> Case:
    """Return a case of Claude Code."""
    return Case(
        name="claude-code",
        package="@anthropic-ai/claude-code",
        folder="claude-code",
        wire="messages",
        command=("claude", "-p", wanted, "--model", MODEL, "--dangerously-skip-permissions"),
        env=CLAUDE_CODE,
        runs=runs,
        children=children,
        calls=calls,
    )


CODEX_CONFIG: Final = f"""
model = "{MODEL}"
model_provider = "lp"
[model_providers.lp]
name = "lp"
base_url = "{{base}}/v1"
wire_api = "responses"
env_key = "LP_KEY"
"""


def codex(wanted: str, *, runs: int = 1, children: int = 0, calls: int = 1) -> Case:
    """Return a case of Codex."""
    return Case(
        name="codex",
        package="@openai/codex",
        folder="codex",
        wire="responses",
        command=("codex", "exec", "--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox", wanted),
        env={"LP_KEY": "x"},
        files={".codex/config.toml": CODEX_CONFIG},
        runs=runs,
        children=children,
        calls=calls,
    )


OPENCODE: Final = """{
 "autoupdate": false, "small_model": "lp/%(model)s", "permission": {"*": "allow"},
 "provider": {"lp": {
  "npm": "%(npm)s", "options": {"baseURL": "{base}/%(path)s", "apiKey": "x"}, "models": {"%(model)s": {}}
 }}
}"""
OPENCODE_WIRES: Final = {
    "chat": ("@ai-sdk/openai-compatible", "v1"),
    "responses": ("@ai-sdk/openai", "v1"),
    "messages": ("@ai-sdk/anthropic", "v1"),
    "gemini": ("@ai-sdk/google", "v1beta"),
}


def opencode(wire: str, wanted: str, *, runs: int = 1, children: int = 0, calls: int = 1) -> Case:
    """Return a case of opencode."""
    npm, path = OPENCODE_WIRES[wire]
    return Case(
        name="opencode",
        package="opencode-ai",
        folder="opencode",
        wire=wire,
        command=("opencode", "run", "-m", f"lp/{MODEL}", "--title", "t", wanted),
        env={"OPENCODE_DISABLE_AUTOUPDATE": "1", "OPENCODE_DISABLE_MODELS_FETCH": "1"},
        files={"work/opencode.json": OPENCODE % {"model": MODEL, "npm": npm, "path": path}},
        runs=runs,
        children=children,
        calls=calls,
    )


GEMINI_SETTINGS: Final = (
    '{"security": {"auth": {"selectedType": "gemini-api-key"}}, "privacy": {"usageStatisticsEnabled": false}}'
)


def gemini(wanted: str, *, runs: int = 1, calls: int = 1) -> Case:
    """Return a case of Gemini CLI."""
    return Case(
        name="gemini-cli",
        package="@google/gemini-cli",
        folder="gemini-cli",
        wire="gemini",
        command=("gemini", "-p", wanted, "-m", MODEL, "--yolo"),
        env={"GOOGLE_GEMINI_BASE_URL": "{base}", "GEMINI_API_KEY": "x", "GEMINI_CLI_TRUST_WORKSPACE": "true"},
        files={".gemini/settings.json": GEMINI_SETTINGS},
        runs=runs,
        calls=calls,
    )


SLOWLY: Final = " [tokens:6000]"
"""Codex does not wait for its sub-agents by itself, and they end with it. A long answer gives them the time."""

PROGRAMS: Final = [
    claude_code(CALL.format(tool="Bash", argument="command")),
    claude_code(
        agents("Agent", "Bash", "command", subagent_type="general-purpose", run_in_background="false"),
        runs=3,
        children=2,
        calls=4,
    ),
    codex(CALL.format(tool="exec_command", argument="cmd")),
    codex(agents("spawn_agent", "exec_command", "cmd") + SLOWLY, runs=3, children=2, calls=4),
    *(opencode(wire, CALL.format(tool="bash", argument="command")) for wire in OPENCODE_WIRES),
    *(
        opencode(wire, agents("task", "bash", "command", subagent_type="general"), runs=3, children=2, calls=4)
        for wire in OPENCODE_WIRES
    ),
    gemini(CALL.format(tool="run_shell_command", argument="command")),
    gemini(agents("invoke_agent", "run_shell_command", "command", agent_name="generalist"), runs=3, calls=4),
    *(pi(wire, CALL.format(tool="bash", argument="command")) for wire in PI_WIRES),
    *(copilot(wire, CALL.format(tool="bash", argument="command") + " [arg:description=x]") for wire in COPILOT_WIRES),
    continue_cli(CALL.format(tool="Bash", argument="command")),
    qwen(CALL.format(tool="run_shell_command", argument="command")),
    kilo(CALL.format(tool="bash", argument="command") + " [arg:description=x]"),
    llm(),
]


def connected(name: str, text: str, format: Format) -> str:
    """Return a client's file with what `luftpause connect` puts into it for the MCP door."""
    recipes = CLIENTS[name].recipes(Addresses(llm="{base}", mcp="{mcp}", model=PLANNER, caller=name))
    (step,) = next(recipe for recipe in recipes if recipe.door is Door.MCP).steps
    assert isinstance(step, Fragment)
    return merged(text, step.content, format)


def looking_up(case: Case, look_ups: int, *, at_once: bool, known: bool) -> Case:
    """Return a case of a client whose model lets sub-agents look things up. `known`: it names the calls they are of."""
    own_calls = look_ups + 1 if at_once else look_ups
    children = look_ups if known else 0
    runs, calls = 1 + look_ups, own_calls + look_ups
    return replace(case, runs=runs, children=children, calls=calls, look_ups=look_ups, at_once=at_once)


WANTED: Final = "Look it up."
CLAUDE_CODE_CONNECTED: Final = replace(
    claude_code(WANTED),
    command=(
        *("claude", "-p", WANTED, "--model", PLANNER, "--dangerously-skip-permissions"),
        *("--mcp-config", ".mcp.json", "--strict-mcp-config"),
    ),
    env={**CLAUDE_CODE, "ENABLE_TOOL_SEARCH": "false"},
    files={"work/.mcp.json": connected("claude-code", "", Format.JSON)},
)
CODEX_CONNECTED: Final = replace(
    codex(WANTED),
    files={".codex/config.toml": connected("codex", CODEX_CONFIG.replace(MODEL, PLANNER), Format.TOML)},
)
GEMINI_CONNECTED: Final = replace(
    gemini(WANTED),
    command=("gemini", "-p", WANTED, "-m", PLANNER, "--yolo"),
    files={".gemini/settings.json": connected("gemini-cli", GEMINI_SETTINGS, Format.JSON)},
)
OPENCODE_CONNECTED: Final = replace(
    opencode("chat", WANTED),
    command=("opencode", "run", "-m", f"lp/{PLANNER}", "--title", "t", WANTED),
    files={
        "work/opencode.json": connected(
            "opencode", OPENCODE % {"model": PLANNER, "npm": OPENCODE_WIRES["chat"][0], "path": "v1"}, Format.JSON
        )
    },
)
MCP_CLIENTS: Final = [
    looking_up(CLAUDE_CODE_CONNECTED, 6, at_once=True, known=True),
    looking_up(CLAUDE_CODE_CONNECTED, 6, at_once=False, known=True),
    looking_up(CODEX_CONNECTED, 1, at_once=True, known=True),
    looking_up(GEMINI_CONNECTED, 1, at_once=True, known=False),
    looking_up(OPENCODE_CONNECTED, 1, at_once=True, known=False),
]

CASES: Final = [*PYTHON, *PROVIDERS, *EXAMPLES, *NODE, *LANGCHAIN_NODE, *PROGRAMS, *MCP_CLIENTS]
