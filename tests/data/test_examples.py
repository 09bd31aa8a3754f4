"""What every corpus of generated examples promises."""

import dataclasses
import hashlib

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kdx.data.examples import NO_ANSWER, ExamplesFromNumbers, ExamplesOneByOne, GeneratedExamples
from kdx.errors import KdxError
from kdx.tasks import TASKS
from kdx.tasks.corpora import BUILT_IN
from kdx.vocabulary import Split

CORPORA = {name: made for name, made in BUILT_IN.items() if isinstance(made, GeneratedExamples)}
every_corpus = pytest.mark.parametrize("name", CORPORA)
FROM_NUMBERS = [name for name, made in CORPORA.items() if isinstance(made, ExamplesFromNumbers)]
ONE_BY_ONE = [name for name, made in CORPORA.items() if isinstance(made, ExamplesOneByOne)]
SEED = st.integers(0, 2**40)


def arrays(examples, part=slice(None)) -> dict[str, bytes]:
    """Every array's type, shape and contents."""
    both = {
        **examples.inputs,
        "targets": examples.targets,
        **{f"by {name}": of for name, of in examples.slices.items()},
    }
    return {str(name): (array.dtype.str, array[part].shape, array[part].tobytes()) for name, array in both.items()}


def rows(examples) -> set[bytes]:
    """What each example shows to a model."""
    return {b"".join(array[i].tobytes() for array in examples.inputs.values()) for i in range(len(examples))}


def test_every_task_that_reads_no_text_has_a_corpus():
    assert {made.task for made in CORPORA.values()} == {task.word for task in TASKS.definitions() if not task.data.text}


@every_corpus
@settings(max_examples=10, deadline=None)
@given(SEED, st.integers(1, 20))
def test_fewer_examples_are_the_first_of_more(name, seed, count):
    few, more = (CORPORA[name].generate(name, seed, Split.TRAIN, size) for size in (count, 20))
    assert arrays(few) == arrays(more, slice(count))
    assert len(few) == count


@pytest.mark.parametrize("name", FROM_NUMBERS)
def test_an_example_does_not_depend_on_the_others(name):
    made = CORPORA[name]
    numbers = np.random.default_rng(0).random((6, made.draws))
    assert arrays(made.make(numbers[::-1])) == arrays(made.make(numbers), slice(None, None, -1))


@every_corpus
def test_another_seed_or_split_gives_other_examples(name):
    one = CORPORA[name].generate(name, 0, Split.VALID, 5)
    for seed, split in ((1, Split.VALID), (0, Split.TEST), (0, Split.TRAIN)):
        assert not rows(one) & rows(CORPORA[name].generate(name, seed, split, 5))


@pytest.mark.parametrize("name", FROM_NUMBERS)
def test_no_example_is_in_two_splits_or_twice_in_one(name):
    made = CORPORA[name]
    sizes = {**made.sizes, Split.TRAIN: 3000}
    seen = {split: rows(made.generate(name, 0, split, size)) for split, size in sizes.items()}
    assert len(set().union(*seen.values())) == sum(sizes.values())


@pytest.mark.slow
@pytest.mark.parametrize("name", ONE_BY_ONE)
@settings(max_examples=10, deadline=None)
@given(SEED)
def test_no_example_is_in_two_splits(name, seed):
    made = CORPORA[name]
    seen = {split: rows(made.generate(name, seed, split, 60)) for split in Split}
    assert len(set().union(*seen.values())) == sum(map(len, seen.values()))


def test_an_empty_split_is_refused():
    few = dataclasses.replace(CORPORA["copy"], length=1, symbols=2)
    with pytest.raises(KdxError) as caught:
        for split in Split:
            few.generate("copy", 0, split, 5)
    assert str(caught.value).startswith("data.corpus: copy has too few different examples for a ")


@every_corpus
def test_classes_are_all_there_and_no_others(name):
    made = CORPORA[name]
    targets = made.generate(name, 0, Split.TRAIN, 300).targets
    assert targets.ndim == 2
    if isinstance(made, ExamplesFromNumbers):
        assert set(targets.ravel().tolist()) == set(range(made.classes))


@pytest.mark.parametrize("name", ONE_BY_ONE)
def test_every_target_is_of_every_slice(name):
    examples = CORPORA[name].generate(name, 0, Split.TEST, 300)
    asked = examples.targets != NO_ANSWER
    for values in examples.slices.values():
        assert values.shape == asked.shape and len(set(values[asked].tolist())) > 1
        assert not values[~asked].any()


# Runs are recorded with what they learned from, so what a name and a seed stand for never changes.
FROZEN = {
    "synthetic-images": "28f49a9a458126bb93c78b6a999db52d42db73221b07062b19f695c73362d8f4",
    "synthetic-sets": "809202bed8b8e893d3bb938756c64b245ac8c35c39076d26ce29514cdbaef8bb",
    "synthetic-streams": "d72f87098b06ecb2ea57f4d192af35c8f254ddd54e61ba0b0b6ef2e0c2d0a24b",
    "synthetic-tours": "fd74742545359a3711516efecab53becabaaa05c3e80eb77156ef4715b32490d",
    "ancestor": "cf3f85701e799deff5a87ffc248e12eba4fdbe69f555899d5d15632774601d35",
    "relation": "bca37acf630c16367b8d469c5a55f77fb347e5311bf04ca38b1a67f354a94231",
    "edge-label": "05b2ccb7f42ac749124f8564b2d8afc06a40aab5885bc48420a3bd88273ef4c1",
    "neighbour": "0d7fe1086291b78e217c6d3076349e416e4a7e7edf590f46f44582bbe15cda7b",
    "recall": "d0f2c05bd1d21d317038cdadb4c0f844734aafa7f7a5bf1b6157b373dcf8900a",
    "induction": "ad659cdbbc9a4e13f56e3c02cda5920735d7bcc8c035cf315b7f65bf93272336",
    "copy": "bf398abde5466458d88b2182bd6dbffe63b7a05c524fda6c227e53e4e3bb917c",
    "reverse": "76dd81581ae975e6c004c6e6416e71d12e063a457d5d8cad35dd165032dbfbf6",
    "addition": "2fd9d9a2a347d6923d2a2f00d4c6411c9435af7102e65fc8350c27c876d3ba4c",
    "parity": "3e192ddefb7e2914bebf99869ab1464940d3a51db8f6514ff00846437eca1926",
    "listops": "32bf836696f20046e586a082ba376b0904e369a163c5e4a580e17fb0c5b30642",
}


@every_corpus
def test_the_examples_are_frozen(name):
    result = repr(arrays(CORPORA[name].generate(name, 0, Split.TEST, 100))).encode()
    assert hashlib.sha256(result).hexdigest() == FROZEN[name]
