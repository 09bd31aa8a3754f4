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
    assert cached(tmp_path, "key", make) == first
    assert (first.folder, first.facts) == (tmp_path / "cache" / "key", {"sum": 6})
    assert make.calls == 1
    assert (first.folder / "numbers").read_text() == "1 2 3"


def test_fingerprint_is_of_what_the_files_hold(tmp_path, make):
    def other(folder):
        make(folder)
        (folder / "numbers").write_text("1 2 4")
        return {"sum": 6}

    one, same, another = (cached(tmp_path, key, maker) for key, maker in (("a", make), ("b", make), ("c", other)))
    assert one.fingerprint == same.fingerprint != another.fingerprint


DAMAGE = {
    "file truncated": lambda folder: (folder / "numbers").write_text("1 2"),
    "file gone": lambda folder: (folder / "numbers").unlink(),
    "contents truncated": lambda folder: (folder / "contents.json").write_text('{"facts": {"su'),
    "contents gone": lambda folder: (folder / "contents.json").unlink(),
}


@pytest.mark.parametrize("damage", DAMAGE.values(), ids=DAMAGE)
def test_an_incomplete_folder_is_made_anew(tmp_path, make, damage):
    first = cached(tmp_path, "key", make)
    damage(first.folder)
    assert cached(tmp_path, "key", make) == first
    assert (first.folder / "numbers").read_text() == "1 2 3"
    assert make.calls == 2
    assert [path.name for path in (tmp_path / "cache").iterdir()] == ["key"]


def test_an_unchanged_folder_is_not_read_again(tmp_path, make, monkeypatch):
    cached(tmp_path, "key", make)

    def read(*_):
        raise AssertionError("read again")

    monkeypatch.setattr("kdx.data.storage.hashlib.file_digest", read)
    cached(tmp_path, "key", make)
    assert make.calls == 1


def test_a_cache_that_may_only_be_read_serves_all_the_same(tmp_path, make):
    first = cached(tmp_path, "key", make)
    first.folder.chmod(0o500)
    try:
        assert cached(tmp_path, "key", make) == first
    finally:
        first.folder.chmod(0o700)
    assert make.calls == 1
