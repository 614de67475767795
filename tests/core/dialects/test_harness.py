import pytest

from luftpause.core.dialects.harness import NO_SESSION, SESSION_CHARS_MAX, HarnessSession, harness_session


@pytest.mark.parametrize(
    ("headers", "session", "parent"),
    [
        ({b"x-claude-code-session-id": b"s"}, "claude-code:s:", ""),
        ({b"x-claude-code-session-id": b"s", b"x-claude-code-agent-id": b"a"}, "claude-code:s:a", "claude-code:s:"),
        ({b"session-id": b"s", b"thread-id": b"t"}, "codex:t", ""),
        ({b"session-id": b"s", b"thread-id": b"t", b"x-codex-parent-thread-id": b"p"}, "codex:t", "codex:p"),
        ({b"x-session-id": b"ses_1", b"x-session-affinity": b"ses_1"}, "session:ses_1", ""),
        ({b"x-session-id": b"ses_2", b"x-parent-session-id": b"ses_1"}, "session:ses_2", "session:ses_1"),
        ({b"session_id": b"pi"}, "session:pi", ""),
        ({b"x-affinity": b"vibe"}, "session:vibe", ""),
        ({b"x-litellm-session-id": b"oh"}, "session:oh", ""),
    ],
)
def test_each_harness_is_recognised_by_what_it_sends(headers: dict[bytes, bytes], session: str, parent: str) -> None:
    assert harness_session(headers) == HarnessSession(session=session, parent=parent)


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {b"session-id": b"of codex, shared by its sub-agents"},
        {b"x-parent-session-id": b"p"},
        {b"x-session-id": b""},
        {b"x-session-id": b"x" * (SESSION_CHARS_MAX + 1)},
        {b"x-session-id": b"\xff"},
        {b"x-session-id": b"a\tb"},
    ],
)
def test_nothing_else_names_a_session(headers: dict[bytes, bytes]) -> None:
    assert harness_session(headers) is NO_SESSION


def test_two_harnesses_never_share_a_session() -> None:
    same = [
        harness_session({name: b"x"}).session for name in (b"x-claude-code-session-id", b"thread-id", b"x-affinity")
    ]
    assert len(set(same)) == 3
