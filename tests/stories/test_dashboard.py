"""The dashboard asks for what is there: every metric that it names, with every label, in a real `/metrics`."""

import asyncio
import json
import re
import urllib.request
from functools import cache
from pathlib import Path

import pytest
from mcp import Client
from prometheus_client.parser import text_string_to_metric_families

from stories.programs import running
from stories.raw_wire import chat_body
from stories.set_ups import FREE_PORTS, MODEL, replicas, tools, write

pytestmark = [pytest.mark.timeout(120), pytest.mark.slow]
DASHBOARD = Path(__file__).parents[2] / "deploy/grafana/luftpause.json"
NAME = re.compile(r"\bluftpause_[a-z_]+")
GROUPED = re.compile(r"\bby \(([a-z_, ]+)\)")
SUFFIXES = {"counter": ("_total",), "histogram": ("_bucket", "_sum", "_count"), "gauge": ("",)}


@cache
def queries() -> tuple[str, ...]:
    panels = json.loads(DASHBOARD.read_text(encoding="utf-8"))["panels"]
    return tuple(target["expr"] for panel in panels for target in panel.get("targets", ()))


async def work(runtime: str) -> None:
    async with Client(runtime + "/mcp") as client:
        arguments: dict[str, object] = {"task": "[tools:1] look at the sky", "model": MODEL}
        result = await asyncio.wait_for(client.call_tool("run", arguments), 60)
        assert not result.is_error, result.content


@pytest.fixture(scope="module")
def shown(tmp_path_factory: pytest.TempPathFactory) -> dict[str, set[str]]:
    """The labels of each name in the metrics of all services that have done some work."""
    directory = tmp_path_factory.mktemp("dashboard")
    found: dict[str, set[str]] = {}
    with running(directory, "engine", "fake-engine", "--port", "0", "--model", MODEL) as engine:
        config = write(directory, FREE_PORTS, replicas(engine.url("engine")), tools(0))
        with running(directory, "up", "up", "--config", config) as up:
            headers = {"content-type": "application/json"}
            request = urllib.request.Request(up.url("dataplane") + "/v1/chat/completions", chat_body(), headers)
            with urllib.request.urlopen(request, timeout=30) as answer:
                answer.read()
            asyncio.run(work(up.url("runtime")))
            for url in up.services.values():
                with urllib.request.urlopen(url + "/metrics", timeout=10) as answer:
                    page = answer.read().decode()
                for family in text_string_to_metric_families(page):
                    for suffix in SUFFIXES[family.type]:
                        found.setdefault(family.name + suffix, set())
                    for sample in family.samples:
                        found.setdefault(sample.name, set()).update(sample.labels)
    return found


@pytest.mark.parametrize("query", queries())
def test_a_query_names_what_is_there(query: str, shown: dict[str, set[str]]) -> None:
    names = NAME.findall(query)
    assert names, query
    for name in names:
        assert name in shown, f"{name} is in no service's /metrics"
    asked = {label.strip() for group in GROUPED.findall(query) for label in group.split(",")}
    for name in names:
        assert not shown[name] or asked <= shown[name], (
            f"{name} has {sorted(shown[name])}, asked for is {sorted(asked)}"
        )


def test_every_panel_has_a_title_a_description_and_an_id_of_its_own() -> None:
    panels = json.loads(DASHBOARD.read_text(encoding="utf-8"))["panels"]
    assert len({panel["id"] for panel in panels}) == len(panels)
    assert all(panel["title"] and (panel["type"] == "row" or panel["description"]) for panel in panels)
