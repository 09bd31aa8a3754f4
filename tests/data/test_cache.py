import json
import threading

import pytest

from kdx.data.cache import cached


@pytest.fixture
def make():
    """Fills a folder, and counts how often."""

    def _make(folder):
        _make.calls += 1
        (folder / "numbers").write_text("1 2 3")
        return {"sum": 6}

    _make.calls = 0
    return _make


def test_a_folder_is_made_once(tmp_path, make):
    first = cached(tmp_path, "key", make)
    assert cached(tmp_path, "key", make) == first == (tmp_path / "cache" / "key", {"sum": 6})
    assert make.calls == 1
    assert (first[0] / "numbers").read_text() == "1 2 3"


def test_another_key_is_another_folder(tmp_path, make):
    assert cached(tmp_path, "a", make)[0] != cached(tmp_path, "b", make)[0]
    assert make.calls == 2


DAMAGE = {
    "file truncated": lambda folder: (folder / "numbers").write_text("1 2"),
    "file garbled": lambda folder: (folder / "numbers").write_text("1 2 4"),
    "file gone": lambda folder: (folder / "numbers").unlink(),
    "contents truncated": lambda folder: (folder / "contents.json").write_text('{"facts": {"su'),
    "contents empty": lambda folder: (folder / "contents.json").write_text(""),
    "contents binary": lambda folder: (folder / "contents.json").write_bytes(b"\xff\x00"),
    "contents gone": lambda folder: (folder / "contents.json").unlink(),
    "contents of another shape": lambda folder: (folder / "contents.json").write_text(json.dumps([1])),
}


@pytest.mark.parametrize("damage", DAMAGE.values(), ids=DAMAGE)
def test_a_damaged_folder_is_made_anew(tmp_path, make, damage):
    folder, _ = cached(tmp_path, "key", make)
    damage(folder)
    assert cached(tmp_path, "key", make) == (folder, {"sum": 6})
    assert (folder / "numbers").read_text() == "1 2 3"
    assert make.calls == 2
    assert [path.name for path in (tmp_path / "cache").iterdir()] == ["key"]


def test_two_at_once_do_no_harm(tmp_path):
    both = threading.Barrier(2)
    results = []

    def make(folder):
        (folder / "numbers").write_text("1 2 3")
        both.wait(timeout=10)
        return {"sum": 6}

    threads = [threading.Thread(target=lambda: results.append(cached(tmp_path, "key", make))) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == [(tmp_path / "cache" / "key", {"sum": 6})] * 2
    assert (results[0][0] / "numbers").read_text() == "1 2 3"
    assert [path.name for path in (tmp_path / "cache").iterdir()] == ["key"]


def test_a_failing_maker_leaves_nothing(tmp_path):
    with pytest.raises(ZeroDivisionError):
        cached(tmp_path, "key", lambda folder: {"sum": 1 / 0})
    assert not list((tmp_path / "cache").iterdir())
