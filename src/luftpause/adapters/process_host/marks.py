"""Marks of the processes that a launcher started, so that the next one finds those that outlived it.

A mark is a file with what no other process shares: the machine's boot, the process's id and start, and a word that all
its children carry in their environment. What does not carry the word is never touched, whatever its id. The file is
called by the word, so that a damaged one still leads to its processes.
"""

import contextlib
import errno
import fcntl
import logging
import os
import re
import secrets
import signal
import stat
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Final, NamedTuple

import msgspec

from luftpause.adapters import process_table
from luftpause.adapters.process_table import ProcessRow
from luftpause.adapters.tether import WORD_VARIABLE

_LOG: Final = logging.getLogger("luftpause.launcher")
_SUFFIX: Final = ".mark"
_OUTPUT: Final = ".out"
_CHECK_S: Final = 0.02
_KILL_S: Final = 2.0
"""How long what was killed may take to be gone; only what waits for a device takes so long."""
_WORD: Final = re.compile(r"[0-9a-f]{32}")
_NOBODY: Final = 0
"""The owner of a process whose mark is damaged."""
MARK_BYTES_MAX: Final = 4096
Witness = Callable[[bytes], None]


class Mark(msgspec.Struct, frozen=True, kw_only=True):
    """One process that was started, and who started it.

    Attributes:
        launch: what tells its program, arguments, variables and address from all others.
        port: where it was told to listen; 0: nowhere.
        survives: whether it outlives its launcher, and what it writes can be read on.
        ending: whether its owner only ends it; any other may then do so, too.
    """

    name: str
    word: str
    pid: int
    started: int
    boot: str
    owner_pid: int
    owner_started: int
    launch: str = ""
    port: int = 0
    survives: bool = False
    ending: bool = False


class ProcessOwner(NamedTuple):
    """A launcher: its process, and when that was started."""

    pid: int
    started: int


class ProcessMarks:
    """The marks of one launcher.

    Args:
        folder: where they lie; None keeps none.
    """

    def __init__(self, folder: Path | None) -> None:
        self.folder: Final = folder if process_table.is_known() else None
        self._kept: dict[str, Mark] = {}
        self._witness: Witness | None = None

    def witnessed_by(self, witness: Witness) -> None:
        """Have all that is remembered from now on told, in any thread: lines with a mark, or the word of an old one."""
        self._witness = witness

    def testimony(self) -> bytes:
        """Return all that is remembered now, in such lines."""
        return b"".join(map(_line, tuple(self._kept.values())))

    def new_word(self) -> str:
        """Return a word for the next process, to be put into its environment."""
        return secrets.token_hex(16)

    def new_output(self, word: str) -> Path | None:
        """Make a pipe with a name for what a process writes, so that another launcher can read on; None: it cannot."""
        if self.folder is None:
            return None
        path = self.output_of(word)
        try:
            self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            os.mkfifo(path, 0o600)
        except OSError as error:
            _LOG.warning("process_output_unnamed", extra={"folder": str(self.folder), "error": str(error)})
            return None
        return path

    def output_of(self, word: str) -> Path:
        """Return where that pipe is. Only for marks that are kept."""
        assert self.folder is not None, "no marks are kept"
        return self.folder / f"{word}{_OUTPUT}"

    def keep(self, name: str, word: str, pid: int, *, launch: str = "", port: int = 0) -> bool:
        """Remember a process that was just started, or, with 0 for its id, one that is about to be.

        A folder that cannot be written is warned about, once each time. Return whether it is remembered as asked; what
        an earlier call remembered of it stays.
        """
        if self.folder is None:
            return False
        own, row = process_table.row_of(os.getpid()), process_table.row_of(pid)
        if own is None or (pid and row is None):
            return False
        mark = Mark(
            name=name,
            word=word,
            pid=pid,
            started=0 if row is None else row.started,
            boot=process_table.boot_id(),
            owner_pid=own.pid,
            owner_started=own.started,
            launch=launch,
            port=port,
            survives=self.output_of(word).exists(),
        )
        self._remember(mark)
        try:
            self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            self._write(mark)
        except OSError as error:
            _LOG.warning("process_mark_lost", extra={"engine": name, "error": str(error)})
            return False
        return True

    def drop(self, word: str) -> None:
        """Forget a process that has ended with all its children."""
        if self.folder is None:
            return
        if self._kept.pop(word, None) is not None and self._witness is not None:
            self._witness(_line(word))
        for suffix in (_SUFFIX, _OUTPUT):
            with contextlib.suppress(OSError):
                (self.folder / f"{word}{suffix}").unlink(missing_ok=True)

    def claim(self, of: ProcessOwner | None = None, *, ending: bool = False) -> tuple[Mark, ...]:
        """Return what a launcher that is gone left behind, as ours from now on. Blocks for milliseconds.

        The processes of a launcher that lives are left alone. Of two launchers that look at once, one gets all; but
        what another only ends, we claim as well, so that we do not start while it is there. That does not survive any
        more, nor does one whose mark is damaged: it can be ended, not adopted.

        Args:
            of: the launcher that is meant; None: all that are gone.
            ending: we claim them only to end them.
        """
        if self.folder is None or not self.folder.is_dir():
            return ()
        own, boot = process_table.row_of(os.getpid()), process_table.boot_id()
        with _alone(self.folder):
            lost = [mark for mark in self._marks() if not _is_owned(mark, boot) and _is_from(mark, of)]
            alive = carriers_of({mark.word for mark in lost if mark.boot == boot}) if lost else {}
            claimed = []
            for mark in lost:
                if own is None or not alive.get(mark.word):
                    self.drop(mark.word)
                    continue
                if mark.owner_pid == _NOBODY and self._is_read(mark.word, alive[mark.word]):
                    continue  # a launcher that lives has it
                ends = ending or mark.ending
                mine = msgspec.structs.replace(
                    mark,
                    owner_pid=own.pid,
                    owner_started=own.started,
                    survives=mark.survives and not ends,
                    ending=ends,
                )
                with contextlib.suppress(OSError):  # it is ended or adopted all the same
                    self._write(mine)
                self._remember(mine)
                claimed.append(mine)
        return tuple(claimed)

    def end(self, marks: Collection[Mark], grace_s: float) -> None:
        """End what was claimed. Blocks for the grace at most, and a bit."""
        left = {mark.word: mark for mark in marks}
        for number in (signal.SIGTERM, signal.SIGKILL):
            until = time.monotonic() + grace_s
            signal_carriers(number, left)
            while (alive := carriers_of(left)) and time.monotonic() < until:
                time.sleep(_CHECK_S)
            for word in left.keys() - alive.keys():
                mark = left.pop(word)
                _LOG.warning("orphan_stopped", extra={"engine": mark.name, "pid": mark.pid})
                self.drop(word)
            if not left:
                return
        for mark in left.values():
            _LOG.error("orphan_stays", extra={"engine": mark.name, "pid": mark.pid})

    def end_unmarked(self, marks: Collection[Mark], grace_s: float) -> tuple[Mark, ...]:
        """End what a launcher that is gone left and whose marks are gone, too: nobody could adopt or find it.

        Blocks as `end` does. Meanwhile the next launcher can claim it as well. Return those whose marks nobody touched.
        """
        own = process_table.row_of(os.getpid())
        if self.folder is None or own is None:
            return ()
        with contextlib.suppress(OSError):
            self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        with _alone(self.folder):
            alive = carriers_of({mark.word for mark in marks if _WORD.fullmatch(mark.word)})
            owner = {"owner_pid": own.pid, "owner_started": own.started, "ending": True, "survives": False}
            lost = [
                msgspec.structs.replace(mark, **owner)
                for mark in marks
                if mark.word in alive and not (self.folder / f"{mark.word}{_SUFFIX}").exists()
            ]
            for mark in lost:
                with contextlib.suppress(OSError):
                    self._write(mark)
            there = {mark.word: (mark.owner_pid, mark.owner_started) for mark in self._marks()}
        self.end(lost, grace_s)
        return tuple(mark for mark in marks if there.get(mark.word) == (mark.owner_pid, mark.owner_started))

    def stop_orphans(self, grace_s: float, *, of: ProcessOwner | None = None) -> tuple[str, ...]:
        """End what a launcher that is gone left behind, and return the names."""
        claimed = self.claim(of, ending=True)
        self.end(claimed, grace_s)
        return tuple(mark.name for mark in claimed)

    def _remember(self, mark: Mark) -> None:
        self._kept[mark.word] = mark
        if self._witness is not None:
            self._witness(_line(mark))

    def _write(self, mark: Mark) -> None:
        assert self.folder is not None, "no marks are kept"
        path = self.folder / f"{mark.word}{_SUFFIX}"
        part = path.with_suffix(".part")
        text = msgspec.json.encode(mark)
        if len(text) > MARK_BYTES_MAX:
            raise OSError(errno.EFBIG, "it is too long")
        try:
            part.unlink(missing_ok=True)  # a link there must not be followed
            with part.open("xb") as file:
                file.write(text)
            part.replace(path)
        except OSError:
            with contextlib.suppress(OSError):
                part.unlink(missing_ok=True)
            raise

    def _is_read(self, word: str, carriers: Collection[int]) -> bool:
        """Return whether a launcher reads what a process writes: one that is neither of its carriers nor below them."""
        family = frozenset[int]().union(*map(process_table.family_of, carriers))
        output = self.output_of(word)
        return any(process_table.has_open(row.pid, output) for row in process_table.rows() if row.pid not in family)

    def _marks(self) -> Iterable[Mark]:
        assert self.folder is not None, "no marks are kept"
        for path in sorted(self.folder.glob(f"*{_SUFFIX}")):
            if _WORD.fullmatch(path.stem) is None:
                _LOG.warning("process_mark_strange", extra={"path": str(path)})
                continue  # we never wrote it, so nothing that it says counts
            try:
                yield _read(path)
            except FileNotFoundError:
                continue
            except PermissionError:  # another user's, and so are its processes
                _LOG.warning("process_mark_unreadable", extra={"path": str(path)})
            except (OSError, msgspec.DecodeError):
                _LOG.warning("process_mark_damaged", extra={"path": str(path)})
                yield _damaged(path.stem)


def _line(told: Mark | str) -> bytes:
    """Return a mark, or the word of one that is over, as a line."""
    return msgspec.json.encode(told) + b"\n"


def leader_of(mark: Mark) -> ProcessRow | None:
    """Return the process that a mark is of, None when that is gone: its children may live on."""
    row = process_table.row_of(mark.pid)
    return row if row is not None and row.started == mark.started and _word_of(row.pid) == mark.word else None


def end_carriers(word: str) -> bool:
    """Kill all that carry a word. Return whether all of them are gone; blocks until then, but not for long."""
    until = time.monotonic() + _KILL_S
    while carriers_of((word,)):
        if time.monotonic() > until:
            return False
        signal_carriers(signal.SIGKILL, (word,))  # again: one may have started another meanwhile
        time.sleep(_CHECK_S)
    return True


def carriers_of(words: Collection[str]) -> Mapping[str, Sequence[int]]:
    """Return the processes that carry each word; words that none carries are left out. Takes milliseconds."""
    found: dict[str, list[int]] = {}
    for row in process_table.rows():
        word = _word_of(row.pid)
        if word is not None and word in words:
            found.setdefault(word, []).append(row.pid)
    return found


def signal_carriers(number: int, words: Collection[str]) -> None:
    """Signal all processes that carry one of these words."""
    for word, pids in carriers_of(words).items():
        for pid in pids:
            _signal(pid, number, word)


def _signal(pid: int, number: int, word: str) -> None:
    """Signal a process, but none that took its id meanwhile."""
    try:
        handle = os.pidfd_open(pid)
    except OSError:
        return
    try:
        if _word_of(pid) == word:
            signal.pidfd_send_signal(handle, number)
    except OSError:
        _LOG.debug("orphan_gone", extra={"pid": pid})
    finally:
        os.close(handle)


def _word_of(pid: int) -> str | None:
    """Return the word that a process carries; None where it has none that we made, or it cannot be seen."""
    word = (process_table.environment_of(pid) or {}).get(WORD_VARIABLE, "")
    return word if _WORD.fullmatch(word) else None


def _read(path: Path) -> Mark:
    """Return the mark in a file.

    Raises:
        OSError: it cannot be read.
        msgspec.DecodeError: it is none, or not the one that the file is named after.
    """
    handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    try:
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            raise OSError(errno.EINVAL, "it is no file")
        text = os.read(handle, MARK_BYTES_MAX + 1)
    finally:
        os.close(handle)
    mark = msgspec.json.decode(text, type=Mark)
    if len(text) > MARK_BYTES_MAX or mark.word != path.stem:
        raise msgspec.DecodeError("it is not the mark that was written there")
    return mark


def _damaged(word: str) -> Mark:
    boot = process_table.boot_id()
    return Mark(name="unknown", word=word, pid=0, started=0, boot=boot, owner_pid=_NOBODY, owner_started=0, ending=True)


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """Let nobody else claim there meanwhile; a folder that cannot be locked is warned about."""
    with ExitStack() as stack:
        try:
            handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
            stack.callback(os.close, handle)
            fcntl.flock(handle, fcntl.LOCK_EX)
        except OSError as error:
            _LOG.warning("process_marks_unlocked", extra={"folder": str(folder), "error": str(error)})
        yield


def _is_owned(mark: Mark, boot: str) -> bool:
    owner = process_table.row_of(mark.owner_pid)
    return not mark.ending and mark.boot == boot and owner is not None and owner.started == mark.owner_started


def _is_from(mark: Mark, owner: ProcessOwner | None) -> bool:
    return owner is None or mark.owner_pid == _NOBODY or owner == (mark.owner_pid, mark.owner_started)
