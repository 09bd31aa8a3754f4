"""A folder that is there whole or not at all."""

import pytest

from kdx.errors import AccessError, KdxError, StorageError
from kdx.report.folder import encoded, write_folder


def test_files_are_written_in_parts_and_told(tmp_path):
    folder = tmp_path / "results"
    written = write_folder(folder, [("a.csv", [b"1,", b"2\n"]), ("weights/b.ckpt", iter([b"\x00"]))])
    assert written == (folder / "a.csv", folder / "weights" / "b.ckpt")
    assert [path.read_bytes() for path in written] == [b"1,2\n", b"\x00"]
    assert list(tmp_path.iterdir()) == [folder]


@pytest.mark.parametrize("make", ["folder", "file", "link"])
def test_nothing_is_overwritten(tmp_path, make):
    there = tmp_path / "results"
    {"folder": there.mkdir, "file": there.touch, "link": lambda: there.symlink_to("nowhere")}[make]()
    with pytest.raises(KdxError) as caught:
        write_folder(there, [("a", [b""])])
    assert caught.value.problem == "this already exists"
    assert list(tmp_path.iterdir()) == [there]


def test_what_comes_into_being_meanwhile_stays(tmp_path):
    def parts():
        (tmp_path / "results").mkdir()
        yield b"x"

    with pytest.raises(KdxError):
        write_folder(tmp_path / "results", [("a", parts())])
    assert list((tmp_path / "results").iterdir()) == []
    assert [path.name for path in tmp_path.iterdir()] == ["results"]


@pytest.mark.parametrize("fault", [StorageError("damaged"), KeyboardInterrupt()])
def test_what_fails_on_the_way_leaves_nothing(tmp_path, fault):
    def parts():
        yield b"half"
        raise fault

    with pytest.raises(type(fault)):
        write_folder(tmp_path / "results", [("a", [b"whole"]), ("b", parts())])
    assert list(tmp_path.iterdir()) == []


def test_a_place_that_cannot_be_written_is_told(tmp_path):
    with pytest.raises(AccessError, match="this folder cannot be written: No such file or directory"):
        write_folder(tmp_path / "absent" / "results", [])


def test_lines_become_utf_8_whatever_they_hold():
    assert b"".join(encoded(["ä", "\udcff"])) == "ä\n\\udcff\n".encode()
