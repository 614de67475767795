"""What nobody but the launcher may tell an engine, and the files that arguments name: those lie where models do.

Starts nothing. Looks at files only to see where a path leads.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Final

from luftpause.config.launcher_schema import LauncherModel
from luftpause.config.problems import shown
from luftpause.services.launcher.model_files import ModelFile, model_file

_PLACE: Final = frozenset(("--host", "--port", "--uds"))
_OWNED: Final[Mapping[str, frozenset[str]]] = {
    "llama.cpp": _PLACE
    | {"-m", "-mu", "-dr", "-a", "--alias", "--api-prefix", "--reuse-port", "--slot-save-path"}
    | {"-md", "--spec-draft-model", "--spec-draft-hf", "-mv", "-mmu", "--mmproj-url"},
    "vllm": _PLACE
    | {"--model", "--model-tag", "--served-model-name", "--config", "--headless", "--root-path"}
    | {"--speculative-config", "-sc", "--spec-model", "--default-mm-loras", "--grpc", "--grpc-port"},
    "sglang": _PLACE
    | {"--model", "--model-path", "--served-model-name", "--config", "--fastapi-root-path", "--decrypted-config-file"}
    | {"--speculative-draft-model-path", "--speculative-draft-model", "--decrypted-draft-config-file"}
    | {"--kt-weight-path", "--uno-lora-path", "--grpc-mode", "--smg-grpc-mode", "--encoder-only"},
    "ollama": frozenset(),
    "command": frozenset(),
}
"""Options that say which model is opened, what else is loaded and where it listens: ours to set."""
_OWNED_FORMS: Final[Mapping[str, re.Pattern[str]]] = {
    "llama.cpp": re.compile(r"--model.*|-hf.*|--hf-.*|--docker.*|--(fim|gpt-oss|embd|vision|tts)-.*-default"),
    "vllm": re.compile(r"--(speculative-config|spec-model|default-mm-loras)\..*|-sc\..*"),
}
"""Further ones: ready-made options that name a model to fetch, and the dotted ways to say an owned one."""
_SHUTS_OUT: Final[Mapping[str, frozenset[str]]] = {
    "llama.cpp": frozenset(("--api-key", "--api-key-file", "--ssl-key-file", "--ssl-cert-file")),
    "vllm": frozenset(("--api-key", "--ssl-keyfile", "--ssl-certfile")),
    "sglang": frozenset(("--api-key", "--admin-api-key", "--ssl-keyfile", "--ssl-certfile")),
}
"""With these an engine would not answer us: who may come in, our own doors say, and `launcher.api_key_env`."""
_ABBREVIATES: Final = frozenset(("vllm", "sglang"))
"""Their parsers take any beginning of an option for it."""
_OWNED_ENV: Final[Mapping[str, re.Pattern[str]]] = {
    "vllm": re.compile("VLLM_API_KEY"),
    "llama.cpp": re.compile(
        r"LLAMA_ARG_(MODEL|HF|DOCKER|SPEC_DRAFT_MODEL|SPEC_DRAFT_HF|HOST|PORT|REUSE_PORT|API_|ALIAS|SSL_).*"
        r"|LLAMA_ARG_(MMPROJ|MMPROJ_URL|CHAT_TEMPLATE_FILE)|LLAMA_API_KEY|HF_MODEL"
    ),
}
"""llama-server takes any of its options as a variable, too."""


class _Form(Enum):
    """How the value of an option names files."""

    ONE = "a path"
    SEVERAL = "paths between commas"
    SCALED = "the same, each perhaps with a colon and a scale"
    NAMED = "words up to the next option, each a path, or a name, an equals sign and a path"


_FILES: Final[Mapping[str, Mapping[str, _Form]]] = {
    "llama.cpp": {
        **dict.fromkeys(("--mmproj", "-mm", "--grammar-file", "--json-schema-file", "-jf"), _Form.ONE),
        **dict.fromkeys(("--chat-template-file", "-lcs", "--lookup-cache-static"), _Form.ONE),
        **dict.fromkeys(("-lcd", "--lookup-cache-dynamic"), _Form.ONE),
        **dict.fromkeys(("--lora", "--control-vector"), _Form.SEVERAL),
        **dict.fromkeys(("--lora-scaled", "--control-vector-scaled"), _Form.SCALED),
    },
    "vllm": {"--lora-modules": _Form.NAMED},
    "sglang": {"--lora-paths": _Form.NAMED},
}
_SCALE: Final = re.compile(r"(.*?)(:[-+.0-9eE]+)?", re.DOTALL)


class UnusableError(Exception):
    """What is wrong with one key of a model."""

    def __init__(self, key: str, what: str) -> None:
        super().__init__(what)
        self.key = key
        self.what = what


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineArguments:
    """What may be given to an engine.

    Attributes:
        words: the arguments, each file in them by the path that it has once all links are followed.
        files: those, to be looked at again before each start.
    """

    words: tuple[str, ...] = ()
    files: tuple[ModelFile, ...] = ()


def engine_arguments(model: LauncherModel, args: Sequence[str], model_dir: str) -> EngineArguments:
    """Return what a model's engine is given beside what the launcher gives it.

    Args:
        model: as declared.
        args: its arguments, with nothing left to fill in but the port.
        model_dir: the folder that the files must lie in, and that a relative path starts from.

    Raises:
        UnusableError: one of them, or a variable, is not for anybody else to say, or a file lies elsewhere.
    """
    owned = _OWNED_ENV.get(model.backend)
    for name in model.env:
        if owned is not None and owned.fullmatch(name):
            raise UnusableError("env", f"{shown(name)} is set by the launcher; use model_path, port, name or args")
    words: list[str] = []
    files: list[ModelFile] = []
    for is_value, form, word in _parted(model.backend, args):
        if form is None:
            if not is_value:
                _refuse_owned(model.backend, word)
            words.append(word)
            continue
        pieces = [_placed(piece, model_dir) for piece in _pieces(form, word)]
        words.append("".join(before + (str(file.path) if file else "") + after for before, file, after in pieces))
        files += [file for _, file, _ in pieces if file is not None]
    return EngineArguments(words=tuple(words), files=tuple(files))


def _parted(backend: str, args: Sequence[str]) -> Iterator[tuple[bool, _Form | None, str]]:
    """Yield each word, whether it is the value of an option of ours to look into, and how it names files."""
    forms = _FILES.get(backend, {})
    open_form: _Form | None = None
    for word in args:
        if open_form is not None and not (open_form is _Form.NAMED and word.startswith("-")):
            yield True, open_form, word
            open_form = open_form if open_form is _Form.NAMED else None
            continue
        option, equals, value = word.partition("=")
        open_form = next((form for name, form in forms.items() if _means(backend, option, name)), None)
        if open_form is None or not equals:
            yield False, None, word
            continue
        # Looked into as a word of its own, which every one of these programs takes as well.
        yield False, None, option
        yield True, open_form, value
        open_form = open_form if open_form is _Form.NAMED else None


def _means(backend: str, option: str, name: str) -> bool:
    """Say whether what was written is an option, or may be taken for it."""
    if option.startswith("--"):
        option = option.replace("_", "-")  # these programs take either
    is_begun = backend in _ABBREVIATES and option.startswith("--") and len(option) > len("--")
    return option == name or (is_begun and name.startswith(option))


def _refuse_owned(backend: str, word: str) -> None:
    option = word.partition("=")[0]
    forms = _OWNED_FORMS.get(backend)
    is_owned = any(_means(backend, option, name) for name in _OWNED[backend])
    if is_owned or (forms is not None and forms.fullmatch(option.replace("_", "-"))):
        raise UnusableError("args", f"{shown(word)} is set by the launcher; use model_path, port or name")
    if any(_means(backend, option, name) for name in _SHUTS_OUT.get(backend, ())):
        what = f"{shown(word)} would shut the launcher out; engines get their key from launcher.api_key_env"
        raise UnusableError("args", what)


def _pieces(form: _Form, value: str) -> Iterator[tuple[str, str, str]]:
    """Yield what stands before each path, the path, and what stands after it."""
    if form is _Form.ONE:
        yield "", value, ""
    elif form is _Form.NAMED:
        name, equals, path = value.rpartition("=")
        yield name + equals, path, ""
    else:
        for number, part in enumerate(value.split(",")):
            found = _SCALE.fullmatch(part) if form is _Form.SCALED else None
            path, scale = (found[1], found[2] or "") if found is not None else (part, "")
            yield "," if number else "", path, scale


def _placed(piece: tuple[str, str, str], model_dir: str) -> tuple[str, ModelFile | None, str]:
    before, path, after = piece
    file = model_file(path, model_dir, None)
    fault = "a path is missing" if file is None else file.fault()
    if fault:
        raise UnusableError("args", fault)
    return before, file, after
