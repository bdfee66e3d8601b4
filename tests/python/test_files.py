"""Files that appear whole or not at all."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from limits import room_for

from astraea.errors import UserError
from astraea.files import write_together, write_whole


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


def test_files_of_which_one_is_a_directory_are_not_written_at_all(tmp_path: Path) -> None:
    (tmp_path / "page").mkdir()
    with pytest.raises(UserError, match="page: cannot be written: Is a directory"):
        write_together({tmp_path / "table": b"small", tmp_path / "page": b"page"})
    assert [file.name for file in tmp_path.iterdir()] == ["page"]


def test_a_link_stays_and_what_it_points_to_is_written(tmp_path: Path) -> None:
    (tmp_path / "runs").mkdir()
    for name in ("there", "new"):
        (tmp_path / name).symlink_to(f"runs/{name}.html")
    (tmp_path / "runs" / "there.html").write_bytes(b"old")
    with room_for(1000), pytest.raises(UserError, match="there: cannot be written: File too large"):
        write_whole(tmp_path / "there", bytes(100_000))
    assert (tmp_path / "runs" / "there.html").read_bytes() == b"old"
    for name in ("there", "new"):
        write_whole(tmp_path / name, name.encode())
        assert (tmp_path / name).is_symlink()
        assert (tmp_path / "runs" / f"{name}.html").read_bytes() == name.encode()
    assert len(list(tmp_path.iterdir())) == 3
    assert len(list((tmp_path / "runs").iterdir())) == 2
    (tmp_path / "loop").symlink_to("loop")
    with pytest.raises(UserError, match="loop: cannot be written: Too many levels of symbolic links"):
        write_whole(tmp_path / "loop", b"page")


def test_the_mask_of_the_user_and_the_mode_of_a_file_are_kept(tmp_path: Path) -> None:
    before = os.umask(0o077)
    try:
        write_whole(tmp_path / "page", b"new")
        assert (tmp_path / "page").stat().st_mode & 0o777 == 0o600
        (tmp_path / "page").chmod(0o640)
        write_whole(tmp_path / "page", b"newer")
        assert (tmp_path / "page").stat().st_mode & 0o777 == 0o640
    finally:
        os.umask(before)


WRITER = (
    "import sys\nfrom pathlib import Path\nfrom astraea.files import write_together\n"
    "write_together({Path(name): b'page' for name in sys.argv[1:]})\nprint('said')\n"
)


def test_an_output_of_the_process_is_written_to_whatever_it_is(tmp_path: Path) -> None:
    """By links of our own: what went wrong is not to happen to the machine's /dev/stdout."""
    (tmp_path / "output").symlink_to("/proc/self/fd/1")
    (tmp_path / "linked").symlink_to(tmp_path / "output")
    program = [sys.executable, "-c", WRITER, tmp_path / "linked", "/proc/self/fd/1"]
    piped = subprocess.run(program, stdout=subprocess.PIPE, check=True)
    assert piped.stdout == b"pagepagesaid\n"
    with (tmp_path / "file").open("wb") as file:
        file.write(b"before ")
        file.flush()
        subprocess.run(program, stdout=file, check=True)
    assert (tmp_path / "file").read_bytes() == b"before pagepagesaid\n"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file", "linked", "output"]
    assert (tmp_path / "linked").readlink() == tmp_path / "output"


def test_a_pipe_is_written_to_and_not_replaced(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "link").symlink_to("pipe")
    with subprocess.Popen(["cat", tmp_path / "pipe"], stdout=subprocess.PIPE) as reader:
        write_whole(tmp_path / "link", b"page")
        assert reader.communicate()[0] == b"page"
    assert (tmp_path / "pipe").is_fifo()
    assert (tmp_path / "link").is_symlink()


def test_a_device_is_written_to_and_not_replaced() -> None:
    assert write_whole(Path("/dev/null"), b"gone") == Path("/dev/null")
    assert Path("/dev/null").is_char_device()
    with pytest.raises(UserError, match="/dev/full: cannot be written: No space left on device"):
        write_whole(Path("/dev/full"), b"page")
