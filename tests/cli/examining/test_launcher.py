import sys
from pathlib import Path

from cli.examining.subjects import graded, told
from luftpause.cli.examining import launcher
from luftpause.cli.examining.findings import Grade

MODEL = '[[launcher.models]]\nname = "{name}"\nbackend = "command"\ncommand = [{command}, "${{port}}"]\n'


def model(name: str, command: str = '"sh"', more: str = "") -> str:
    return MODEL.format(name=name, command=command) + more


def test_models_that_could_be_started_are_told_with_what_they_need(tmp_path: Path) -> None:
    found = told(tmp_path, '[launcher]\nmemory = "1GiB"\n' + model("a", more='memory = "600MiB"\n'), launcher.examined)
    assert [(each.grade, each.seen) for each in found] == [
        (Grade.OK, "all models together need about 600 MiB of the 1,024 MiB of ram"),
        (Grade.OK, "a: sh, about 600 MiB of ram"),
    ]


def test_a_model_file_that_is_not_there_is_an_error(tmp_path: Path) -> None:
    text = f'[launcher]\nmodel_dir = "{tmp_path}"\n[[launcher.models]]\nname = "a"\nbackend = "vllm"\n'
    (found,) = told(tmp_path, text + 'model_path = "a.gguf"\n', launcher.examined)
    assert found.seen.startswith("launcher.models[0].model_path: there is no")
    assert str(tmp_path) in found.mend
    (found,) = told(tmp_path, text + 'model_path = "/etc/hostname"\n', launcher.examined)
    assert "lies outside launcher.model_dir" in found.seen


def test_a_program_that_is_not_installed_is_an_error(tmp_path: Path) -> None:
    (found,) = graded(told(tmp_path, model("a", '"no-such-program"'), launcher.examined), Grade.ERROR)
    assert found.seen == "a-1: there is no program no-such-program here"
    command = '"${python}", "-m", "no_such_package.serve"'
    (found,) = graded(told(tmp_path, model("b", command), launcher.examined), Grade.ERROR)
    assert found.seen == "b-1: there is no package no_such_package here"
    assert found.mend == f"{sys.executable} -m pip install no_such_package"


def test_room_is_compared_with_the_budget(tmp_path: Path) -> None:
    budget = '[launcher]\nmemory = "1GiB"\n'
    swapping = model("a", more='memory = "600MiB"\n') + model("b", more='memory = "700MiB"\n')
    assert "they will take turns" in told(tmp_path, budget + swapping, launcher.examined)[0].seen
    staying = swapping.replace('MiB"\n', 'MiB"\npersistent = true\n')
    (found,) = graded(told(tmp_path, budget + staying, launcher.examined), Grade.ERROR)
    assert found.seen.startswith("models that never make room need about 1,300 MiB")
    (found,) = graded(told(tmp_path, budget + model("c", more='memory = "2GiB"\n'), launcher.examined), Grade.ERROR)
    assert found.mend.startswith('launcher.memory = "2048MiB"')


def test_an_ollama_that_does_not_answer_is_an_error(tmp_path: Path) -> None:
    text = '[[launcher.models]]\nname = "a"\nbackend = "ollama"\nurl = "http://127.0.0.1:1"\n'
    (found,) = graded(told(tmp_path, text, launcher.examined), Grade.ERROR)
    assert found.mend == "ollama serve"


def test_without_models_there_is_nothing_to_look_at(tmp_path: Path) -> None:
    assert told(tmp_path, "", launcher.examined)[0].grade is Grade.NOTE
