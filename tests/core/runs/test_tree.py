from core.runs.run_builders import after, intended, returned, said, spawned
from luftpause.core.model.ids import RunId
from luftpause.core.runs.invariants import check
from luftpause.core.runs.tree import ancestors, descendants

FAMILY = (
    spawned("root"),
    spawned("a", parent="root"),
    spawned("b", parent="root"),
    spawned("a1", parent="a"),
)


def test_descendants_come_level_by_level_and_ancestors_upwards() -> None:
    state = after(*FAMILY).state
    assert [run.spawn.run for run in descendants(state, RunId("root"))] == ["a", "b", "a1"]
    assert [run.spawn.run for run in ancestors(state, RunId("a1"))] == ["a", "root"]


def test_a_whole_family_belongs_to_its_root() -> None:
    state = after(*FAMILY, spawned("other")).state
    assert {run: known.tree for run, known in state.runs.items()} == {
        "root": "root",
        "a": "root",
        "b": "root",
        "a1": "root",
        "other": "other",
    }


def test_work_counts_for_everybody_above() -> None:
    work = (said("", "c", run="a1"), intended("c", run="a1"), returned("c", run="a1", failed=True))
    state = after(*FAMILY, *work, said("x", run="b")).state
    check(state)
    totals = {run: (known.own.turns, known.subtree.turns) for run, known in state.runs.items()}
    assert totals == {"root": (0, 2), "a": (0, 1), "a1": (1, 1), "b": (1, 1)}
    assert state.runs[RunId("root")].subtree.failed_tool_calls == 1


def test_a_child_of_an_unknown_parent_is_a_root() -> None:
    state = after(spawned("lost", parent="nobody")).state
    check(state)
    assert state.runs[RunId("lost")].tree == "lost"
