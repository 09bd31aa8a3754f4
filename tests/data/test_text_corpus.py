import subprocess
import sys
from pathlib import Path

import pytest

from kdx.data.parallel import load_parallel
from kdx.data.prepare import prepare
from kdx.data.stream import load_stream
from kdx.errors import StorageError
from kdx.grid.sections import Data
from kdx.vocabulary import Split, VocabularyKind

BPE = VocabularyKind.BPE


def test_second_load_reads_no_text(pets, letters, monkeypatch):
    first = load_parallel(pets), load_stream(letters)

    def read(*_):
        raise AssertionError("read again")

    monkeypatch.setattr("kdx.data.find_text._lines", read)
    second = load_parallel(pets), load_stream(letters)
    for before, after in zip(first, second, strict=True):
        assert after.fingerprint == before.fingerprint
        assert after.unigram_loss == before.unigram_loss
    assert second[0].target_vocabulary.fields() == first[0].target_vocabulary.fields()
    assert second[1].vocabulary.fields() == first[1].vocabulary.fields()
    assert second[0].splits[Split.TEST].references == first[0].splits[Split.TEST].references
    before, after = (pairs.splits[Split.TRAIN].targets for pairs in (first[0], second[0]))
    assert after.flat.tolist() == before.flat.tolist()
    assert second[1].splits[Split.TRAIN].tolist() == first[1].splits[Split.TRAIN].tolist()
    assert second[1].words == first[1].words


def test_same_text_under_another_name_is_the_same_data(pairs):
    prepare("one", pairs)
    prepare("two", pairs)
    assert load_parallel(Data(corpus="one")).fingerprint == load_parallel(Data(corpus="two")).fingerprint


@pytest.mark.parametrize(
    "change",
    [
        {"vocabulary_size": 6},
        {"vocabulary": BPE, "vocabulary_size": 40},
        {"vocabulary": "subword-nmt", "merges": 10},
        {"vocabulary": "subword-nmt", "merges": 4},
        {"dictionaries": "separate"},
        {"train_lines": 2},
        {"max_tokens": 3},
        {"source": "en", "target": "de"},
    ],
    ids=str,
)
def test_fingerprint_follows_every_setting(pets, change):
    assert load_parallel(pets.model_copy(update=change)).fingerprint != load_parallel(pets).fingerprint


def test_all_the_lines_and_no_limit_are_the_same_data(pets):
    assert load_parallel(pets.model_copy(update={"train_lines": 3})).fingerprint == load_parallel(pets).fingerprint


@pytest.mark.parametrize("file", ["train.npy", "vocabulary.json", "contents.json"])
def test_full_disk(letters, home, monkeypatch, file):
    """Files are the device that is always full, from the first file on or from a later one."""
    opened = Path.open

    def write(path, mode="r", *arguments, **settings):
        # Only to be written: read, that device never ends.
        return opened(Path("/dev/full") if path.name == file and "w" in mode else path, mode, *arguments, **settings)

    def write_text(path, text, encoding):
        with write(path, "w", encoding=encoding) as stream:
            stream.write(text)

    monkeypatch.setattr(Path, "open", write)
    monkeypatch.setattr(Path, "write_text", write_text)
    with pytest.raises(StorageError, match="No space left on device") as caught:
        load_stream(letters)
    assert caught.value.exit_code == 74
    assert not list((home / "cache").iterdir())


def test_loading_needs_no_torch(letters, home):
    script = (
        "import sys; from kdx.data.stream import load_stream; from kdx.grid.sections import Data\n"
        "load_stream(Data(corpus='letters')); print({'torch', 'tokenizers'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, env={"KDX_DATA": str(home)})
    assert done.stdout == "set()\n", done.stderr
