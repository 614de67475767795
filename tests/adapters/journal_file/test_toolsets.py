from dataclasses import replace

from adapters.journal_file.journal_world import LOOK, Q, R, finished, spawned
from adapters.journal_file.test_reading import lines_of
from luftpause.adapters.journal_file.lines import VERSION
from luftpause.adapters.journal_file.reading import scan
from luftpause.adapters.journal_file.toolsets import REMEMBERED, Toolsets, digest_in, tools_in, toolset_of
from luftpause.core.model.ids import RunId

SEE = replace(LOOK, name="see", schema={"type": "object", "default": {"run": "run_r"}})


def test_a_list_comes_back_as_it_was_and_goes_by_what_it_holds() -> None:
    named = toolset_of((LOOK, SEE), VERSION)
    assert digest_in(named.line) == named.digest
    assert tools_in(named.line[:-1]) == (LOOK, SEE)
    assert toolset_of((LOOK, SEE), VERSION) == named
    assert toolset_of((SEE, LOOK), VERSION).digest != named.digest
    assert digest_in(lines_of(spawned(R))[0]) is None


def test_what_was_named_lately_is_not_written_out_again() -> None:
    toolsets = Toolsets(VERSION)
    first = toolsets.named((LOOK,))
    assert toolsets.named((replace(LOOK),)) is first
    for number in range(REMEMBERED):
        toolsets.named((replace(LOOK, name=f"look_{number}"),))
    assert toolsets.named((LOOK,)) == first


def test_a_run_whose_list_is_broken_or_missing_is_damaged_unless_it_is_over() -> None:
    done, other = RunId("run_done"), RunId("run_other")
    named, theirs = toolset_of((LOOK,), VERSION), toolset_of((SEE,), VERSION)
    runs = lines_of(*(replace(spawned(run), tools=()) for run in (R, Q, other)), toolset=named.digest)
    over = lines_of(replace(spawned(done), tools=()), finished(done), toolset=named.digest)
    mine = lines_of(replace(spawned(RunId("run_mine")), tools=()), toolset=theirs.digest)
    for broken in ((named.line.replace(b"Looks", b"Locks"),), ()):
        found = scan([*broken, theirs.line, *runs, *over, *mine])
        damaged = {run: bool(lines.damage) and not lines.is_over for run, lines in found.runs.items()}
        assert damaged == {R: True, Q: True, other: True, done: False, RunId("run_mine"): False}
        assert "its tools are missing" in found.runs[R].damage
    again = scan([named.line.replace(b"Looks", b"Locks"), named.line, *runs])
    assert not any(lines.damage for lines in again.runs.values()), "another copy does as well"
    assert again.runs[R].entries[0].event == replace(spawned(R), tools=(LOOK,))
