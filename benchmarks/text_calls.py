"""How long the search for tool calls in a reply takes: prose, code, and texts made to be slow. Milliseconds per reply.

.venv/bin/python benchmarks/text_calls.py
"""

import time
from statistics import median

from luftpause.core.dialects.text_calls.recover import recover

CHARS = 200_000
ROUNDS = 5
UNITS = {
    "prose": "It rains in Bergen, and nothing else happens there today. ",
    "prose with code and tags": "It rains in `Bergen`, and <b>nothing</b> else happens. ",
    "fenced blocks": '```json\n{"a": [1, 2]}\n```\n',
    "opening brackets": "[",
    "opening tags": "<tool_call>",
    "half of a call each": "<tool_call>{'name': ",
    "lonely backticks": "`\n",
    "calls in Python": "look(at='x');",
    "quotation marks": '"',
}


def milliseconds(text: str) -> float:
    """Return how long one search takes, the median of some."""
    took = []
    for _ in range(ROUNDS):
        began = time.perf_counter()
        recover(text, {"look"}.__contains__)
        took.append((time.perf_counter() - began) * 1000)
    return median(took)


def main() -> None:
    """Print a table."""
    print(f"| reply of {CHARS // 1000} kB | ms |\n| --- | --- |")
    for name, unit in UNITS.items():
        text = (unit * (CHARS // len(unit) + 1))[:CHARS]
        print(f"| {name} | {milliseconds(text):.1f} |")


if __name__ == "__main__":
    main()
