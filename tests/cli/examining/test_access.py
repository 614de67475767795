import asyncio
from pathlib import Path

import pytest

from cli.examining.subjects import subject
from luftpause.cli.examining import access
from luftpause.cli.examining.doors import doors_of
from luftpause.cli.examining.findings import Finding, Grade

PUBLIC = '[dataplane]\nhost = "0.0.0.0"\n'
PRINCIPAL = '[[principals]]\nname = "ann"\ntoken_env = "ANN"\n'


def examined(folder: Path, text: str, env: dict[str, str]) -> list[Finding]:
    async def story() -> list[Finding]:
        async with subject(folder, text, env) as looked_at:
            return access.examined(looked_at, doors_of(looked_at.config), [])

    return asyncio.run(story())


@pytest.mark.parametrize(
    ("text", "env", "grade", "seen"),
    [
        ("", {}, Grade.NOTE, "whoever is on this machine"),
        ("", {"LUFTPAUSE_TOKEN": "abc"}, Grade.OK, "every door asks"),
        ("", {"LUFTPAUSE_TOKEN": "a b"}, Grade.ERROR, "no client can send"),
        (PUBLIC, {}, Grade.ERROR, "0.0.0.0 can be reached from other machines"),
        (PUBLIC, {"LUFTPAUSE_TOKEN": "abc"}, Grade.OK, "every door asks"),
    ],
)
def test_the_token_is_judged_by_who_can_reach_the_doors(
    tmp_path: Path, text: str, env: dict[str, str], grade: Grade, seen: str
) -> None:
    (found,) = examined(tmp_path, text, env)
    assert found.grade is grade
    assert seen in found.seen
    assert (found.mend == "") is (grade is Grade.OK)


def test_principals_need_tokens_of_their_own(tmp_path: Path) -> None:
    tokens = {"LUFTPAUSE_TOKEN": "abc", "ANN": "abc"}
    assert "each needs its own" in examined(tmp_path, PRINCIPAL, tokens)[1].seen
    assert examined(tmp_path, PRINCIPAL, {**tokens, "ANN": "def"})[1].grade is Grade.OK


@pytest.mark.parametrize("theirs", ["", "abc", "ö"])
def test_a_principal_s_token_is_mended_by_a_command_with_its_own_name(tmp_path: Path, theirs: str) -> None:
    found = examined(tmp_path, PRINCIPAL, {"LUFTPAUSE_TOKEN": "abc", "ANN": theirs})[1]
    assert (found.grade, found.mend) == (Grade.ERROR, "export ANN=$(openssl rand -hex 32)")
