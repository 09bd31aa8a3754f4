"""Fields take words and numbers of their kind, and nothing bent into one."""

import pytest
from pydantic import ValidationError

from kdx.grid.source import written
from kdx.grid.spec import CellSpec


def cell(task: str = "translation", **settings) -> CellSpec:
    if task == "prediction":
        settings = {"training": {"batch_tokens": 1280}, **settings}
    return CellSpec.model_validate({"task": task, "data": {"corpus": "text"}, **settings})


def refusal(task: str = "translation", **settings) -> dict:
    with pytest.raises(ValidationError) as caught:
        cell(task, **settings)
    (detail,) = caught.value.errors()
    return detail


@pytest.mark.parametrize(
    "settings",
    [
        {"training": {"steps": True}},
        {"training": {"steps": "10"}},
        {"training": {"steps": 10.0}},
        {"training": {"learning_rate": float("nan")}},
        {"training": {"learning_rate": float("inf")}},
        {"training": {"betas": [0.9, 1.0]}},
        {"model": {"dropout": -0.1}},
        {"data": {"corpus": "../secret"}},
        {"data": {"corpus": ""}},
        {"kernel": 1},
        {"seed": 3},
    ],
    ids=str,
)
def test_a_value_of_another_kind_is_never_bent_into_one(settings, figure):
    figure(f"refused: {refusal(**settings)['msg']}")


@pytest.mark.parametrize("clip", [-1, 1.5, "never", True])
def test_a_clip_is_a_distance_or_none(clip):
    with pytest.raises(ValidationError):
        cell(position="lookup", clip=clip)
    assert cell(position="lookup", clip="none").option("clip") == "none"


@pytest.mark.parametrize("clip", [-1, 1.5, True, "far", [1]])
def test_a_clip_that_is_no_distance_is_told_once(clip: object) -> None:
    told = refusal(position="lookup", clip=clip)["ctx"]
    assert told["problem"] == f"`{written(clip)}` as clip" and told["allowed"] == "a whole number from 0 on, or none"
