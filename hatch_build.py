"""Compiles the hot path into a wheel, where that can be done. See docs/design/0024-compiled-hot-path.md.

LUFTPAUSE_COMPILE=0 leaves the wheel pure; =1 makes it an error that something for compiling is missing. An editable
install is never compiled: an edit must count.
"""

import os
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

sys.path.insert(0, str(Path(__file__).resolve().parent))

from native.build import CannotCompileError, compile_beside, modules


class CompileHook(BuildHookInterface[Any]):
    """Called by hatchling around the making of a wheel."""

    _made: Path | None = None

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Compile, and tell hatchling what else goes into the wheel."""
        wanted = os.environ.get("LUFTPAUSE_COMPILE", "")
        if version == "editable" or wanted == "0":
            return
        root = Path(self.root)
        made = self._made = Path(tempfile.mkdtemp(prefix="luftpause-wheel-"))
        shutil.copytree(root / "src" / "luftpause", made / "package" / "luftpause")
        try:
            libraries = compile_beside(made / "package", made / "scratch", modules(root), self.app.display_warning)
        except CannotCompileError as error:
            if wanted == "1":
                raise
            self.app.display_warning(f"luftpause: a pure wheel, not compiled: {error}")
            return
        for library in libraries:
            build_data["force_include"][str(library)] = str(library.relative_to(made / "package"))
        build_data["pure_python"] = False
        build_data["infer_tag"] = True

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        """Drop what was made on the way."""
        if self._made is not None:
            shutil.rmtree(self._made, ignore_errors=True)
