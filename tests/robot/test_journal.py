"""A journal keeps whole lines, whatever happens to its writer."""

import json
import resource
import signal
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from robot.journal import Journal, JournalError, read_lines, write_whole


def write(path: Path, count: int) -> None:
    with Journal(path) as journal:
        for i in range(count):
            journal.append({"i": i})


def test_lines_come_back_as_they_were_written(tmp_path: Path) -> None:
    write(tmp_path / "j", 3)
    assert read_lines(tmp_path / "j") == [{"i": 0}, {"i": 1}, {"i": 2}]


def test_a_line_is_on_disk_when_append_returns(tmp_path: Path) -> None:
    with Journal(tmp_path / "j") as journal:
        journal.append({"i": 1})
        assert read_lines(tmp_path / "j") == [{"i": 1}]


@given(cut=st.integers(0, 29))
def test_whatever_is_cut_off_the_end_only_whole_lines_remain(
    cut: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.mktemp("cut") / "j"
    write(path, 3)
    content = path.read_bytes()
    assert len(content) == 24
    path.write_bytes(content[: max(0, len(content) - cut)])
    whole = max(0, len(content) - cut) // 8
    with Journal(path) as journal:
        assert journal.kept == [{"i": i} for i in range(whole)]
        journal.append({"i": 9})
    assert read_lines(path) == [*({"i": i} for i in range(whole)), {"i": 9}]


def test_a_damaged_line_in_the_middle_is_named_and_never_dropped(tmp_path: Path) -> None:
    path = tmp_path / "j"
    write(path, 3)
    path.write_bytes(path.read_bytes().replace(b'{"i":1}', b'{"i":1'))
    with pytest.raises(JournalError, match="line 2"), Journal(path):
        pass


def test_two_writers_at_once_are_refused(tmp_path: Path) -> None:
    with Journal(tmp_path / "j"), pytest.raises(JournalError, match="another run is writing"):
        Journal(tmp_path / "j").__enter__()
    write(tmp_path / "j", 1)


def test_an_unwritable_folder_is_said_when_the_journal_is_opened(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(JournalError, match="choose another out folder"):
        Journal(tmp_path / "file" / "j").__enter__()


def test_a_full_disk_is_said_and_leaves_the_lines_before_whole(tmp_path: Path) -> None:
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    path = tmp_path / "j"
    try:
        with Journal(path) as journal:
            journal.append({"i": 0})
            resource.setrlimit(resource.RLIMIT_FSIZE, (12, before[1]))
            with pytest.raises(JournalError, match="1 lines before are kept"):
                journal.append({"i": 1, "long": "x" * 50})
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, handler)
    assert path.read_bytes() == b'{"i":0}\n'


def test_nan_is_refused_since_other_readers_of_json_fail_on_it(tmp_path: Path) -> None:
    with Journal(tmp_path / "j") as journal, pytest.raises(ValueError, match="JSON"):
        journal.append({"score": float("nan")})


def test_a_file_is_replaced_whole(tmp_path: Path) -> None:
    write_whole(tmp_path / "summary.json", json.dumps({"a": 1}))
    write_whole(tmp_path / "summary.json", json.dumps({"a": 2}))
    assert [p.name for p in tmp_path.iterdir()] == ["summary.json"]
    assert json.loads((tmp_path / "summary.json").read_text()) == {"a": 2}
