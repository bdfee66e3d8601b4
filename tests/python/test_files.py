"""Files that appear whole or not at all."""

from __future__ import annotations

import resource
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from astraea.errors import UserError
from astraea.files import write_together, write_whole


@contextmanager
def room_for(size: int) -> Iterator[None]:
    """No file can grow beyond `size` bytes meanwhile, as on a full disk."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_what_finds_no_room_leaves_the_old_file_and_no_other(tmp_path: Path) -> None:
    path = tmp_path / "page"
    write_whole(path, b"old")
    with room_for(1000), pytest.raises(UserError, match="page: cannot be written: File too large"):
        write_whole(path, bytes(100_000))
    assert [file.name for file in tmp_path.iterdir()] == ["page"]
    assert path.read_bytes() == b"old"


def test_files_of_which_one_finds_no_room_are_not_written_at_all(tmp_path: Path) -> None:
    first, second = tmp_path / "table", tmp_path / "page"
    with room_for(1000), pytest.raises(UserError, match="page: cannot be written"):
        write_together({first: b"small", second: bytes(100_000)})
    assert not list(tmp_path.iterdir())
    assert write_together({first: b"small", second: b"page"}) == [first, second]
    assert [first.read_bytes(), second.read_bytes()] == [b"small", b"page"]
    assert first.stat().st_mode & 0o777 == 0o644


def test_files_of_which_one_is_a_directory_are_not_written_at_all(tmp_path: Path) -> None:
    (tmp_path / "page").mkdir()
    with pytest.raises(UserError, match="page: cannot be written: Is a directory"):
        write_together({tmp_path / "table": b"small", tmp_path / "page": b"page"})
    assert [file.name for file in tmp_path.iterdir()] == ["page"]


def test_a_device_is_written_to_and_not_replaced() -> None:
    assert write_whole(Path("/dev/null"), b"gone") == Path("/dev/null")
    assert Path("/dev/null").is_char_device()
    with pytest.raises(UserError, match="/dev/full: cannot be written: No space left on device"):
        write_whole(Path("/dev/full"), b"page")
