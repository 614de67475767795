"""Where the results of `luftpause bench` go. That they can go there is known before anything is measured."""

import tempfile
from dataclasses import dataclass
from pathlib import Path

import click

from luftpause.cli.files import PRINTED, write
from luftpause.testkit.bench.plots import plot
from luftpause.testkit.bench.results import WorkloadResult, file_name, has_curves, to_json


@dataclass(frozen=True, slots=True)
class Destination:
    """A file for the result of one workload, a folder for those of several, both or neither."""

    file: str | None
    folder: Path | None

    @classmethod
    def of(cls, file: str | None, folder: str | None) -> "Destination":
        """Return what the command line said.

        Raises:
            click.BadParameter: nothing can be written there.
        """
        if folder is not None:
            _try_folder(Path(folder))
        return cls(file, None if folder is None else Path(folder))

    @property
    def is_given(self) -> bool:
        """Whether anything is kept at all."""
        return self.file is not None or self.folder is not None

    @property
    def prints_json(self) -> bool:
        """Whether standard output belongs to the result, so that nothing else may be printed there."""
        return self.file == PRINTED

    def keep(self, result: WorkloadResult) -> None:
        """Write a result.

        Raises:
            CommandFailedError: it cannot be written any more; OSError where that is in the folder.
        """
        if self.file is not None:
            write(to_json(result), self.file)
        if self.folder is not None:
            file = self.folder / file_name(result)
            file.write_bytes(to_json(result))
            if has_curves(result):
                file.with_suffix(".svg").write_text(plot(result), encoding="utf-8")


def _try_folder(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise click.BadParameter(
            f"cannot write into {str(folder)!r}: {error.strerror}", param_hint="--results"
        ) from error
