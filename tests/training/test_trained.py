"""A model from its cell and its weights, whatever vocabularies it has."""

import dataclasses
import io
import math
import pickle
import re
import warnings
from pathlib import Path

import pytest
import torch
from runs import cell

from kdx.data.corpus import load_corpus
from kdx.data.parallel import load_parallel
from kdx.data.prepare import prepare
from kdx.data.vocabulary import END
from kdx.errors import KdxError
from kdx.grid.spec import CellSpec
from kdx.models.language import LanguageModel
from kdx.models.translation import TranslationModel
from kdx.tasks import TASKS
from kdx.training.trained import Trained, model_of
from kdx.vocabulary import Split


def saved(model: torch.nn.Module) -> bytes:
    buffer = io.BytesIO()
    torch.save(model.state_dict(), buffer)
    return buffer.getvalue()


FILE = Path("best-000000001.ckpt")
SEPARATE = {"embeddings": "separate"}


@pytest.mark.parametrize(
    ("spec", "make"),
    [
        (cell("translation", select=None), lambda spec: TranslationModel(spec, 20)),
        (cell("translation", select=None, model=SEPARATE), lambda spec: TranslationModel(spec, 20, 30)),
        (cell("prediction", select=None), lambda spec: LanguageModel(spec, 20)),
        (cell("prediction", select=None, model={"cutoffs": [8]}), lambda spec: LanguageModel(spec, 20)),
    ],
    ids=["translation", "separate", "prediction", "adaptive"],
)
def test_a_model_comes_back_with_the_same_bits(spec, make):
    model = make(spec)
    again = model_of(spec, saved(model), FILE)
    assert not again.training
    for name, tensor in model.state_dict().items():
        assert torch.equal(again.state_dict()[name], tensor), name


@pytest.mark.parametrize("other", [torch.nn.Linear(2, 2), TranslationModel(cell("translation", select=None), 20)])
def test_weights_of_another_model_are_refused(other):
    with pytest.raises(
        KdxError, match="these weights do not fit the model that this kdx builds for the cell"
    ) as refused:
        model_of(cell("prediction", select=None), saved(other), FILE)
    assert refused.value.place == str(FILE)


@pytest.mark.parametrize(
    "content",
    [b"", b"of another program", pickle.dumps([1])],
    ids=["empty", "text", "pickle"],
)
def test_a_file_that_holds_no_weights_is_refused_by_name_and_runs_nothing(content, figure):
    with pytest.raises(KdxError, match="holds no weights that kdx wrote, and nothing in it was run") as refused:
        model_of(cell("prediction", select=None), content, FILE)
    assert refused.value.place == str(FILE) and refused.value.hint
    figure(f"{len(content)} bytes: {refused.value.problem}")


def test_attention_is_what_the_module_itself_says():
    spec = cell("prediction", select=None)
    model = LanguageModel(spec, 20).eval()
    tokens = torch.randint(4, 20, (2, 6))
    ((name, weights),) = Trained(spec, model, None).attention(tokens).items()
    module = model.get_submodule(name)
    with torch.no_grad():
        assert torch.equal(weights, module.weights(model.input(tokens)))
    assert weights.shape == (2, 2, 6, 6)
    assert not module._forward_pre_hooks


@pytest.fixture
def trained(unbroken, home):
    """A run that was trained, by task, with its text."""

    def of(task: str) -> Trained:
        done = unbroken(task)
        corpus = load_corpus(task, done.spec.data, home)
        module = TASKS[task].of(done.spec, corpus)
        module.model.load_state_dict(done.weights)
        return Trained(done.spec, module.model.eval(), corpus)

    return of


@pytest.mark.slow
def test_it_translates_text_as_its_test_did(trained, unbroken, home):
    lines = tuple(load_parallel(unbroken("translation").spec.data, home).splits[Split.TEST].references)
    sources = [
        trained("translation").corpus.source_vocabulary.decode(tokens)
        for tokens in trained("translation").corpus.splits[Split.TEST].sources
    ]
    told = trained("translation").translate(sources)
    assert len(told) == len(lines) and told == unbroken("translation").lines
    assert trained("translation").translate(sources[3:5], beam=1) == told[3:5]
    assert trained("translation").translate([]) == []


def test_its_perplexity_is_that_of_its_test(trained, unbroken):
    rows = {name: value for (name, _), value in unbroken("translation").rows.items()}
    run = trained("translation")
    text = run.corpus.splits[Split.TEST]
    sides = [
        [words.decode(tokens) for tokens in side]
        for words, side in ((run.corpus.source_vocabulary, text.sources), (run.corpus.target_vocabulary, text.targets))
    ]
    assert run.perplexity(*sides) == pytest.approx(rows["test/perplexity"], rel=1e-5)


def test_perplexity_of_a_stream_is_the_mean_over_its_tokens(trained):
    run = trained("prediction")
    lines = ["the baker is mira .", "", "she waits ."]
    tokens = [token for line in lines for token in (*run.corpus.vocabulary.encode(line), END)]
    read = torch.tensor([[END, *tokens[:-1]]])  # shorter than a segment, so read at once
    with torch.no_grad():
        logits = run.model(read)
    nats = -logits.log_softmax(-1)[0].gather(-1, torch.tensor(tokens)[:, None]).double().mean().item()
    assert len(tokens) <= run.spec.training.length
    assert run.perplexity(lines) == pytest.approx(math.exp(nats), rel=1e-5)


def test_words_that_the_vocabulary_lacks_are_counted(trained):
    run = trained("prediction")
    with pytest.warns(UserWarning, match="2 of 5 tokens of the text are not in .* read as <unk>: The kubernetes"):
        run.perplexity(["The baker is", "<unk> kubernetes"])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        run.perplexity(["the baker <unk>"])


def test_a_line_has_the_labels_of_its_task_the_likeliest_first(tmp_path):
    for split in Split:
        (tmp_path / f"{split}.txt").write_text("good film\nbad film\n" * 9)
        (tmp_path / f"{split}.labels").write_text("yes\nno\n" * 9)
    prepare("films", tmp_path, tmp_path / "home")
    small = {"width": 16, "heads": 2, "inner": 16}
    spec = CellSpec.model_validate({"task": "classification", "data": {"corpus": "films"}, "model": small})
    corpus = load_corpus("classification", spec.data, tmp_path / "home")
    run = Trained(spec, TASKS["classification"].of(spec, corpus).model.eval(), corpus)
    good, both = run.classify(["good film", "bad good film"])
    assert [*good] == sorted(good, key=good.get, reverse=True) and {*both} == {"yes", "no"}
    assert sum(good.values()) == pytest.approx(1) and run.classify("good film") == [good]
    assert re.fullmatch("<Trained: classification, kernel exponential, position none, [0-9,]+ parameters>", repr(run))


def test_attention_of_text_is_that_of_its_tokens(trained):
    run = trained("prediction")
    line = "the baker is mira ."
    (weights,) = run.attention(line).values()
    tokens = torch.tensor([[END, *run.corpus.vocabulary.encode(line)]])
    assert torch.equal(weights, run.attention(tokens)["decoder.layers.0.self_attention"])
    with pytest.warns(UserWarning, match="1 of 2 tokens of the target are not in the vocabulary"):
        result = trained("translation").attention("the dog saw my cat", "la kan")
    assert result["encoder.layers.0.self_attention"].shape[2:] == (6, 6)
    assert result["decoder.layers.0.cross_attention"].shape[2:] == (3, 6)


@pytest.mark.parametrize(
    ("task", "call", "problem"),
    [
        ("prediction", lambda run: run.translate(["a"]), "task prediction does not translate"),
        ("translation", lambda run: run.classify(["a"]), "task translation gives text no labels"),
        (
            "translation",
            lambda run: run.perplexity(["a"]),
            r"task translation takes 2 of text \(source, target\), not 1",
        ),
        ("prediction", lambda run: run.attention("a", "b"), r"task prediction takes 1 of text \(text\), not 2"),
    ],
)
def test_what_its_task_cannot_do_is_refused(trained, task, call, problem):
    with pytest.raises(TypeError, match=problem):
        call(trained(task))


def test_without_its_text_nothing_can_be_read(trained):
    run = dataclasses.replace(trained("translation"), corpus=None)
    with pytest.raises(KdxError, match="`synthetic-translation`, which gave the run its vocabulary, is not here"):
        run.translate(["a"])
