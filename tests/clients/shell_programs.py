"""Programs for a terminal that mark no sub-agents: one conversation with a call of a shell."""

import json
from typing import Final

from clients.case import MODEL, Case

PI_WIRES: Final = {
    "chat": ("openai-completions", "/v1"),
    "responses": ("openai-responses", "/v1"),
    "messages": ("anthropic-messages", ""),
}
PI_MODEL: Final = {
    "id": MODEL,
    "name": MODEL,
    "input": ["text"],
    "contextWindow": 100_000,
    "maxTokens": 1_000,
    "reasoning": False,
    "cost": {"input": 0, "output": 0, "cacheRead": 0, "cacheWrite": 0},
}


def pi(wire: str, wanted: str) -> Case:
    """Return a case of pi."""
    api, path = PI_WIRES[wire]
    provider = {"baseUrl": "{base}" + path, "apiKey": "x", "api": api, "models": [PI_MODEL]}
    return Case(
        name="pi",
        package="@mariozechner/pi-coding-agent",
        folder="pi",
        wire=wire,
        command=("pi", "-p", "--model", f"lp/{MODEL}", wanted),
        env={"PI_OFFLINE": "1"},
        files={".pi/agent/models.json": json.dumps({"providers": {"lp": provider}})},
    )


COPILOT_WIRES: Final = {"chat": "completions", "responses": "responses"}


def copilot(wire: str, wanted: str) -> Case:
    """Return a case of GitHub's Copilot CLI."""
    return Case(
        name="copilot",
        package="@github/copilot",
        folder="copilot",
        wire=wire,
        command=("copilot", "-p", wanted, "--allow-all"),
        env={
            "COPILOT_OFFLINE": "true",
            "COPILOT_AUTO_UPDATE": "false",
            "COPILOT_PROVIDER_BASE_URL": "{base}/v1",
            "COPILOT_PROVIDER_WIRE_API": COPILOT_WIRES[wire],
            "COPILOT_PROVIDER_API_KEY": "x",
            "COPILOT_MODEL": MODEL,
        },
    )


CONTINUE: Final = f"""
name: lp
version: 1.0.0
schema: v1
models:
  - {{name: {MODEL}, provider: openai, model: {MODEL}, apiBase: "{{base}}/v1", apiKey: x, capabilities: [tool_use]}}
"""


def continue_cli(wanted: str) -> Case:
    """Return a case of Continue's CLI."""
    return Case(
        name="continue",
        package="@continuedev/cli",
        folder="continue",
        wire="chat",
        command=("cn", "-p", "--auto", "--config", "config.yaml", wanted),
        env={"CONTINUE_TELEMETRY_ENABLED": "0"},
        files={"work/config.yaml": CONTINUE},
    )


def qwen(wanted: str) -> Case:
    """Return a case of Qwen Code."""
    return Case(
        name="qwen-code",
        package="@qwen-code/qwen-code",
        folder="qwen-code",
        wire="chat",
        command=("qwen", "-p", wanted, "--yolo"),
        env={"OPENAI_BASE_URL": "{base}/v1", "OPENAI_API_KEY": "x", "OPENAI_MODEL": MODEL},
        files={".qwen/settings.json": '{"security": {"auth": {"selectedType": "openai"}}}'},
    )


KILO: Final = {
    "autoupdate": False,
    "small_model": f"lp/{MODEL}",
    "permission": {"*": "allow"},
    "provider": {
        "lp": {
            "npm": "@ai-sdk/openai-compatible",
            "options": {"baseURL": "{base}/v1", "apiKey": "x"},
            "models": {MODEL: {}},
        }
    },
}


def kilo(wanted: str) -> Case:
    """Return a case of Kilo Code's CLI."""
    return Case(
        name="kilo",
        package="@kilocode/cli",
        folder="kilo",
        wire="chat",
        command=("kilo", "run", "--auto", "-m", f"lp/{MODEL}", "--title", "t", wanted),
        env={"OPENCODE_DISABLE_MODELS_FETCH": "1"},
        files={"work/opencode.json": json.dumps(KILO)},
    )


LLM_MODELS: Final = f"""
- model_id: door
  model_name: {MODEL}
  api_base: "{{base}}/v1"
  supports_tools: true
"""


def llm() -> Case:
    """Return a case of `llm`, which calls a function of its command line."""
    function = "def get_weather(city: str) -> str:\n    return 'sunny'"
    return Case(
        name="llm",
        package="llm",
        folder="llm",
        wire="chat",
        calls=4,
        command=("llm", "-m", "door", "--functions", function, "Weather? [tools:2] [parallel:2]"),
        env={"OPENAI_API_KEY": "x"},
        files={".config/io.datasette.llm/extra-openai-models.yaml": LLM_MODELS},
    )
