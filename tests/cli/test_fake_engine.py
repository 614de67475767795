"""The fake-engine command as a process."""

import json
import signal
from pathlib import Path

import pytest
from click.testing import CliRunner

from adapters import raw_client as raw
from adapters.raw_client import connected
from luftpause.cli.fake_engine import command
from luftpause.testkit.sim.scenario import shipped
from testkit.commands import END_S_MAX, finished, ready, started, stopped
from testkit.running import request, run


def test_it_says_where_it_listens_answers_there_and_ends_on_a_signal(tmp_path: Path) -> None:
    file = tmp_path / "ready.json"
    options = ("--port", "0", "--model", "a", "--model", "b", "--metrics-style", "sglang", "--ready-file", str(file))
    with started("fake-engine", *options) as process:
        told = ready(process, file)
        assert told["pid"] == process.pid
        _, _, models = run(request(f"{told['engine']}/v1/models"))
        assert [model["id"] for model in json.loads(models)["data"]] == ["a", "b"]
        assert b"sglang:num_running_reqs" in run(request(f"{told['engine']}/metrics"))[2]
        assert stopped(process) == 0


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_stream_under_way_does_not_keep_it(tmp_path: Path, number: signal.Signals) -> None:
    file = tmp_path / "ready.json"
    with started("fake-engine", "--port", "0", "--ready-file", str(file)) as process:
        url = str(ready(process, file)["engine"])

        async def listen() -> bytes:
            body = b'{"model":"fake-1b","stream":true,"messages":[{"role":"user","content":"[stall]"}]}'
            async with connected(url) as client:
                client.send(raw.request(b"POST", b"/v1/chat/completions", b"connection: close", body=body))
                assert (await client.head()).status == 200
                begun = await client.chunk()
                process.send_signal(number)
                return begun + await client.reader.read()

        assert b"[DONE]" not in run(listen())
        assert process.wait(timeout=END_S_MAX) == 0


def test_a_taken_port_is_one_line_and_exit_code_1(tmp_path: Path) -> None:
    file = tmp_path / "ready.json"
    with started("fake-engine", "--port", "0", "--ready-file", str(file)) as process:
        port = str(ready(process, file)["engine"]).rpartition(":")[2]
        second = finished("fake-engine", "--port", port)
    assert second.returncode == 1
    assert len(second.stderr.strip().splitlines()) == 1
    assert port in second.stderr


@pytest.mark.parametrize("options", [("--slots", "0"), ("--metrics-style", "x"), ("--token-ms", "-1"), ("--nope",)])
def test_wrong_options_are_exit_code_2(options: tuple[str, ...]) -> None:
    assert CliRunner().invoke(command, options).exit_code == 2


def test_times_are_given_in_milliseconds_and_sped_up(tmp_path: Path) -> None:
    file = tmp_path / "ready.json"
    # An hour to the first token, and a million times as fast: only a minute if milliseconds were taken for seconds.
    options = ("--ttft-ms", "3600000", "--token-ms", "3600000", "--speedup", "1000000", "--ready-file", str(file))
    with started("fake-engine", "--port", "0", *options) as process:
        url = str(ready(process, file)["engine"])
        data = b'{"model":"fake-1b","messages":[{"role":"user","content":"t [tokens:3]"}]}'
        status, _, _ = run(request(f"{url}/v1/chat/completions", method="POST", body=data))
        assert status == 200


def test_figures_come_from_a_scenario_and_what_else_is_said_counts(tmp_path: Path) -> None:
    file, scenario = tmp_path / "ready.json", tmp_path / "mine.toml"
    scenario.write_text(shipped()["w1"].replace("kv_tokens = 40_000", "kv_tokens = 48_000"))
    options = ("--figures", str(scenario), "--speedup", "10", "--metrics-style", "sglang")
    with started("fake-engine", "--port", "0", *options, "--ready-file", str(file)) as process:
        url = str(ready(process, file)["engine"])
        page = run(request(f"{url}/metrics"))[2]
    assert b"sglang:max_total_num_tokens{" in page
    assert b"} 48000.0\n" in page


@pytest.mark.parametrize(
    ("options", "code", "says"),
    [
        (("--figures", "w1", "--slots", "3"), 2, "--slots"),
        (("--figures", "w1", "--token-ms", "10"), 2, "--token-ms"),
        (("--queue", "random"), 2, "priority"),
        (("--reserve", "1.5"), 2, "1"),
    ],
)
def test_figures_are_said_once_and_make_sense(options: tuple[str, ...], code: int, says: str) -> None:
    result = CliRunner().invoke(command, options)
    assert result.exit_code == code
    assert says in result.output


def test_an_unknown_scenario_is_one_line_that_names_those_there_are() -> None:
    result = finished("fake-engine", "--figures", "w9")
    assert result.returncode == 2
    assert "w7-faults" in result.stderr
    assert len(result.stderr.strip().splitlines()) == 1


@pytest.mark.parametrize(("options", "same"), [((), False), (("--seed", "7"), True)])
def test_two_engines_give_different_ids_unless_their_seed_is_the_same(
    tmp_path: Path, options: tuple[str, ...], same: bool
) -> None:
    data = b'{"model":"fake-1b","messages":[{"role":"user","content":"t [tokens:1]"}]}'
    ids = []
    for name in ("one", "two"):
        file = tmp_path / name
        with started("fake-engine", "--port", "0", *options, "--ready-file", str(file)) as process:
            url = str(ready(process, file)["engine"])
            _, _, body = run(request(f"{url}/v1/chat/completions", method="POST", body=data))
            ids.append(json.loads(body)["id"])
    assert (ids[0] == ids[1]) is same
