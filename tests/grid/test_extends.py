"""What a grid extends lies under it, file by file; presets lie under them all."""

from pathlib import Path

import pytest

from kdx.errors import Faults, KdxError, Place
from kdx.grid.extends import extended, preset_of
from kdx.grid.source import Node

HERE = Place("grid.yaml", 1, 1)


def test_mappings_merge_key_by_key_over_a_chain_and_each_value_keeps_its_place(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text("name: a\ntraining: {steps: 1, warmup: 1}\nseeds: [1, 2]\n")
    (tmp_path / "b.yaml").write_text("extends: a.yaml\ntraining: {steps: 2}\n")
    (tmp_path / "c.yaml").write_text("extends: b.yaml\nseeds: 3\n")
    root = extended(tmp_path / "c.yaml", [])
    assert root.plain() == {"training": {"steps": 2, "warmup": 1}, "seeds": 3}
    assert root.at(("training", "steps")).file == str(tmp_path / "b.yaml")
    assert root.at(("training", "warmup")).file == str(tmp_path / "a.yaml")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("extends: [a]\n", r"`\[a\]` as extends"),
        ("extends: nowhere.yaml\n", "cannot extend `nowhere.yaml`"),
        ("extends: grid.yaml\n", "a grid that extends itself"),
    ],
)
def test_what_cannot_be_extended_is_refused_where_it_is_named(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "grid.yaml").write_text(text)
    with pytest.raises(Faults, match=message) as refusal:
        extended(tmp_path / "grid.yaml", [])
    assert "grid.yaml:1:10" in str(refusal.value)


def test_a_circle_of_grids_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text("extends: b.yaml\n")
    (tmp_path / "b.yaml").write_text("extends: a.yaml\n")
    with pytest.raises(Faults, match="extends itself"):
        extended(tmp_path / "a.yaml", [])


def test_a_preset_is_one_of_its_task() -> None:
    def named(name: str) -> Node:
        return Node(HERE, {"preset": Node(HERE, name)})

    found = preset_of(named("prediction-mini"), None)
    assert found is not None and found.plain()["task"] == "prediction"
    assert preset_of(Node(HERE, {}), None) is None
    with pytest.raises(KdxError, match="for prediction, not for translation"):
        preset_of(named("prediction-mini"), Node(HERE, "translation"))
    with pytest.raises(KdxError, match="unknown preset `prediction-mni`") as refusal:
        preset_of(named("prediction-mni"), None)
    assert refusal.value.hint == "did you mean `prediction-mini`?"
