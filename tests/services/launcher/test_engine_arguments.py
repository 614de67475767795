"""What nobody may slip into an engine's command line, and where the files lie that it names."""

from pathlib import Path

import msgspec
import pytest

from luftpause.config.launcher_schema import LauncherModel
from luftpause.services.launcher.engine_arguments import EngineArguments, UnusableError, engine_arguments


def given(backend: str, folder: Path, *args: str, **env: str) -> EngineArguments:
    model = msgspec.convert({"name": "m", "backend": backend, "env": env}, LauncherModel)
    return engine_arguments(model, args, str(folder))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder of models with two files, beside one that is none of them, which a link in it leads to."""
    inside = tmp_path / "models"
    inside.mkdir()
    for name in ("a.gguf", "b.gguf"):
        (inside / name).touch()
    (tmp_path / "secret").touch()
    (inside / "link").symlink_to(tmp_path / "secret")
    return inside.resolve()


LLAMA_OWNED = [
    *("-m", "--model", "--model=/x", "--model-draft", "--model_draft", "-md", "-hf", "-hf=x/y", "--hf-repo", "-hff"),
    *("--hf_repo=x/y", "-hfr", "-hfd", "-hft", "--model-url", "-mu", "-dr", "--docker-repo", "--models-dir", "-mv"),
    *("--models-preset", "--spec-draft-model", "--spec-draft-hf", "--mmproj-url", "-mmu", "--fim-qwen-7b-default"),
    *("--embd-gemma-default", "--vision-gemma-4b-default", "--tts-oute-default", "--port=1", "--host", "-a"),
    *("--slot-save-path", "--api-prefix", "--reuse-port", "--hf-token", "--hf-repo-draft"),
]
VLLM_OWNED = [
    *("--model", "--mod=/x", "--served_model_name", "--speculative-config.model", "--speculative-config={}", "-sc"),
    *("-sc.model", "--spec-model", "--spec_model=x", "--default-mm-loras", "--config=x", "--uds", "--root-path"),
]
SGLANG_OWNED = [
    *("--model-path", "--model-p", "--model", "--speculative-draft-model-path=/x", "--speculative-draft-model"),
    *("--host", "--uno-lora-path", "--kt-weight-path", "--decrypted-config-file", "--grpc-mode", "--config"),
]


@pytest.mark.parametrize(
    ("backend", "word"),
    [
        *(("llama.cpp", word) for word in LLAMA_OWNED),
        *(("vllm", word) for word in VLLM_OWNED),
        *(("sglang", word) for word in SGLANG_OWNED),
    ],
)
def test_arguments_that_would_bring_in_another_model_or_move_the_engine_are_refused(
    folder: Path, backend: str, word: str
) -> None:
    with pytest.raises(UnusableError, match="is set by the launcher") as caught:
        given(backend, folder, "--verbose", word, "x")
    assert caught.value.key == "args"


@pytest.mark.parametrize(
    ("backend", "word"),
    [("llama.cpp", "--api-key"), ("llama.cpp", "--ssl_key_file"), ("vllm", "--api=x"), ("sglang", "--ssl-certfile")],
)
def test_an_engine_that_we_could_not_speak_to_is_not_started(folder: Path, backend: str, word: str) -> None:
    with pytest.raises(UnusableError, match="would shut the launcher out"):
        given(backend, folder, word, "x")


def test_arguments_that_only_look_alike_are_fine(folder: Path) -> None:
    assert given("llama.cpp", folder, "--mlock", "-mg", "0", "--embd-normalize", "2").words[-2:] == (
        "--embd-normalize",
        "2",
    )
    assert given("llama.cpp", folder, "--spec-default", "--spec-draft-n-max", "3").files == ()
    assert given("vllm", folder, "--max-model-len", "4096", "--model-impl", "auto").words[-1] == "auto"
    assert given("command", folder, "--model", "x", "--lora", "/etc/passwd").words[-1] == "/etc/passwd"


ONE = ["--mmproj", "-mm", "--lora", "--control-vector", "--grammar-file", "--json-schema-file", "-jf"]
ONE += ["--chat-template-file", "-lcs", "--lookup-cache-static", "-lcd", "--lookup-cache-dynamic", "--lora-scaled"]


@pytest.mark.parametrize("option", ONE)
@pytest.mark.parametrize("path", ["../secret", "link", "/etc/passwd", "none.gguf", ""])
def test_files_that_do_not_lie_where_models_do_are_refused(folder: Path, option: str, path: str) -> None:
    other = option if option.count("-") == 1 else f"--{option[2:].replace('-', '_')}"
    for args in ([option, path], [f"{option}={path}"], [other, path]):
        with pytest.raises(UnusableError, match=r"lies outside|there is no|path is missing") as caught:
            given("llama.cpp", folder, *args)
        assert caught.value.key == "args"


@pytest.mark.parametrize(
    ("backend", "args", "words"),
    [
        ("llama.cpp", ["--mmproj", "a.gguf", "--mlock"], ["--mmproj", "{}/a.gguf", "--mlock"]),
        ("llama.cpp", ["--lora=a.gguf"], ["--lora", "{}/a.gguf"]),
        ("llama.cpp", ["--lora", "a.gguf,{}/b.gguf"], ["--lora", "{}/a.gguf,{}/b.gguf"]),
        (
            "llama.cpp",
            ["--lora-scaled", "a.gguf:0.5,b.gguf:-1e2,a.gguf"],
            ["--lora-scaled", "{}/a.gguf:0.5,{}/b.gguf:-1e2,{}/a.gguf"],
        ),
        (
            "vllm",
            ["--lora-modules", "x=a.gguf", "y=b.gguf", "-tp", "2"],
            ["--lora-modules", "x={}/a.gguf", "y={}/b.gguf", "-tp", "2"],
        ),
        ("sglang", ["--lora-paths", "a.gguf", "y=b.gguf"], ["--lora-paths", "{}/a.gguf", "y={}/b.gguf"]),
    ],
)
def test_files_are_named_by_where_they_are(folder: Path, backend: str, args: list[str], words: list[str]) -> None:
    """So a link that is put there meanwhile leads the engine nowhere."""
    found = given(backend, folder, *(word.replace("{}", str(folder)) for word in args))
    assert found.words == tuple(word.replace("{}", str(folder)) for word in words)
    assert {file.path.name for file in found.files} <= {"a.gguf", "b.gguf"}
    assert found.files
    assert all(not file.fault() for file in found.files)


@pytest.mark.parametrize(
    ("backend", "args"),
    [
        ("llama.cpp", ["--lora", "a.gguf,../secret"]),
        ("llama.cpp", ["--lora-scaled", "a.gguf:1,../secret:0.5"]),
        ("llama.cpp", ["--control-vector-scaled", "link:0.5"]),
        ("vllm", ["--lora-modules", "x=a.gguf", "y=/etc/passwd"]),
        ("vllm", ["--lora_mod", "y=org/name"]),
        ("vllm", ["--lora-modules", '{"name": "x", "path": "/etc"}']),
        ("sglang", ["--lora-paths", "../secret"]),
    ],
)
def test_none_of_several_files_may_lie_elsewhere(folder: Path, backend: str, args: list[str]) -> None:
    with pytest.raises(UnusableError):
        given(backend, folder, *args)


@pytest.mark.parametrize(
    "name",
    [
        *("LLAMA_ARG_MODEL", "LLAMA_ARG_MODEL_URL", "LLAMA_ARG_MODELS_DIR", "LLAMA_ARG_HF_REPO", "LLAMA_ARG_HF_FILE"),
        *("LLAMA_ARG_HFD_REPO", "LLAMA_ARG_MODEL_DRAFT", "LLAMA_ARG_SPEC_DRAFT_MODEL", "LLAMA_ARG_SPEC_DRAFT_HF_REPO"),
        *("LLAMA_ARG_PORT", "LLAMA_ARG_HOST", "LLAMA_ARG_MMPROJ", "LLAMA_ARG_MMPROJ_URL", "LLAMA_ARG_DOCKER_REPO"),
        *("LLAMA_ARG_API_KEY_FILE", "LLAMA_API_KEY", "LLAMA_ARG_SSL_KEY_FILE", "LLAMA_ARG_CHAT_TEMPLATE_FILE"),
    ],
)
def test_variables_that_would_do_the_same_are_refused(folder: Path, name: str) -> None:
    with pytest.raises(UnusableError, match=f"'{name}' is set by the launcher") as caught:
        given("llama.cpp", folder, **{name: "x"})
    assert caught.value.key == "env"
    assert given("llama.cpp", folder, LLAMA_ARG_THREADS="1", LLAMA_ARG_MMPROJ_OFFLOAD="0").words == ()
    assert given("command", folder, **{name: "x"}).words == ()
