from luftpause.core.runs.tools import ToolHints, ToolSpec, find


def spec(name: str, server: str, tool: str) -> ToolSpec:
    return ToolSpec(name=name, server=server, tool=tool, description="", schema={})


def test_the_offered_name_wins_over_a_long_name_of_another_tool() -> None:
    plain, odd = spec("A", "odd", "A"), spec("odd__A", "odd", "odd__A")
    for tools in ([plain, odd], [odd, plain]):
        assert find(tools, "odd__A") is odd
        assert find(tools, "A") is plain
    assert find([plain], "odd__A") is plain


def test_a_long_name_that_two_tools_have_names_neither() -> None:
    tools = [spec("c", "a__b", "c"), spec("b__c", "a", "b__c")]
    assert tools[0].qualified == tools[1].qualified
    assert find(tools, "a__b__c") is None


def test_only_what_says_that_it_is_read_only_or_idempotent_is_repeatable() -> None:
    assert not spec("A", "s", "A").repeatable
    said = [ToolHints(read_only=True), ToolHints(idempotent=True), ToolHints(destructive=False)]
    assert [
        ToolSpec(name="A", server="s", tool="A", description="", schema={}, hints=hints).repeatable for hints in said
    ] == [True, True, False]
