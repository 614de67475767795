"""Our own llama.cpp server when it cannot serve: one line, and a status that says so. Needs no library."""

import importlib
import socket
from pathlib import Path
from types import SimpleNamespace

import pytest

from luftpause.adapters.llama_cpp.server import UnusableError, main, options_of, serve


def gguf(tmp_path: Path) -> str:
    path = tmp_path / "model.gguf"
    path.write_bytes(b"GGUF" + bytes(64))
    return str(path)


@pytest.fixture(autouse=True)
def _stay_alive_without_the_parent(monkeypatch: pytest.MonkeyPatch) -> None:
    """`main` runs in the test's own process here."""


def complaint(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> str:
    assert main(arguments) == 1
    (line,) = capsys.readouterr().err.splitlines()
    return line


def test_a_missing_model_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = str(tmp_path / "none.gguf")
    assert complaint(["-m", path, "--port", "1"], capsys) == (
        f"error: cannot read model '{path}': No such file or directory"
    )


def test_a_file_that_is_no_model_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "text"
    path.write_bytes(b"hello")
    assert complaint(["-m", str(path), "--port", "1"], capsys) == f"error: '{path}' is no GGUF file"


def test_a_taken_port_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        line = complaint(["-m", gguf(tmp_path), "--port", str(port)], capsys)
    assert line.startswith(f"error: cannot listen on 127.0.0.1:{port}: ")


@pytest.mark.parametrize("port", ["0", "-1", "99999"])
def test_a_port_that_is_none_is_refused(port: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    line = complaint(["-m", gguf(tmp_path), "--port", port], capsys)
    assert line == f"error: there is no port {port}; expected 1 to 65535"


@pytest.mark.parametrize("arguments", [["--bogus"], ["--met"], ["--port", "x"]])
def test_options_that_it_does_not_know_are_refused(
    arguments: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as caught:
        main(["-m", gguf(tmp_path), "--port", "1", *arguments])
    assert caught.value.code == 2
    assert "error:" in capsys.readouterr().err


def test_a_missing_library_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def absent(name: str) -> None:
        raise ModuleNotFoundError(f"No module named {name!r}")

    monkeypatch.setattr(importlib, "import_module", absent)
    with pytest.raises(UnusableError, match="xllamacpp is not installed"):
        serve(options_of(["-m", gguf(tmp_path), "--port", "1"]))


class FakeLibrary:
    """Remembers what it was asked to serve; `broken` refuses to."""

    broken = False

    def __init__(self) -> None:
        self.params = SimpleNamespace(
            model=SimpleNamespace(), cpuparams=SimpleNamespace(), sampling=SimpleNamespace(temp=0.8), cache_ram_mib=8192
        )

    def CommonParams(self) -> SimpleNamespace:
        return self.params

    def Server(self, params: SimpleNamespace) -> SimpleNamespace:
        if self.broken:
            raise RuntimeError("Failed to init server")
        return SimpleNamespace(listening_address=f"http://{params.hostnames[0]}:{params.port}")


@pytest.fixture
def library(monkeypatch: pytest.MonkeyPatch) -> FakeLibrary:
    fake = FakeLibrary()
    monkeypatch.setattr(importlib, "import_module", lambda name: fake)
    return fake


def test_options_reach_the_library(tmp_path: Path, library: FakeLibrary) -> None:
    template = tmp_path / "template.jinja"
    template.write_text("{{ messages }}", encoding="utf-8")
    words = f"-m {gguf(tmp_path)} --port 8123 --alias small --parallel 2 -c 512 -t 3 --temp 0.1 --cache-ram 0"
    served = serve(options_of([*words.split(), "--metrics", "--jinja", "--chat-template-file", str(template)]))
    assert served.listening_address == "http://127.0.0.1:8123"
    params = library.params
    assert (params.n_parallel, params.n_ctx, params.cpuparams.n_threads) == (2, 512, 3)
    assert (params.endpoint_metrics, params.endpoint_slots, params.use_jinja) == (True, False, True)
    assert (params.model_alias, params.sampling.temp, params.cache_ram_mib) == ({"small"}, 0.1, 0)
    assert params.chat_template == "{{ messages }}"


def test_a_key_comes_from_the_environment_as_with_the_program(
    tmp_path: Path, library: FakeLibrary, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LLAMA_API_KEY", "secret")
    serve(options_of(["-m", gguf(tmp_path), "--port", "1"]))
    assert library.params.api_keys == ["secret"]


def test_the_librarys_own_defaults_stand_where_nothing_was_said(tmp_path: Path, library: FakeLibrary) -> None:
    serve(options_of(["-m", gguf(tmp_path), "--port", "1"]))
    assert (library.params.sampling.temp, library.params.cache_ram_mib) == (0.8, 8192)
    assert not hasattr(library.params, "chat_template")
    assert not hasattr(library.params, "model_alias")


def test_a_template_that_cannot_be_read_is_told(tmp_path: Path, library: FakeLibrary) -> None:
    options = options_of(["-m", gguf(tmp_path), "--port", "1", "--chat-template-file", str(tmp_path / "none")])
    with pytest.raises(UnusableError, match="cannot read chat template"):
        serve(options)
    assert library.params.port == 1


def test_a_library_that_refuses_is_told(
    tmp_path: Path, library: FakeLibrary, capsys: pytest.CaptureFixture[str]
) -> None:
    library.broken = True
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = str(free.getsockname()[1])
    line = complaint(["-m", gguf(tmp_path), "--port", port], capsys)
    assert line == "error: llama.cpp did not start: Failed to init server"
