from luftpause.core.model.ids import ToolCallId
from luftpause.core.model.marks import call_marks, key_mark, named_marks, session_mark
from luftpause.core.model.turns import IdentityKeys


def test_no_two_kinds_of_marks_meet() -> None:
    assert len({*call_marks([ToolCallId("x")]), session_mark("x"), key_mark("x")}) == 3


def test_a_request_names_its_session_and_its_cache_key() -> None:
    assert named_marks(IdentityKeys(session="s", cache_key="k")) == (session_mark("s"), key_mark("k"))
    assert named_marks(IdentityKeys(tool_calls=(ToolCallId("x"),))) == ()
