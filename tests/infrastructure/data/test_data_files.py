"""Files are read only where their real place is under a data root, whatever their address looks like."""

import contextlib
import os
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from urllib.parse import quote

import pytest

from baton.infrastructure.data_files import DataFiles, FileUnreachableError

SECRET = b"not for everybody"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (root := tmp_path / "data").mkdir()
    (root / "scan.h5").write_bytes(b"frames")
    (tmp_path / "secret").write_bytes(SECRET)
    return root


def read(files: DataFiles, uri: str) -> bytes:
    descriptor = files.open(uri)
    with open(descriptor, "rb") as file:
        return file.read()


def open_files() -> set[tuple[int, str]]:
    """Return the descriptors of this process that are files or directories. Others, sockets above all, come and go with
    what the process has run before."""
    descriptors = set()
    for number in map(int, os.listdir("/proc/self/fd")):
        with contextlib.suppress(FileNotFoundError):  # of the listing itself
            descriptors.add((number, os.readlink(f"/proc/self/fd/{number}")))
    return {(number, target) for number, target in descriptors if target.startswith("/")}


def refused(files: DataFiles, uri: str) -> str:
    """Return the sentence of the refusal, which names no path."""
    before = open_files()
    with pytest.raises(FileUnreachableError) as refusal:
        files.open(uri)
    assert open_files() <= before, "a descriptor was left open"
    assert "/" not in str(refusal.value).replace("file:///directory/name", "")
    return str(refusal.value)


@pytest.mark.parametrize("prefix", ["file://", "file://localhost", "file:", "FILE://LOCALHOST", "file:///../.."])
def test_a_file_under_a_root_is_read(root: Path, prefix: str) -> None:
    assert read(DataFiles([root]), f"{prefix}{root}/scan.h5") == b"frames"


def test_a_name_is_percent_encoded_byte_by_byte(root: Path) -> None:
    for name in (b"50% of a scan", "Müller #2?.h5".encode(), b"no utf-8 \xff"):
        Path(os.fsdecode(os.fsencode(root) + b"/" + name)).write_bytes(name)
        assert read(DataFiles([root]), f"file://{root}/{quote(name)}") == name
    assert read(DataFiles([root]), f"file://{root}%2Fscan%2eh5") == b"frames"


def test_several_roots_and_a_root_that_is_a_link(root: Path, tmp_path: Path) -> None:
    (link := tmp_path / "link").symlink_to(root)
    files = DataFiles([tmp_path / "absent", link])
    assert read(files, f"file://{link}/scan.h5") == read(files, f"file://{root}/scan.h5") == b"frames"
    assert refused(files, f"file://{tmp_path}/secret").startswith("The file is outside")


def test_a_link_within_the_roots_is_followed(root: Path, tmp_path: Path) -> None:
    (tmp_path / "archive").mkdir()
    (tmp_path / "archive" / "old.h5").write_bytes(b"old")
    (root / "latest").symlink_to("scan.h5")
    (root / "moved").symlink_to(tmp_path / "archive" / "old.h5")
    files = DataFiles([root, tmp_path / "archive"])
    assert (read(files, f"file://{root}/latest"), read(files, f"file://{root}/moved")) == (b"frames", b"old")


def test_nothing_outside_the_roots_is_read_and_its_existence_is_not_told(root: Path, tmp_path: Path) -> None:
    (root / "link").symlink_to(tmp_path / "secret")
    (root / "dangling").symlink_to(tmp_path / "absent")
    (root / "elsewhere").symlink_to(tmp_path)
    (tmp_path / "database").mkdir()
    (tmp_path / "database" / "secret").write_bytes(SECRET)
    outside = [
        *(f"{tmp_path}/secret", f"{tmp_path}/absent", f"{root}/../secret", f"{root}/../absent", f"{root}/%2e%2e/secret"),
        *(f"{root}/link", f"{root}/dangling", f"{root}/elsewhere/secret", f"{root}/elsewhere/absent/deep"),
        *(f"{root}base/secret", "/etc/passwd", "/etc/shadow/absent", "/proc/self/environ", "/dev/zero", "/"),
    ]
    assert {refused(DataFiles([root]), f"file://{path}") for path in outside} == {
        "The file is outside the directories of data files (DATA_ROOTS)."
    }


def test_a_path_exchanged_after_the_first_look_is_judged_by_what_was_opened(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    find_path = os.path.realpath

    def exchange(path: bytes) -> bytes:
        found = find_path(path)
        if path == os.fsencode(root / "scan.h5"):
            (root / "scan.h5").unlink()
            (root / "scan.h5").symlink_to(tmp_path / "secret")
        return found

    monkeypatch.setattr(os.path, "realpath", exchange)
    assert refused(DataFiles([root]), f"file://{root}/scan.h5").startswith("The file is outside")


def make_fifo(path: Path) -> None:
    os.mkfifo(path)


def make_socket(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(os.path.relpath(path))


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (Path.mkdir, "This is a directory"),
        (make_fifo, "no regular file"),
        (make_socket, "no regular file"),
        (lambda path: path.symlink_to(path), "lead in a circle"),
        (lambda path: None, "There is no such file"),
    ],
    ids=["directory", "pipe", "socket", "circle", "absent"],
)
def test_only_regular_files_are_read_and_nothing_is_waited_for(root: Path, make: Callable[[Path], None], words: str) -> None:
    make(root / "odd")
    assert words in refused(DataFiles([root]), f"file://{root}/odd")


def test_a_path_below_a_file_and_one_with_a_slash_behind_it_name_nothing(root: Path) -> None:
    for path in ("scan.h5/", "scan.h5/frames", "x" * 300):
        assert "There is no such file" in refused(DataFiles([root]), f"file://{root}/{path}")
    assert "This is a directory" in refused(DataFiles([root]), f"file://{root}/")


@pytest.mark.parametrize(
    ("uri", "words"),
    [
        ("file://storage.example/data/scan.h5", "another host"),
        ("file://localhost:80/data/scan.h5", "another host"),
        ("file://user@localhost/data/scan.h5", "another host"),
        ("file:data/scan.h5", "no absolute path"),
        ("file://localhost", "no absolute path"),
        ("file:///data/scan%00.h5", "NUL"),
        ("file:///data/scan\0.h5", "NUL"),
        ("file:///data/scan.h5?version=2", "neither query nor fragment"),
        ("file:///data/scan.h5#frames", "neither query nor fragment"),
        ("file:///data/\ud800", "no text"),
        ("https://storage.example/scan.h5", "no file: URI"),
        ("", "no file: URI"),
    ],
)
def test_other_addresses_are_refused(root: Path, uri: str, words: str) -> None:
    assert words in refused(DataFiles([root]), uri)


def test_without_roots_nothing_is_read(root: Path) -> None:
    assert refused(DataFiles([]), f"file://{root}/scan.h5") == ("No directory of data files is configured; set DATA_ROOTS.")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_file_that_the_service_may_not_read(root: Path) -> None:
    (root / "scan.h5").chmod(0)
    assert "may not read" in refused(DataFiles([root]), f"file://{root}/scan.h5")


MOUNTED = """
import subprocess, sys
from pathlib import Path
from baton.infrastructure.data_files import DataFiles, FileUnreachableError
root, other = Path(sys.argv[1]), Path(sys.argv[2])
subprocess.run(["mount", "--bind", other, root / "mounted"], check=True)
print(open(DataFiles([root]).open(f"file://{root}/mounted/old.h5")).read())
try:
    DataFiles([root]).open(f"file://{other}/old.h5")
except FileUnreachableError as refusal:
    print(refusal)
"""


def test_what_is_mounted_under_a_root_belongs_to_it_and_nothing_else_of_that_file_system(root: Path, tmp_path: Path) -> None:
    (other := tmp_path / "other").mkdir()
    (other / "old.h5").write_text("mounted bytes")
    (root / "mounted").mkdir()
    program = ["unshare", "--user", "--map-root-user", "--mount", sys.executable, "-c", MOUNTED, str(root), str(other)]
    if subprocess.run([*program[:4], "true"], capture_output=True).returncode:
        pytest.skip("this machine lets nobody mount in a namespace of their own")
    printed = subprocess.run(program, capture_output=True, text=True, check=True).stdout.splitlines()
    assert printed == ["mounted bytes", "The file is outside the directories of data files (DATA_ROOTS)."]
