"""Corpora that do not fit are reported before anything starts, each fault where the grid has it."""

import pytest
from grids import TINY

from kdx.data import plan_corpora as corpora
from kdx.data.corpus import load_corpus
from kdx.data.plan_corpora import prepare_data
from kdx.data.prepare import prepare
from kdx.errors import Faults, StorageError
from kdx.grid.load import load_grid
from kdx.grid.plan import Plan
from kdx.vocabulary import Split

GRID = TINY % {"steps": 10, "seeds": 1}


@pytest.fixture
def plan(tmp_path, monkeypatch, data_home):
    """Reads a grid from `grid.yaml`."""
    monkeypatch.chdir(tmp_path)

    def plan(text: str) -> Plan:
        (tmp_path / "grid.yaml").write_text(text)
        return load_grid("grid.yaml")

    return plan


def refused(plan: Plan, **how: bool) -> list[str]:
    with pytest.raises(Faults) as refusal:
        prepare_data(plan, **how)
    return [str(fault).partition("\n")[0] for fault in refusal.value.faults]


def test_every_corpus_that_is_missing_or_of_another_kind_is_told_at_its_place(plan):
    grid = (
        GRID.replace("synthetic-translation", "sintetic")
        + """\
approaches:
  plain: {data: {corpus: synthetic-language}}
  absent: {}
  also absent: {position: product}
  not prepared: {data: {corpus: multi30k}}
"""
    )
    assert refused(plan(grid)) == [
        "grid.yaml:4:16: unknown corpus `sintetic`",
        "grid.yaml:10:26: corpus `synthetic-language` is plain text, for prediction; this task needs parallel text, "
        "for translation",
        "grid.yaml:13:33: corpus `multi30k` is not prepared yet",
    ]


def test_what_the_grid_does_not_write_is_told_at_the_nearest_value_around_it(plan, monkeypatch):
    from kdx.errors import KdxError

    def load(task, data):
        raise KdxError("too long", place="data.max_tokens", allowed="less")

    monkeypatch.setattr(corpora, "load_corpus", load)
    assert refused(plan(GRID)) == ["grid.yaml:4:7: too long"]
    assert refused(plan(GRID.replace("train_lines: 300", "max_tokens: 300"))) == ["grid.yaml:4:51: too long"]


def test_a_disk_that_cannot_be_written_is_no_fault_of_the_grid(plan, monkeypatch):
    monkeypatch.setenv("KDX_DATA", "/proc/none")
    with pytest.raises(StorageError, match=r"cannot write /proc/none/cache/.*: No such file"):
        prepare_data(plan(GRID))


def test_a_large_text_is_looked_at_but_not_into_unless_asked_to(plan, tmp_path, monkeypatch):
    monkeypatch.setenv("KDX_DATA", str(tmp_path / "data"))
    source = tmp_path / "source"
    source.mkdir()
    for split in ("train", "valid", "test"):
        for language in ("de", "en"):
            (source / f"{split}.{language}").write_text("ein Haus\n" * 20)
    prepare("large", source)
    grid = GRID.replace("synthetic-translation, train_lines: 300", "large")
    monkeypatch.setattr(corpora, "LARGE", 50)
    (note,) = prepare_data(plan(grid), large=False)
    assert note == "large is large: its text is checked by kdx sweep, not here"
    assert not (tmp_path / "data" / "cache").exists()
    # Its first lines are no large text, and one of another kind is refused without a look into it.
    assert prepare_data(plan(grid.replace("large", "large, train_lines: 10")), large=False) == []
    prediction = "task: prediction\ndata: {corpus: large}\ntraining: {length: 32, batch_tokens: 64}\n"
    (message,) = refused(plan(prediction), large=False)
    assert message.startswith("grid.yaml:2:16: corpus `large` is parallel text, for translation")
    assert refused(plan(grid.replace("large", "large, train_lines: 21")), large=False) == [
        "grid.yaml:4:36: 21 lines wanted, but the training text of `large` has 20"
    ]
    assert prepare_data(plan(grid)) == []


def test_training_pairs_that_are_left_out_are_counted_once_for_all_cells(plan):
    grid = GRID.replace("train_lines: 300", "train_lines: 300, max_tokens: 8") + "axes: {kernel: [exponential, rbf]}\n"
    read = plan(grid)
    (note,) = prepare_data(read)
    left_out = 300 - len(load_corpus("translation", read.cells[0].spec.data).splits[Split.TRAIN].sources)
    assert 0 < left_out < 300
    assert note == (
        f"synthetic-translation: {left_out} of 300 training pairs are left out;"
        " a side is empty or has more than 8 tokens (data.max_tokens)"
    )
    assert prepare_data(plan(GRID)) == []


@pytest.mark.parametrize(
    ("task", "data", "training", "fault"),
    [
        (
            "prediction",
            "{corpus: synthetic-language, train_lines: 9}",
            "batch_tokens: 512, length: 16",
            "tokens of training text do not fill 32 streams of 16",
        ),
        (
            "set",
            "{corpus: synthetic-sets, train_examples: 9}",
            "batch_tokens: 512",
            "9 training examples do not fill a batch",
        ),
    ],
)
def test_what_does_not_fill_one_batch_is_refused_before_anything_starts(plan, task, data, training, fault):
    (message,) = refused(plan(f"task: {task}\ndata: {data}\ntraining: {{{training}}}\n"))
    assert message.startswith("grid.yaml:3:") and fault in message
