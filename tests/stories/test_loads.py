"""What engines say of their health and their load, over real HTTP, and what is admitted on it."""

import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from stories.programs import Program, running
from stories.raw_wire import WAIT_S, Engine, ask, chat_body, soon, status, whole
from stories.set_ups import FREE_PORTS, write

pytestmark = pytest.mark.timeout(120)
MISSING = b"HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n"
OK = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok"
Pages = dict[str, str | threading.Event]

VLLM = "vllm:num_requests_running {}\nvllm:num_requests_waiting {}\n"
SGLANG = "sglang:num_running_reqs {}\nsglang:num_queue_reqs {}\n"
LLAMA = "llamacpp:requests_processing {}\nllamacpp:requests_deferred {}\n"


def pages(engine_pages: Pages) -> Callable[[bytes], bytes | None]:
    """Answer GETs from a table that a test may change; an event blocks its page until it is set."""

    def get(head: bytes) -> bytes | None:
        page = engine_pages.get(head.split(b" ")[1].decode())
        if isinstance(page, threading.Event):
            page.wait(30)
            return MISSING
        return MISSING if page is None else whole(page.encode())

    return get


def replica(up: Program, name: str = "a") -> dict[str, object]:
    [found] = [each for each in status(up.url("scheduler"))["replicas"] if each["name"] == name]
    return found


def declared(url: str, *lines: str, name: str = "a") -> str:
    return "\n".join(("[[replicas]]", f'name = "{name}"', f'url = "{url}"', f'models = ["{name}"]', *lines, ""))


def load(running_: int, waiting: int) -> dict[str, int]:
    return {"running": running_, "waiting": waiting}


def test_a_blocked_report_means_unknown_load_and_never_a_dead_engine(tmp_path: Path) -> None:
    """Case 20: llama-server answers /metrics only between batches."""
    table: Pages = {"/health": "{}", "/metrics": LLAMA.format(1, 4)}
    with Engine(get=pages(table)) as engine:
        config = write(tmp_path, FREE_PORTS, declared(engine.url))
        arguments = ("up", "--config", config, "--set", "scheduler.probe_period=100ms")
        with running(tmp_path, "up", "up", *arguments[1:], "--set", "scheduler.probe_timeout=1s") as up:
            assert soon(lambda: replica(up)["load"] == load(1, 4))
            assert replica(up)["engine"] == "llama.cpp"
            blocked = threading.Event()
            table["/metrics"] = blocked
            assert soon(lambda: replica(up)["load"] is None)
            asked = len([head for head in engine.gets if head.startswith(b"GET /metrics")])
            assert soon(lambda: len([head for head in engine.gets if head.startswith(b"GET /metrics")]) > asked + 3)
            assert replica(up)["healthy"] is True
            assert replica(up)["capacity"] is None
            assert ask(up.url("dataplane"), chat_body(model="a")).status == 200
            blocked.set()
            table["/metrics"] = LLAMA.format(2, 0)
            assert soon(lambda: replica(up)["load"] == load(2, 0))
            assert "replica_down" not in up.output.read_text()


def test_a_router_has_the_load_of_the_engines_behind_it_whatever_they_are_and_although_one_is_down(
    tmp_path: Path,
) -> None:
    tables: list[Pages] = [{"/metrics": VLLM.format(3, 0)}, {"/metrics": SGLANG.format(4, 2)}, {}]
    behind = [Engine(get=pages(table)) for table in tables]
    router = Engine(get=pages({"/health": "{}", "/metrics": "smg_worker_requests_active 9\n"}))
    urls = ", ".join(f'"{engine.url}"' for engine in behind)
    config = write(tmp_path, FREE_PORTS, declared(router.url, 'engine = "router"', f"load_from = [{urls}]"))
    with running(tmp_path, "up", "up", "--config", config, "--set", "scheduler.probe_period=100ms") as up:
        assert soon(lambda: replica(up)["load"] == load(7, 2))
        assert replica(up)["capacity"] == 7
        tables[2]["/metrics"] = LLAMA.format(1, 1)
        assert soon(lambda: replica(up)["load"] == load(8, 3))
        behind[1].stop()
        assert soon(lambda: replica(up)["load"] == load(4, 1))
        assert replica(up)["healthy"] is True, "the router itself answers"
        tables[0]["/metrics"] = VLLM.format(3, 0)
        tables[2]["/metrics"] = LLAMA.format(1, 0)
        assert soon(lambda: replica(up)["capacity"] is None), "nothing queues anywhere"
    assert not [head for head in router.gets if b"/metrics" in head], "a router's own report is not its engines' load"


def test_one_rank_that_queues_caps_the_engine_at_what_all_its_ranks_run(tmp_path: Path) -> None:
    """Case 12: the engine chooses the rank, so a turn may meet the worst one."""
    report = (
        'sglang:num_running_reqs{dp_rank="0",tp_rank="0"} 2\nsglang:num_running_reqs{dp_rank="0",tp_rank="1"} 2\n'
        'sglang:num_running_reqs{dp_rank="1",tp_rank="0"} 3\n'
        'sglang:num_queue_reqs{dp_rank="0",tp_rank="0"} 0\nsglang:num_queue_reqs{dp_rank="1",tp_rank="0"} 6\n'
    )
    with Engine(get=pages({"/health": "{}", "/metrics": report})) as engine:
        config = write(tmp_path, FREE_PORTS, declared(engine.url))
        with running(tmp_path, "up", "up", "--config", config) as up:
            assert soon(lambda: replica(up)["load"] == load(5, 6))
            assert replica(up)["capacity"] == 5


def test_an_engine_that_reports_no_load_is_not_capped(tmp_path: Path) -> None:
    """Ollama: no report, and no /health either."""
    may_end, open_turns = threading.Event(), threading.Semaphore(0)

    def reply(_: bytes) -> bytes:
        open_turns.release()
        may_end.wait(WAIT_S)
        return whole()

    with Engine(reply=reply, get=pages({"/v1/models": "{}", "/metrics": VLLM.format(0, 5)})) as engine:
        config = write(tmp_path, FREE_PORTS, declared(engine.url, 'engine = "ollama"', 'health = "/v1/models"'))
        with running(tmp_path, "up", "up", "--config", config) as up:
            assert soon(lambda: bool(replica(up)["healthy"]))
            door = up.url("dataplane")
            turns = [threading.Thread(target=ask, args=(door, chat_body(model="a"))) for _ in range(20)]
            for turn in turns:
                turn.start()
            assert all(open_turns.acquire(timeout=WAIT_S) for _ in turns), "a turn was held"
            seen = replica(up)
            assert (seen["in_flight"], seen["capacity"], seen["load"]) == (20, None, None)
            may_end.set()
            for turn in turns:
                turn.join(WAIT_S)
    assert not [head for head in engine.gets if b"/metrics" in head]
