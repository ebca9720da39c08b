"""Checksums of files and trees: the same on every machine, and of nothing but what is really there."""

import hashlib
import os
import socket
import struct
import unicodedata
from pathlib import Path

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from baton.infrastructure.files import NothingToHashError, checksum


def by_hand(files: dict[str, bytes]) -> str:
    """The rule, written down a second time."""
    stream = b""
    for path, content in sorted((unicodedata.normalize("NFC", path).encode(), content) for path, content in files.items()):
        stream += struct.pack(">Q", len(path)) + path + hashlib.sha256(content).digest()
    return hashlib.sha256(stream).hexdigest()


def laid_out(root: Path, files: dict[str, bytes]) -> Path:
    for name, content in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_bytes(content)
    return root


def test_a_file_has_the_digest_of_its_bytes(tmp_path: Path) -> None:
    (tmp_path / "abc").write_bytes(b"abc")
    expected = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
    assert checksum(tmp_path / "abc") == ("sha256", expected, 3, None)


def test_an_empty_file_is_a_file(tmp_path: Path) -> None:
    (tmp_path / "empty").touch()
    assert checksum(tmp_path / "empty")[:3] == ("sha256", hashlib.sha256().hexdigest(), 0)


def test_a_tree_has_one_digest_over_paths_and_contents(tmp_path: Path) -> None:
    files = {"b.txt": b"bee", "a/z.bin": bytes(1000), "a.txt": b"", "a/a/a": b"deep", "é": b"accent"}
    assert checksum(laid_out(tmp_path, files)) == ("sha256-tree", by_hand(files), 1013, 5)


def test_a_tree_of_known_content_has_a_known_digest(tmp_path: Path) -> None:
    content = bytes.fromhex("ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad")
    expected = hashlib.sha256(b"\0\0\0\0\0\0\0\x05a/abc" + content).hexdigest()
    assert checksum(laid_out(tmp_path, {"a/abc": b"abc"})).value == expected


@pytest.mark.parametrize("form", ["NFC", "NFD"])
def test_how_a_file_system_spells_an_accent_does_not_matter(tmp_path: Path, form: str) -> None:
    spelled = {unicodedata.normalize(form, "mesure é/z"): b"1", "mesure f": b"2"}
    assert checksum(laid_out(tmp_path, spelled)).value == by_hand({"mesure é/z": b"1", "mesure f": b"2"})


def test_links_and_empty_directories_do_not_count(tmp_path: Path) -> None:
    root = laid_out(tmp_path / "tree", {"data": b"1"})
    plain = checksum(root)
    (root / "link").symlink_to("data")
    (root / "nowhere").symlink_to("/no/such/place")
    (root / "elsewhere").symlink_to(tmp_path, target_is_directory=True)
    (root / "empty").mkdir()
    assert checksum(root) == plain


def test_what_holds_no_file_is_nothing(tmp_path: Path) -> None:
    (tmp_path / "tree" / "empty").mkdir(parents=True)
    (tmp_path / "tree" / "link").symlink_to("/etc/passwd")
    (tmp_path / "link").symlink_to("/etc/passwd")
    for name, said in {"absent": "No such file", "tree": "holds no file", "link": "neither a file nor"}.items():
        with pytest.raises(NothingToHashError, match=said):
            checksum(tmp_path / name)


def test_a_special_entry_spoils_a_tree(tmp_path: Path) -> None:
    laid_out(tmp_path, {"data": b"1"})
    (tmp_path / "deep").mkdir()
    os.mkfifo(tmp_path / "deep" / "pipe")
    with pytest.raises(NothingToHashError, match="pipe is neither"):
        checksum(tmp_path)
    with pytest.raises(NothingToHashError, match="pipe is neither"):
        checksum(tmp_path / "deep" / "pipe")


def test_a_socket_spoils_a_tree(tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(tmp_path / "socket"))
        with pytest.raises(NothingToHashError, match="socket is neither"):
            checksum(tmp_path)


def test_a_name_that_is_no_text_has_no_portable_form(tmp_path: Path) -> None:
    (Path(os.fsdecode(os.fsencode(tmp_path) + b"/\xff"))).touch()
    with pytest.raises(NothingToHashError, match="no UTF-8"):
        checksum(tmp_path)


NAMES = st.text(st.characters(codec="utf-8", exclude_characters="/\0"), min_size=1, max_size=8).filter(
    lambda name: name not in (".", "..")
)


@given(st.dictionaries(NAMES, st.binary(max_size=20), min_size=1, max_size=5))
def test_other_content_has_another_digest_and_the_same_the_same(
    tmp_path_factory: pytest.TempPathFactory, files: dict[str, bytes]
) -> None:
    assume(len({unicodedata.normalize("NFC", name) for name in files}) == len(files))
    tree = checksum(laid_out(tmp_path_factory.mktemp("tree"), files))
    assert tree == checksum(laid_out(tmp_path_factory.mktemp("copy"), dict(reversed(files.items()))))
    first = next(iter(files))
    changed = {**files, first: files[first] + b"!"}
    assert tree.value != checksum(laid_out(tmp_path_factory.mktemp("changed"), changed)).value
