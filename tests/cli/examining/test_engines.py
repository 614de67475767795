import asyncio
import socket
from pathlib import Path

from cli.examining.subjects import LOOK_S, answering, graded, subject, told
from luftpause.cli.examining import engines
from luftpause.cli.examining.findings import Finding, Grade
from luftpause.testkit.fake_engine.server import fake_engine
from luftpause.testkit.fake_engine.settings import MetricsStyle, Settings

REPLICA = '[[replicas]]\nname = "a"\nurl = "{url}"\nmodels = ["fake-1b"]\n'
VLLM_LOAD = "vllm:num_requests_running 1\nvllm:num_requests_waiting 2\n"


def of_a_fake_engine(folder: Path, text: str = REPLICA, settings: Settings | None = None) -> list[Finding]:
    async def story() -> list[Finding]:
        async with fake_engine(settings) as url, subject(folder, text.format(url=url)) as looked_at:
            return await engines.examined(looked_at)

    return asyncio.run(story())


def seen(findings: list[Finding]) -> str:
    return "\n".join(each.seen for each in findings)


def test_a_sound_engine_is_told_of_in_full(tmp_path: Path) -> None:
    found = of_a_fake_engine(tmp_path)
    assert graded(found, Grade.ERROR) == graded(found, Grade.WARNING) == []
    assert "is healthy: vllm" in seen(found)
    assert "a runs 0 requests and queues 0" in seen(found)
    assert "a serves all that is declared: fake-1b" in seen(found)
    assert "a speaks chat; the rest is translated" in seen(found)


def test_without_metrics_it_says_what_turns_them_on(tmp_path: Path) -> None:
    found = of_a_fake_engine(tmp_path, settings=Settings(metrics_style=MetricsStyle.NONE))
    (warning,) = graded(found, Grade.WARNING)
    assert "reports no load" in warning.seen
    ours = REPLICA + 'engine = "llama.cpp"\n'
    found = of_a_fake_engine(tmp_path, ours, Settings(metrics_style=MetricsStyle.NONE))
    assert "llama-server ... --metrics" in [each.mend for each in graded(found, Grade.WARNING)]


def test_a_model_that_is_not_served_is_an_error_with_those_that_are(tmp_path: Path) -> None:
    found = of_a_fake_engine(tmp_path, REPLICA.replace("fake-1b", "other"))
    (error,) = graded(found, Grade.ERROR)
    assert error.seen == "a is declared to serve other, and serves fake-1b"
    assert error.mend == 'models = ["fake-1b"]  (of [[replicas]] a)'


def test_one_that_is_not_there_is_an_error(tmp_path: Path) -> None:
    (found,) = told(tmp_path, REPLICA.format(url="http://127.0.0.1:1"), engines.examined)
    assert found.grade is Grade.ERROR
    assert "connection refused" in found.seen
    assert "correct url of [[replicas]] a" in found.mend


def test_one_that_hangs_is_not_waited_for(tmp_path: Path) -> None:
    async def story() -> list[Finding]:
        with socket.create_server(("127.0.0.1", 0)) as listener:
            url = f"http://127.0.0.1:{listener.getsockname()[1]}"
            async with subject(tmp_path, REPLICA.format(url=url), look_s=1.0) as looked_at:
                return await engines.examined(looked_at)

    (found,) = asyncio.run(story())
    assert "no answer from /health within 1 s" in found.seen


def test_the_way_out_follows_from_how_health_was_refused(tmp_path: Path) -> None:
    async def mend(answers: dict[str, tuple[int, str]], more: str, env: dict[str, str]) -> str:
        async with answering(answers) as (url, _), subject(tmp_path, REPLICA.format(url=url) + more, env) as looked_at:
            (found,) = await engines.examined(looked_at)
            return found.mend

    assert asyncio.run(mend({}, "", {})) == 'health = "/v1/models"  (of [[replicas]] a)'
    assert asyncio.run(mend({"/health": (401, "")}, "", {})) == 'api_key_env = "NAME"  (of [[replicas]] a)'
    assert asyncio.run(mend({}, 'api_key_env = "NO_SUCH_KEY"\n', {})) == "export NO_SUCH_KEY=..."


def test_what_an_engine_says_is_not_trusted(tmp_path: Path) -> None:
    answers = {"/health": (200, ""), "/metrics": (200, VLLM_LOAD), "/v1/models": (200, '{"data": [3]}')}

    async def story() -> list[Finding]:
        async with answering(answers) as (url, _), subject(tmp_path, REPLICA.format(url=url)) as looked_at:
            return await engines.examined(looked_at)

    found = asyncio.run(story())
    assert "does not list its models" in seen(found)
    assert graded(found, Grade.ERROR) == []


def test_without_replicas_nothing_is_asked(tmp_path: Path) -> None:
    (found,) = told(tmp_path, "", engines.examined, look_s=LOOK_S)
    assert found.grade is Grade.NOTE
