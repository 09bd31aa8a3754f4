"""A cell in plain values, whether this kdx knows its names or not."""

import json
from typing import Any

import pytest
from grids import cell

from kdx.grid.resolved_spec import ResolvedSpec
from kdx.grid.spec import CellSpec
from kdx.vocabulary import Direction


def changed(**settings: Any) -> ResolvedSpec:
    """A cell as another kdx may have written it."""
    plain = json.loads(cell().text)
    sections = {key: plain[key] | value for key, value in settings.items() if isinstance(value, dict)}
    return ResolvedSpec.read(json.dumps(plain | settings | sections))


def test_what_was_read_is_the_cell_that_was_written() -> None:
    spec = cell(kernel="rbf", memory=0)
    read = ResolvedSpec.read(spec.text)
    assert read == ResolvedSpec.of(spec) and read.known == spec and read.unknown == ()


def test_what_every_report_asks_is_answered_of_any_cell() -> None:
    for spec in (ResolvedSpec.of(cell()), changed(kernel="mine", depth=3)):
        assert (spec.task, spec.corpus) == ("translation", "text")
        assert (spec.selection_metric, spec.selection_direction) == ("valid/bleu", Direction.MAX)
        assert "bleu" in spec.test_metrics


def test_nothing_is_known_of_another_kdxs_task() -> None:
    spec = changed(task="dreaming")
    assert (spec.task, spec.test_metrics) == ("dreaming", {})
    assert spec.selection_measure == (spec.selection_direction, "other", "token"), "it compares with its like alone"


def test_names_of_another_kdx_are_words_like_any_other() -> None:
    spec = changed(kernel="mine", depth=3, model={"gates": ["a", "b"]}, position=["spiral", "product"])
    words = {"kernel": "mine", "depth": "3", "model.gates": "a/b", "position": "spiral+product"}
    assert {factor: spec.word(factor) for factor in words} == words
    assert words.items() <= spec.words.items()
    assert set(list(spec.words)[-2:]) == {"depth", "model.gates"}
    assert spec.word("model") is spec.word("unheard-of") is spec.value("model.unheard-of.deeper") is None
    assert spec.value("model.gates") == ["a", "b"] and spec.value("data")["corpus"] == "text"


def test_a_cell_matches_when_it_has_every_word() -> None:
    choices = {"position": ["direct-sum", "product"], "inject": "per-layer", "training": {"steps": 100}}
    spec = ResolvedSpec.of(cell(kernel="rbf", **choices))
    assert spec.matches({"kernel": "rbf", "training.steps": "100", "position": "direct-sum+product"})
    assert spec.matches({})
    assert not spec.matches({"kernel": "rbf", "training.steps": "200"})
    assert not spec.matches({"unheard-of": "none"})
    assert changed(kernel="mine").matches({"kernel": "mine"})


@pytest.mark.parametrize(
    ("settings", "unknown"),
    [
        ({"kernel": "mine"}, ("kernel `mine`",)),
        ({"task": "dreaming"}, ("task `dreaming`",)),
        ({"position": ["product", "spiral"]}, ("position `spiral`",)),
        ({"training": {"schedule": "cyclic"}}, ("training.schedule `cyclic`",)),
        ({"depth": 3}, ("key `depth`",)),
        ({"kernel": "mine", "model": {"gates": "many"}}, ("kernel `mine`", "key `model.gates`")),
        ({"filter": {"decoder-self": "mine"}}, ("filter.decoder-self `mine`",)),
        ({"memory": 3}, ("memory: sentences have nothing before them to remember",)),
    ],
    ids=lambda value: str(value)[:30],
)
def test_what_is_not_known_of_a_cell_is_named_in_a_few_words(
    settings: dict[str, Any], unknown: tuple[str, ...]
) -> None:
    spec = changed(**settings)
    assert (spec.unknown, spec.known) == (unknown, None)


@pytest.mark.parametrize("text", ["", "3", "[]"])
def test_a_text_that_is_no_cell_is_refused(text: str) -> None:
    with pytest.raises(ValueError):
        ResolvedSpec.read(text)


def test_reading_a_cell_validates_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    text = cell().text
    monkeypatch.setattr(CellSpec, "model_validate", lambda *_: pytest.fail("nobody asked"))
    spec = ResolvedSpec.read(text)
    assert spec.words["kernel"] == "exponential" and spec.selection_metric == "valid/bleu"
