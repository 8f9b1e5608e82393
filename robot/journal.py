"""A file that grows by whole lines and survives being killed at any moment.

One JSON object a line, written by one process at a time: appended with a single write and forced
to disk before anybody is told that it is kept. A last line without its end is what a kill leaves
behind; it is dropped when the journal is opened again.
"""

import fcntl
import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self, cast

from robot.errors import AmbidexError


class JournalError(AmbidexError):
    """A journal cannot be read or written as it stands."""


def read_lines(path: Path) -> list[dict[str, Any]]:
    """Return the whole lines of a journal; a missing file has none.

    Raises:
        JournalError: If a line that was finished is not a JSON object.
    """
    if not path.exists():
        return []
    return list(_parse(path, path.read_bytes()))


def _parse(path: Path, content: bytes) -> Iterator[dict[str, Any]]:
    whole, _, _half = content.rpartition(b"\n")
    for number, line in enumerate(whole.split(b"\n") if whole else [], start=1):
        if not line.strip():
            continue
        try:
            entry: Any = json.loads(line)
        except ValueError as error:
            raise JournalError(
                f"{path}, line {number} is not JSON ({error}); a kill can only harm the last line, "
                "so the file was changed by hand or by a failing disk: repair or remove that line"
            ) from error
        if not isinstance(entry, dict):
            raise JournalError(f"{path}, line {number} holds no JSON object but {line[:40]!r}")
        yield cast("dict[str, Any]", entry)


def write_whole(path: Path, content: str) -> None:
    """Replace ``path`` by ``content`` such that a reader sees the old file or the new one.

    Raises:
        JournalError: If it cannot be written.
    """
    draft = path.with_name(path.name + ".part")
    try:
        with draft.open("w", encoding="utf-8") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        draft.replace(path)
    except OSError as error:
        raise JournalError(
            f"cannot write {path} ({error.strerror}); free space or make the folder writable"
        ) from error


class Journal:
    """Append JSON objects to ``path``; only one process may hold a journal open.

    ``with Journal(path) as journal`` opens it and drops a half last line; ``journal.kept`` are
    the lines that were there.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file: int | None = None
        self.kept: list[dict[str, Any]] = []
        self.dropped = 0

    def __enter__(self) -> Self:
        """Open, lock and mend the file.

        Raises:
            JournalError: If the folder cannot be written, another process writes to the same
                journal, or a finished line is damaged.
        """
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            fresh = not self._path.exists()
            self._file = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o644)
            if fresh:
                _sync_folder(self._path.parent)
        except OSError as error:
            raise JournalError(
                f"cannot write {self._path} ({error.strerror}); choose another out folder "
                "or make this one writable"
            ) from error
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            self.close()
            raise JournalError(
                f"another run is writing to {self._path}; wait for it or choose another out folder"
            ) from error
        try:
            self._mend()
        except BaseException:
            self.close()
            raise
        return self

    def _mend(self) -> None:
        file = self._descriptor()
        content = self._path.read_bytes()
        whole = content.rfind(b"\n") + 1
        self.kept = list(_parse(self._path, content))
        self.dropped = len(content) - whole
        if self.dropped:
            os.ftruncate(file, whole)
            os.fsync(file)

    def append(self, entry: Mapping[str, Any]) -> None:
        """Write one line and return when it is on disk.

        Raises:
            JournalError: If the disk is full or gone; what was there before is kept.
        """
        file = self._descriptor()
        line = json.dumps(entry, separators=(",", ":"), allow_nan=False).encode() + b"\n"
        before = os.fstat(file).st_size
        try:
            written = os.write(file, line)
            if written != len(line):
                os.ftruncate(file, before)
                raise OSError(28, "no space left on device")
            os.fsync(file)
        except OSError as error:
            raise JournalError(
                f"cannot write to {self._path} ({error.strerror}); the {len(self.kept)} lines "
                "before are kept: free space on the disk and run the same command to go on"
            ) from error
        self.kept.append(dict(entry))

    def _descriptor(self) -> int:
        if self._file is None:
            raise JournalError(f"{self._path} is not open; use `with Journal(path) as journal`")
        return self._file

    def close(self) -> None:
        """Release the file and its lock; safe to call twice."""
        if self._file is not None:
            os.close(self._file)
            self._file = None

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


def _sync_folder(folder: Path) -> None:
    # A new file's name is on disk only when its folder is.
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
