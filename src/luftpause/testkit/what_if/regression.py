"""Least squares for a few unknowns that cannot be negative, and a way to leave out what is far off. Pure."""

import statistics
from collections.abc import Callable, Sequence
from typing import Final

Rows = Sequence[Sequence[float]]
Solve = Callable[[Rows, Sequence[float]], list[float]]

ROUNDS: Final = 3
FAR_OFF: Final = 3.0
"""Times the middle error."""
CLOSE: Final = 0.02
"""No error below it is far off."""
_PIVOT_MIN: Final = 1e-12


def robust(rows: Rows, targets: Sequence[float], solve: Solve) -> tuple[list[float], float]:
    """Solve, leave out what is far off, and solve again; return the unknowns and the middle error of all rows."""
    kept = list(range(len(rows)))
    for _ in range(ROUNDS):
        found = solve([rows[at] for at in kept], [targets[at] for at in kept])
        errors = [
            abs(sum(each * unknown for each, unknown in zip(row, found, strict=True)) - target)
            for row, target in zip(rows, targets, strict=True)
        ]
        middle = statistics.median(errors)
        kept = [at for at, error in enumerate(errors) if error <= max(CLOSE, FAR_OFF * middle)]
    return found, middle


def nonnegative(rows: Rows, targets: Sequence[float]) -> list[float]:
    """Return the unknowns that make `rows` times them closest to `targets`, none below 0.

    The most negative one is set to 0 until none is left: right for unknowns that all cost time.
    """
    width = len(rows[0])
    active = list(range(width))
    while active:
        solved = _solve(rows, targets, active)
        least = min(range(len(active)), key=lambda at: solved[at])
        if solved[least] >= 0:
            return [solved[active.index(at)] if at in active else 0.0 for at in range(width)]
        del active[least]
    return [0.0] * width


def _solve(rows: Rows, targets: Sequence[float], active: Sequence[int]) -> list[float]:
    """Solve the normal equations by elimination, columns scaled alike; an unknown that nothing tells of is 0."""
    scales = [max((abs(row[at]) for row in rows), default=0.0) or 1.0 for at in active]
    scaled = [[row[at] / scale for at, scale in zip(active, scales, strict=True)] for row in rows]
    size = len(active)
    matrix = [
        [sum(row[i] * row[j] for row in scaled) for j in range(size)]
        + [sum(row[i] * target for row, target in zip(scaled, targets, strict=True))]
        for i in range(size)
    ]
    for i in range(size):
        pivot = max(range(i, size), key=lambda at: abs(matrix[at][i]))
        matrix[i], matrix[pivot] = matrix[pivot], matrix[i]
        if abs(matrix[i][i]) < _PIVOT_MIN:
            continue
        for j in range(size):
            if j != i:
                factor = matrix[j][i] / matrix[i][i]
                matrix[j] = [a - factor * b for a, b in zip(matrix[j], matrix[i], strict=True)]
    return [matrix[i][size] / matrix[i][i] / scales[i] if abs(matrix[i][i]) >= _PIVOT_MIN else 0.0 for i in range(size)]
