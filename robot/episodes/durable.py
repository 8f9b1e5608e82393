"""Files that are there whole or not at all, whatever happens to the process.

A file is written under ``.partial`` in the same store, forced to disk, and renamed into place; the
folder that holds it is forced to disk as well.
"""

import fcntl
import os
import shutil
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from robot.errors import DatasetError

PARTIAL = ".partial"


def sync_folder(folder: Path) -> None:
    """Force the names in ``folder`` to disk."""
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def put(root: Path, name: str, content: bytes) -> None:
    """Write ``content`` to ``root/name`` so that it is there whole or not at all.

    Raises:
        OSError: If the disk is full or not writable; ``root/name`` is as it was.
    """
    partial = root / PARTIAL / name.replace("/", "+")
    partial.parent.mkdir(exist_ok=True)
    try:
        handle = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
        try:
            rest = memoryview(content)
            while rest:
                rest = rest[os.write(handle, rest) :]
            os.fsync(handle)
        finally:
            os.close(handle)
        target = root / name
        if not target.parent.exists():
            _make_folder(target.parent)
        partial.replace(target)
        sync_folder(target.parent)
    except OSError:
        partial.unlink(missing_ok=True)
        raise


def _make_folder(folder: Path) -> None:
    """Create ``folder`` and force each new name on the way to it to disk."""
    missing = [f for f in (folder, *folder.parents) if not f.exists()]
    folder.mkdir(parents=True, exist_ok=True)
    for new in missing:
        sync_folder(new.parent)


def drop_partial(root: Path) -> None:
    """Remove what an interrupted write left behind."""
    if (root / PARTIAL).is_dir():
        shutil.rmtree(root / PARTIAL)


@contextmanager
def only_writer(root: Path) -> Generator[None]:
    """Hold the store for one writer; the system releases it when the process dies.

    Raises:
        DatasetError: If another process writes to the store.
    """
    handle = os.open(root / ".lock", os.O_WRONLY | os.O_CREAT, 0o644)
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise DatasetError(
                f"another process writes to {root}; wait for it to end or choose another folder"
            ) from None
        yield
    finally:
        os.close(handle)
