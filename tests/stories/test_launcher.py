"""Engines on demand, whole: turns start them, they go when idle, operators and other processes have their say."""

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx2
import pytest

from luftpause.adapters import process_table
from services.launcher.launcher_world import is_alive
from stories.launching import ENGINE, WAIT_S, ask, engines, launcher, luftpause, marked, model, models, until
from stories.programs import Program, launch, running
from stories.set_ups import FREE_PORTS, free_port, write


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Program]:
    folder = tmp_path_factory.mktemp("up")
    config = write(
        folder,
        FREE_PORTS,
        launcher(min_residency='"0s"', memory='"10GiB"'),
        '[[launcher.groups]]\nname = "one"\n',
        model("a", memory='"1GiB"', aliases='["short"]', pattern='"a-.*"', group='"one"'),
        model("b", memory='"1GiB"', group='"one"'),
        model("brief", ttl='"100ms"', memory='"1GiB"'),
        model("broken", command='["${python}", "-c", "print(\'no such tensor\'); raise SystemExit(1)", "${port}"]'),
        model("huge", memory='"11GiB"'),
    )
    with running(folder, "up", "up", "--config", config) as program:
        yield program


@pytest.fixture
def up(shared: Program) -> Program:
    """Everything in one process, with no model up. It takes seconds to start, so that stories share one."""
    url = shared.url("scheduler")
    for name in models(url):
        httpx2.post(f"{url}/models/{name}/unload?force=true", timeout=WAIT_S)
    until(lambda: {each["state"] for each in models(url).values()} == {"down"})
    return shared


def test_a_herd_for_a_cold_model_is_served_by_one_engine(up: Program) -> None:
    assert engines(up.process.pid) == []
    with ThreadPoolExecutor(20) as pool:
        names = ["a", "short", "a-large", "a"] * 5
        answers = list(pool.map(lambda name: ask(up, name), names))
    assert [answer.status_code for answer in answers] == [200] * 20
    assert len(engines(up.process.pid)) == 1
    state = models(up.url("scheduler"))["a"]
    assert (state["state"], state["replica"], state["memory_measured"]) == ("up", "a-1", True)


def test_models_of_a_group_that_swaps_take_turns(up: Program) -> None:
    with ThreadPoolExecutor(6) as pool:
        answers = list(pool.map(lambda name: ask(up, name), ["a", "b"] * 3))
    assert [answer.status_code for answer in answers] == [200] * 6
    assert len(engines(up.process.pid)) == 1


def test_an_idle_model_goes_and_comes_back_for_the_next_turn(up: Program) -> None:
    assert ask(up, "brief").status_code == 200
    until(lambda: models(up.url("scheduler"))["brief"]["state"] == "down")
    assert engines(up.process.pid) == []
    assert ask(up, "brief").status_code == 200


def test_a_broken_model_fails_its_waiters_once_and_is_then_left_alone(up: Program) -> None:
    with ThreadPoolExecutor(5) as pool:
        answers = list(pool.map(lambda _: ask(up, "broken"), range(5)))
    assert {answer.status_code for answer in answers} == {502}
    assert "no such tensor" in answers[0].json()["error"]["message"]
    while (answer := ask(up, "broken")).status_code == 502:
        pass
    assert answer.status_code == 503
    assert int(answer.headers["retry-after"]) >= 1
    assert answer.json()["error"]["code"] == "model_failing"


def test_what_cannot_fit_stops_nobody_and_says_need_and_budget(up: Program) -> None:
    assert ask(up, "a").status_code == 200
    answer = ask(up, "huge")
    assert (answer.status_code, answer.json()["error"]["code"]) == (503, "insufficient_memory")
    assert "11" in answer.json()["error"]["message"]
    assert models(up.url("scheduler"))["a"]["state"] == "up"


@pytest.mark.parametrize("name", ["../../etc/passwd", "A", "x\0y", "x" * 10_000])
def test_names_that_nobody_knows_start_nothing(up: Program, name: str) -> None:
    answer = ask(up, name)
    refused = (answer.status_code, answer.json()["error"]["code"])
    assert refused in ((404, "unknown_model"), (400, "bad_request"))
    assert engines(up.process.pid) == []
    assert "\0" not in up.output.read_text()


def test_an_operator_lists_loads_pins_reads_and_unloads(up: Program, tmp_path: Path) -> None:
    url = up.url("scheduler")

    def said(*arguments: str, code: int = 0) -> str:
        done = luftpause(tmp_path, "models", *arguments, "--url", url)
        assert done.returncode == code, done.stderr
        return done.stdout + done.stderr

    assert "huge" in said("list")
    assert said("load", "short").startswith("a: loading")
    until(lambda: models(url)["a"]["state"] == "up")
    assert said("pin", "a") == "a: up, pinned\n"
    assert said("unpin", "a") == "a: up\n"
    assert "fake engine" in said("logs", "a", "-n", "5") or said("logs", "a") != ""
    with httpx2.stream("GET", url + "/models/a/logs?follow&lines=1", timeout=WAIT_S) as stream:
        assert next(stream.iter_lines()).startswith("data: ")
    assert json.loads(said("list", "--json"))["models"][0]["name"] == "a"
    said("unload", "a", "--force")
    until(lambda: models(url)["a"]["state"] == "down")
    assert said("unload", "a").startswith("a: down")
    assert "no launcher serves model 'z'" in said("load", "z", code=1)
    assert httpx2.get(url + "/models/a/load", timeout=WAIT_S).status_code in (404, 405)
    assert httpx2.get(url + "/models/z", timeout=WAIT_S).status_code == 404
    assert models(url)["a"]["state"] == "down", "no GET changes anything"


def test_a_drain_waits_for_the_turn_in_flight_and_loses_none_of_it(up: Program) -> None:
    body = {"model": "a", "messages": [{"role": "user", "content": "x"}], "stream": True, "max_tokens": 50}
    with httpx2.stream("POST", up.url("dataplane") + "/v1/chat/completions", json=body, timeout=WAIT_S) as stream:
        lines = stream.iter_lines()
        next(lines)
        answer = httpx2.post(up.url("scheduler") + "/models/a/unload", timeout=WAIT_S).json()
        assert answer["state"] in ("draining", "stopping")
        assert [line for line in lines if line][-1] == "data: [DONE]"
    until(lambda: models(up.url("scheduler"))["a"]["state"] == "down")


def test_every_route_for_models_wants_the_token(tmp_path: Path) -> None:
    config = write(tmp_path, FREE_PORTS, launcher(), model("a"))
    with running(tmp_path, "up", "up", "--config", config, env={"LUFTPAUSE_TOKEN": "secret"}) as up:
        url = up.url("scheduler")
        asked = [("GET", "/models"), ("GET", "/models/a"), ("GET", "/models/a/logs")]
        asked += [("POST", f"/models/a/{what}") for what in ("load", "unload", "pin", "unpin")]
        for method, path in asked:
            assert httpx2.request(method, url + path, timeout=WAIT_S).status_code == 401
        key = {"authorization": "Bearer secret"}
        assert httpx2.post(url + "/models/a/load", headers=key, timeout=WAIT_S).status_code == 200


def test_engines_of_a_killed_launcher_are_gone_before_the_next_one_starts_its_own(tmp_path: Path) -> None:
    shell = '["sh", "-c", "exec 2>&1; \\"$0\\" -m luftpause fake-engine --port $1 --model m; true"'
    config = write(
        tmp_path,
        FREE_PORTS,
        launcher(adopt="false"),
        model("m", command=f'{shell}, "${{python}}", "${{port}}"]'),
    )
    up = launch(tmp_path, "up", "up", "--config", config)
    try:
        assert ask(up, "m").status_code == 200
        (wrapper,) = engines(up.process.pid)
        (child,) = engines(wrapper)
    finally:
        up.kill()
    until(lambda: not is_alive(wrapper))
    assert is_alive(child), "the kernel ended only the wrapper with its parent"
    bystander = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
    try:
        with running(tmp_path, "up", "up", "--config", config) as again:
            assert not is_alive(child)
            assert ask(again, "m").status_code == 200
            assert bystander.poll() is None
        assert list((tmp_path / "state/launcher").rglob("*.*")) == []
    finally:
        bystander.kill()
        bystander.wait()


@pytest.mark.skipif(not process_table.is_known(), reason="only Linux tells of its processes here")
def test_a_model_goes_on_over_a_kill_of_everything_in_one_process(tmp_path: Path) -> None:
    config = write(tmp_path, FREE_PORTS, launcher(), model("kept", ttl='"1h"'), model("stopped"))
    up = launch(tmp_path, "up", "up", "--config", config)
    try:
        assert [ask(up, name).status_code for name in ("kept", "stopped")] == [200] * 2
        before = marked(tmp_path)
    finally:
        up.kill()
    assert all(map(is_alive, before.values()))
    changed = model("stopped", env='{ OMP_NUM_THREADS = "1" }')
    assert write(tmp_path, FREE_PORTS, launcher(), model("kept", ttl='"1h"'), changed) == config
    with running(tmp_path, "up", "up", "--config", config) as again:
        url = again.url("scheduler")
        assert {name: each["state"] for name, each in models(url).items()} == {"kept": "up", "stopped": "down"}
        assert ask(again, "kept").status_code == 200
        assert marked(tmp_path) == {"kept-1": before["kept-1"]}
        assert not is_alive(before["stopped-1"]), "it would be started otherwise now"
        assert engines(again.process.pid) == [], "nothing was started anew"
        assert luftpause(tmp_path, "models", "unload", "kept", "--url", url).returncode == 0
        until(lambda: models(url)["kept"]["state"] == "down")
        assert not is_alive(before["kept-1"])
    assert [path for path in (tmp_path / "state/launcher").rglob("*") if path.is_file()] == []


@pytest.mark.skipif(not process_table.is_known(), reason="only Linux tells of its processes here")
def test_a_launcher_of_its_own_and_the_scheduler_each_outlive_a_kill_of_the_other(tmp_path: Path) -> None:
    link, http, door = (free_port() for _ in range(3))
    ports = f"[scheduler]\nport = {link}\nhttp_port = {http}\n[dataplane]\nport = {door}\n"
    slow = ENGINE.replace("]", ', "--token-ms", "20"]')
    config = write(tmp_path, ports, launcher(), model("m", preload="true", ttl='"never"', command=slow))
    url = f"http://127.0.0.1:{http}"
    scheduler = launch(tmp_path, "scheduler", "scheduler", "--config", config)
    own = launch(tmp_path, "launcher", "launcher", "--config", config)
    try:
        with running(tmp_path, "dataplane", "dataplane", "--config", config) as plane:
            until(lambda: models(url).get("m", {}).get("state") == "up")
            before = marked(tmp_path)
            assert httpx2.get(url + "/models/m/logs", timeout=WAIT_S).json()["lines"] != []
            body = {"model": "m", "messages": [{"role": "user", "content": "x"}], "stream": True, "max_tokens": 100}
            door_url = plane.url("dataplane") + "/v1/chat/completions"
            with httpx2.stream("POST", door_url, json=body, timeout=WAIT_S) as stream:
                lines = stream.iter_lines()
                next(lines)
                own.kill()
                own = launch(tmp_path, "launcher", "launcher", "--config", config)
                assert [line for line in lines if line][-1] == "data: [DONE]", "its engine was adopted in passing"
            until(lambda: models(url)["m"]["state"] == "up")
            scheduler.kill()
            scheduler = launch(tmp_path, "scheduler", "scheduler", "--config", config)
            until(lambda: models(url).get("m", {}).get("state") == "up")
            assert marked(tmp_path) == before
            assert ask(plane, "m").status_code == 200
            own.process.send_signal(signal.SIGTERM)
            until(lambda: models(url).get("m", {}).get("state", "down") == "down")
            assert own.process.wait(WAIT_S) == 0
            assert not any(map(is_alive, before.values()))
    finally:
        for program in (own, scheduler):
            program.process.terminate()
            program.process.wait(WAIT_S)


def test_the_end_refuses_what_is_held_lets_streams_drain_and_leaves_no_engine(tmp_path: Path) -> None:
    never = '["${python}", "-c", "import time; time.sleep(600)", "${port}"]'
    slow = ENGINE.replace("]", ', "--token-ms", "20"]')
    config = write(
        tmp_path,
        FREE_PORTS,
        launcher(memory='"10GiB"'),
        model("a", command=slow),
        *(model(name) for name in ("b", "c")),
        model("loading", command=never),
    )
    with running(tmp_path, "up", "up", "--config", config) as up, ThreadPoolExecutor(7) as pool:
        url, door = up.url("scheduler"), up.url("dataplane") + "/v1/chat/completions"
        assert [ask(up, name).status_code for name in "abc"] == [200] * 3
        began = threading.Barrier(3)

        def stream() -> str:
            body = {"model": "a", "messages": [{"role": "user", "content": "x"}], "stream": True, "max_tokens": 60}
            with httpx2.stream("POST", door, json=body, timeout=WAIT_S) as answer:
                lines = answer.iter_lines()
                next(lines)
                began.wait(WAIT_S)
                return [line for line in lines if line][-1]

        streams = [pool.submit(stream) for _ in range(2)]
        held = [pool.submit(ask, up, "loading") for _ in range(5)]
        until(lambda: models(url)["loading"]["leases"]["waiting"] == 5)
        began.wait(WAIT_S)
        pids = marked(tmp_path)
        assert set(pids) == {"a-1", "b-1", "c-1", "loading-1"}
        up.process.terminate()
        assert [each.result(WAIT_S).status_code for each in held] == [503] * 5
        assert [each.result(WAIT_S) for each in streams] == ["data: [DONE]"] * 2
        assert up.process.wait(WAIT_S) == 0
    assert not any(map(is_alive, pids.values()))
    assert [path for path in (tmp_path / "state/launcher").rglob("*") if path.is_file()] == []


def test_a_turn_for_a_name_that_is_routed_elsewhere_starts_only_the_engine_that_it_goes_to(tmp_path: Path) -> None:
    config = write(
        tmp_path,
        'default_model = "plain"\n',
        FREE_PORTS,
        '[heuristics]\nimages = "eyes"\n[[rules]]\nmodel = "gpt-.*"\nto = "ruled"\n',
        launcher(memory='"10GiB"'),
        *(model(name, memory='"1MiB"') for name in ("plain", "eyes", "ruled")),
    )
    with running(tmp_path, "up", "up", "--config", config) as up:

        def states() -> dict[str, str]:
            return {name: each["state"] for name, each in models(up.url("scheduler")).items()}

        answer = ask(up, "gpt-4o")
        assert (answer.status_code, answer.json()["model"]) == (200, "ruled")
        assert states() == {"plain": "down", "eyes": "down", "ruled": "up"}
        picture = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}
        body = {"model": "what", "messages": [{"role": "user", "content": [picture]}]}
        answer = httpx2.post(up.url("dataplane") + "/v1/chat/completions", json=body, timeout=WAIT_S)
        assert answer.json()["model"] == "eyes"
        assert ask(up, "claude").json()["model"] == "plain"
        assert ask(up, "eyes").json()["model"] == "eyes"


def test_a_catalogue_that_is_read_anew_touches_only_what_changed(tmp_path: Path) -> None:
    def settings(*parts: str) -> str:
        return write(tmp_path, FREE_PORTS, launcher(memory='"10GiB"'), *(model(part) for part in ("kept",)), *parts)

    def option(word: str) -> str:
        return ENGINE.replace("]", f', "--token-ms", "{word}"]')

    config = settings(model("changed", command=option("1")), model("dropped"))
    with running(tmp_path, "up", "up", "--config", config) as up:
        url = up.url("scheduler")
        assert [ask(up, name).status_code for name in ("kept", "changed", "dropped")] == [200] * 3
        before = {name: each["since_s"] for name, each in models(url).items()}
        assert len(before) == 3
        parts = (model("kept", ttl='"1h"'), model("changed", command=option("2")), model("added"))
        assert write(tmp_path, FREE_PORTS, launcher(), *parts) == config
        up.process.send_signal(signal.SIGUSR1)
        until(lambda: set(models(url)) == {"kept", "changed", "added"})
        until(lambda: models(url)["changed"]["state"] == "down")
        assert models(url)["kept"]["state"] == "up"
        assert 3500 < models(url)["kept"]["ttl_left_s"] <= 3600
        until(lambda: len(engines(up.process.pid)) == 1)
        assert [ask(up, name).status_code for name in ("changed", "added")] == [200] * 2
        assert ask(up, "dropped").status_code == 404
        (tmp_path / "luftpause.toml").write_text("[launcher]\nmodels = 7\n")
        up.process.send_signal(signal.SIGUSR1)
        until(lambda: "was not changed" in up.output.read_text())
        assert "launcher.models: expected a list of tables" in up.output.read_text()
        assert set(models(url)) == {"kept", "changed", "added"}


@pytest.mark.skipif(not process_table.is_known(), reason="only Linux tells who works here")
@pytest.mark.parametrize("comes_back", [False, True])
def test_an_engine_that_hangs_under_turns_is_ended_which_fails_them_and_no_other(
    tmp_path: Path, comes_back: bool
) -> None:
    """A stopped process is as hung as one can be: connections are taken, nothing is answered, nothing is done."""
    settings = launcher(silent_after='"1s"', auto_restart=str(comes_back).lower(), stop_grace='"500ms"')
    config = write(tmp_path, FREE_PORTS, settings, model("hangs"), model("lives"))
    body = {"model": "hangs", "messages": [{"role": "user", "content": "hi"}], "max_tokens": 100_000, "stream": True}
    with running(tmp_path, "up", "up", "--config", config) as up, ThreadPoolExecutor() as pool:
        url = up.url("scheduler")
        assert [ask(up, name).status_code for name in ("hangs", "lives")] == [200] * 2
        before = marked(tmp_path)
        with httpx2.stream("POST", up.url("dataplane") + "/v1/chat/completions", json=body, timeout=WAIT_S) as begun:
            pieces = begun.iter_raw()
            next(pieces)
            os.kill(before["hangs-1"], signal.SIGSTOP)
            waits = pool.submit(ask, up, "hangs")
            with pytest.raises(httpx2.RemoteProtocolError):
                list(pieces)
        failed = waits.result(WAIT_S)
        assert failed.status_code == 502
        # It broke; or, where it was a kept one, the turn was sent once more and refused.
        assert "connection" in failed.json()["error"]["message"]
        until(lambda: not is_alive(before["hangs-1"]))
        if comes_back:
            until(lambda: models(url)["hangs"]["state"] == "up")
        else:
            until(lambda: models(url)["hangs"]["state"] == "down")
            assert "hung: it answered no probe any more" in models(url)["hangs"]["why"]
        assert [ask(up, name).status_code for name in ("hangs", "lives")] == [200] * 2
        assert marked(tmp_path)["lives-1"] == before["lives-1"]
