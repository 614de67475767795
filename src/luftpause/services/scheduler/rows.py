"""A table that is shown somewhere else: which of its rows changed since it was told there."""

from collections.abc import Iterable
from typing import TypeAlias

from luftpause.services.scheduler.models_json import Json

Update: TypeAlias = dict[str, object]
"""`rows`: those that changed, by key. `order`: all keys in order, where that changed; what is not in it is gone."""


class Rows:
    """Rows by key. Versions are given from outside and only grow."""

    def __init__(self) -> None:
        self._rows: dict[str, Json] = {}
        self._changed: dict[str, int] = {}
        self._order_changed = 0

    def put(self, rows: Iterable[tuple[str, Json]], version: int) -> bool:
        """Take in the table as it is now, with keys of their own; return whether anything changed."""
        new = dict(rows)
        anything = False
        for key, row in new.items():
            if self._rows.get(key) != row:
                self._changed[key] = version
                anything = True
        if list(new) != list(self._rows):
            for key in self._rows.keys() - new.keys():
                del self._changed[key]
            self._order_changed = version
            anything = True
        self._rows = new
        return anything

    def since(self, version: int) -> Update:
        """Return what changed after a version; 0 is before everything."""
        update: Update = {}
        changed = {key: self._rows[key] for key, at in self._changed.items() if at > version}
        if changed:
            update["rows"] = changed
        if self._order_changed > version:
            update["order"] = list(self._rows)
        return update
