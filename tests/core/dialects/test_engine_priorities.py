"""Whether an engine takes priorities, and which way round."""

import pytest

from luftpause.core.dialects.engine_priorities import PATHS, priorities_in
from luftpause.core.model.replicas import EngineKind, Priorities

ON = '{"enable_priority_scheduling": true, "version": "0.5"}'
TURNED = '{"enable_priority_scheduling": true, "schedule_low_priority_values_first": true}'


@pytest.mark.parametrize(
    ("engine", "text", "expected"),
    [
        (EngineKind.SGLANG, ON, Priorities.HIGHER_FIRST),
        (EngineKind.SGLANG, TURNED, Priorities.LOWER_FIRST),
        (EngineKind.SGLANG, '{"enable_priority_scheduling": false}', None),
        (EngineKind.SGLANG, "{}", None),
        (EngineKind.VLLM, '{"vllm_config": {"scheduler_config": {"policy": "priority"}}}', Priorities.LOWER_FIRST),
        (EngineKind.VLLM, '{"vllm_config": {"scheduler_config": {"policy": "fcfs"}}}', None),
        (EngineKind.VLLM, '{"vllm_config": "a text, where it is told as one"}', None),
        (EngineKind.LLAMA_CPP, ON, None),
        (EngineKind.OPENAI, ON, None),
    ],
)
def test_only_what_says_so_takes_priorities(engine: EngineKind, text: str, expected: Priorities | None) -> None:
    assert priorities_in(engine, text) is expected


@pytest.mark.parametrize("engine", list(EngineKind))
@pytest.mark.parametrize("text", ["", "nonsense", "[1]", '{"vllm_config": 7}', "[" * 100_000, '"\ud800"'])
def test_nonsense_takes_none(engine: EngineKind, text: str) -> None:
    assert priorities_in(engine, text) is None


def test_only_engines_with_priorities_are_asked() -> None:
    assert set(PATHS) == {EngineKind.SGLANG, EngineKind.VLLM}
