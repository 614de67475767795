"""The clients that can be connected, and the recipe of each for each door it can use.

Names of files and keys are the clients' own. A recipe that says what was tried was run with that version against these
doors; the others follow the clients' documentation.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from luftpause.cli.connecting.steps import (
    Addresses,
    Advice,
    Command,
    Door,
    Format,
    Fragment,
    Recipe,
    Step,
    Variables,
)

CALLER: Final = "x-luftpause-caller"
NO_KEY: Final = "x"
"""Clients want a key even where none is asked for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Client:
    """A client: its name for people, and its recipes. `without` says why a door cannot be used from it."""

    title: str
    recipes: Callable[[Addresses], tuple[Recipe, ...]]
    without: str = ""


def _claude_code(at: Addresses) -> tuple[Recipe, ...]:
    variables = {
        "ANTHROPIC_BASE_URL": at.llm,
        "ANTHROPIC_MODEL": at.model,
        # Its first prompt block differs in every run and would keep runs from sharing a cached prefix.
        "CLAUDE_CODE_ATTRIBUTION_HEADER": "0",
        "ANTHROPIC_CUSTOM_HEADERS": f"{CALLER}: {at.caller}",
    }
    server: dict[str, object] = {"type": "http", "url": at.mcp, "headers": {CALLER: at.caller, **_bearer(at, "${%s}")}}
    return (
        Recipe(
            door=Door.LLM,
            steps=(_with_key(at, "ANTHROPIC_AUTH_TOKEN", variables),),
            tried="Claude Code 2.1.332",
        ),
        Recipe(
            door=Door.MCP,
            steps=(Fragment(path=".mcp.json", format=Format.JSON, content={"mcpServers": {"luftpause": server}}),),
            tried="Claude Code 2.1.332, which links its sub-agents to its own run",
        ),
    )


def _codex(at: Addresses) -> tuple[Recipe, ...]:
    provider: dict[str, object] = {
        "name": "luftpause",
        "base_url": f"{at.llm}/v1",
        "wire_api": "responses",
        "http_headers": {CALLER: at.caller},
    }
    server: dict[str, object] = {"url": at.mcp, "http_headers": {CALLER: at.caller}, "tool_timeout_sec": 660}
    if at.token_env:
        provider["env_key"] = at.token_env
        server["bearer_token_env_var"] = at.token_env
    file = "~/.codex/config.toml"
    content = {"model": at.model, "model_provider": "luftpause", "model_providers": {"luftpause": provider}}
    return (
        Recipe(
            door=Door.LLM,
            steps=(Fragment(path=file, format=Format.TOML, content=content),),
            tried="Codex CLI 0.171.0",
        ),
        Recipe(
            door=Door.MCP,
            steps=(Fragment(path=file, format=Format.TOML, content={"mcp_servers": {"luftpause": server}}),),
            tried="Codex CLI 0.171.0, which links its sub-agents to its own run",
        ),
    )


def _gemini_cli(at: Addresses) -> tuple[Recipe, ...]:
    variables = {
        "GOOGLE_GEMINI_BASE_URL": at.llm,
        "GEMINI_MODEL": at.model,
        "GEMINI_CLI_CUSTOM_HEADERS": f"{CALLER}:{at.caller}",
    }
    settings = "~/.gemini/settings.json"
    login = {"security": {"auth": {"selectedType": "gemini-api-key"}}}
    return (
        Recipe(
            door=Door.LLM,
            steps=(
                Fragment(path=settings, format=Format.JSON, content=login),
                _with_key(at, "GEMINI_API_KEY", variables),
            ),
            tried="Gemini CLI 0.61.0",
        ),
        Recipe(
            door=Door.MCP,
            steps=(
                Fragment(
                    path=settings,
                    format=Format.JSON,
                    content={"mcpServers": {"luftpause": {"httpUrl": at.mcp, "headers": _mcp_headers(at, "$%s")}}},
                ),
            ),
            tried="Gemini CLI 0.61.0",
        ),
    )


def _opencode(at: Addresses) -> tuple[Recipe, ...]:
    options: dict[str, object] = {
        "baseURL": f"{at.llm}/v1",
        "apiKey": f"{{env:{at.token_env}}}" if at.token_env else NO_KEY,
        "headers": {CALLER: at.caller},
    }
    provider = {
        "npm": "@ai-sdk/openai-compatible",
        "name": "luftpause",
        "options": options,
        "models": {at.model: {}},
    }
    server = {"type": "remote", "url": at.mcp, "enabled": True, "headers": _mcp_headers(at, "{env:%s}")}
    file = "opencode.json"
    return (
        Recipe(
            door=Door.LLM,
            steps=(
                Fragment(
                    path=file,
                    format=Format.JSON,
                    content={"provider": {"luftpause": provider}, "model": f"luftpause/{at.model}"},
                ),
            ),
            tried="opencode 1.18.33, with all four of its wire formats",
        ),
        Recipe(
            door=Door.MCP,
            steps=(Fragment(path=file, format=Format.JSON, content={"mcp": {"luftpause": server}}),),
            tried="opencode 1.18.33",
        ),
    )


def _goose(at: Addresses) -> tuple[Recipe, ...]:
    variables = {
        "GOOSE_PROVIDER": "openai",
        "GOOSE_MODEL": at.model,
        "OPENAI_HOST": at.llm,
        "OPENAI_CUSTOM_HEADERS": f"{CALLER}={at.caller}",
    }
    return (
        Recipe(door=Door.LLM, steps=(_with_key(at, "OPENAI_API_KEY", variables),)),
        Recipe(
            door=Door.MCP,
            steps=(Command(argv=("goose", "session", "--with-streamable-http-extension", at.mcp)), *_token_advice(at)),
        ),
    )


def _cursor(at: Addresses) -> tuple[Recipe, ...]:
    server = {"url": at.mcp, "headers": _mcp_headers(at, "${env:%s}")}
    return (
        Recipe(
            door=Door.MCP,
            steps=(
                Fragment(path="~/.cursor/mcp.json", format=Format.JSON, content={"mcpServers": {"luftpause": server}}),
            ),
        ),
    )


def _zed(at: Addresses) -> tuple[Recipe, ...]:
    provider = {
        "api_url": f"{at.llm}/v1",
        "available_models": [{"name": at.model, "max_tokens": 32768}],
        "custom_headers": {CALLER: at.caller},
    }
    file = "~/.config/zed/settings.json"
    key = f"the value of {at.token_env}" if at.token_env else "anything"
    return (
        Recipe(
            door=Door.LLM,
            steps=(
                Fragment(
                    path=file,
                    format=Format.JSON,
                    content={"language_models": {"openai_compatible": {"luftpause": provider}}},
                ),
                Advice(text=f"Zed wants a key for it: enter {key} in its agent settings, LLM Providers, luftpause"),
            ),
        ),
        Recipe(
            door=Door.MCP,
            steps=(
                Fragment(
                    path=file,
                    format=Format.JSON,
                    content={"context_servers": {"luftpause": {"url": at.mcp, "headers": {CALLER: at.caller}}}},
                ),
                *_token_advice(at),
            ),
        ),
    )


def _openhands(at: Addresses) -> tuple[Recipe, ...]:
    variables = {"LLM_MODEL": f"openai/{at.model}", "LLM_BASE_URL": f"{at.llm}/v1"}
    return (
        Recipe(
            door=Door.LLM,
            steps=(
                _with_key(at, "LLM_API_KEY", variables),
                Advice(text="start it with `openhands --override-with-envs`, or enter the same under Settings > LLM"),
            ),
        ),
        Recipe(
            door=Door.MCP,
            steps=(Advice(text=f"add {at.mcp} under Settings > MCP Servers (streamable HTTP)"), *_token_advice(at)),
        ),
    )


def _cline(at: Addresses) -> tuple[Recipe, ...]:
    key = f"${at.token_env}" if at.token_env else NO_KEY
    auth = ("cline", "auth", "-p", "openai-compatible", "-k", key, "-m", at.model, "-b", f"{at.llm}/v1")
    install = ("cline", "mcp", "install", "luftpause", at.mcp, "--transport", "http")
    header = ("--header", f"{CALLER}: {at.caller}", "--yes")
    return (
        Recipe(door=Door.LLM, steps=(Command(argv=auth), _in_the_editor(at)), tried="Cline CLI 3.0.65"),
        Recipe(door=Door.MCP, steps=(Command(argv=(*install, *header)), *_token_advice(at))),
    )


def _roo(at: Addresses) -> tuple[Recipe, ...]:
    server = {"type": "streamable-http", "url": at.mcp, "headers": _mcp_headers(at, "${env:%s}")}
    return (
        Recipe(door=Door.LLM, steps=(_in_the_editor(at),)),
        Recipe(
            door=Door.MCP,
            steps=(Fragment(path=".roo/mcp.json", format=Format.JSON, content={"mcpServers": {"luftpause": server}}),),
        ),
    )


def _qwen_code(at: Addresses) -> tuple[Recipe, ...]:
    file = "~/.qwen/settings.json"
    llm = {
        "security": {"auth": {"selectedType": "openai"}},
        "model": {"generationConfig": {"customHeaders": {CALLER: at.caller}}},
    }
    server = {"httpUrl": at.mcp, "headers": _mcp_headers(at, "$%s"), "timeout": 660_000}
    variables = {"OPENAI_BASE_URL": f"{at.llm}/v1", "OPENAI_MODEL": at.model}
    return (
        Recipe(
            door=Door.LLM,
            steps=(
                Fragment(path=file, format=Format.JSON, content=llm),
                _with_key(at, "OPENAI_API_KEY", variables),
            ),
            tried="Qwen Code 0.24.4",
        ),
        Recipe(
            door=Door.MCP,
            steps=(Fragment(path=file, format=Format.JSON, content={"mcpServers": {"luftpause": server}}),),
        ),
    )


def _copilot(at: Addresses) -> tuple[Recipe, ...]:
    variables = {
        "COPILOT_OFFLINE": "true",
        "COPILOT_PROVIDER_BASE_URL": f"{at.llm}/v1",
        "COPILOT_MODEL": at.model,
        "COPILOT_PROVIDER_HEADERS": f"{CALLER}: {at.caller}",
    }
    key = _with_key(at, "COPILOT_PROVIDER_API_KEY", variables)
    return (Recipe(door=Door.LLM, steps=(key,), tried="Copilot CLI 1.0.102"),)


def _aider(at: Addresses) -> tuple[Recipe, ...]:
    variables = {"OPENAI_API_BASE": f"{at.llm}/v1"}
    argv = ("aider", "--model", f"openai/{at.model}")
    steps = (_with_key(at, "OPENAI_API_KEY", variables), Command(argv=argv))
    return (Recipe(door=Door.LLM, steps=steps, tried="aider 0.86.2"),)


def _openai(at: Addresses) -> tuple[Recipe, ...]:
    variables = {"OPENAI_BASE_URL": f"{at.llm}/v1"}
    return (Recipe(door=Door.LLM, steps=(_with_key(at, "OPENAI_API_KEY", variables),), tried="openai 3"),)


def _anthropic(at: Addresses) -> tuple[Recipe, ...]:
    variables = {"ANTHROPIC_BASE_URL": at.llm}
    return (Recipe(door=Door.LLM, steps=(_with_key(at, "ANTHROPIC_API_KEY", variables),), tried="anthropic 2"),)


CLIENTS: Final[Mapping[str, Client]] = {
    "claude-code": Client(title="Claude Code", recipes=_claude_code),
    "codex": Client(title="Codex CLI", recipes=_codex),
    "gemini-cli": Client(title="Gemini CLI", recipes=_gemini_cli),
    "opencode": Client(title="opencode", recipes=_opencode),
    "goose": Client(title="Goose", recipes=_goose),
    "cursor": Client(
        title="Cursor",
        recipes=_cursor,
        without="Cursor calls an overridden base URL from its own servers, which cannot reach this machine",
    ),
    "zed": Client(title="Zed", recipes=_zed),
    "openhands": Client(title="OpenHands", recipes=_openhands),
    "cline": Client(title="Cline", recipes=_cline),
    "roo": Client(title="Roo Code", recipes=_roo),
    "qwen-code": Client(title="Qwen Code", recipes=_qwen_code),
    "copilot": Client(title="GitHub Copilot CLI", recipes=_copilot, without="use --additional-mcp-config for tools"),
    "aider": Client(title="aider", recipes=_aider, without="aider is no MCP client"),
    "openai": Client(title="the openai package, and what builds on it", recipes=_openai, without="it has no MCP door"),
    "anthropic": Client(
        title="the anthropic package, and what builds on it", recipes=_anthropic, without="it has no MCP door"
    ),
}
"""Each client by the name that the command line gives it."""


def _with_key(at: Addresses, key: str, values: Mapping[str, str]) -> Step:
    if at.token_env:
        return Variables(values=values, from_env={key: at.token_env})
    return Variables(values={**values, key: NO_KEY}, from_env={})


def _bearer(at: Addresses, reference: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {reference % at.token_env}"} if at.token_env else {}


def _mcp_headers(at: Addresses, reference: str) -> dict[str, str]:
    return {CALLER: at.caller, **_bearer(at, reference)}


def _token_advice(at: Addresses) -> tuple[Step, ...]:
    if not at.token_env:
        return ()
    return (Advice(text=f"the door wants a token: give it the value of {at.token_env} as a bearer token or API key"),)


def _in_the_editor(at: Addresses) -> Step:
    key = f"the value of {at.token_env}" if at.token_env else "anything"
    return Advice(
        text=(
            f'in the editor choose the provider "OpenAI Compatible" with the base URL {at.llm}/v1, the model'
            f" {at.model}, as API key {key}, and under custom headers {CALLER}: {at.caller}"
        )
    )
