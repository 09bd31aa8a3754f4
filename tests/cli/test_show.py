"""`kdx show` says what a run, a cell or a sweep is, and draws curves."""

import json
import math
import re
from pathlib import Path

import pytest
from looked_after import DB, claimed, learned, of_two_kernels, planned, refused, shown, typed

from kdx.grid.load import load_grid
from kdx.store import recording
from kdx.store.database import open_database
from kdx.store.recording import RunWriter

EXAMPLE = Path(__file__).parents[2] / "runs.db.example"


def test_curves_are_those_of_the_selected_runs_one_over_the_other():
    runs = of_two_kernels()
    for number, run in enumerate(runs, 2):
        learned(run, float(number))
    text = typed("show", "tiny", "--curves").stdout
    best = [
        min((run for run in runs if run.cell_id == cell), key=lambda run: run.id)
        for cell in dict.fromkeys(r.cell_id for r in runs)
    ]
    assert text.index("valid/loss") < text.index("train/loss")
    for letter, run in zip("ab", best, strict=True):
        assert text.count(f"\n{letter} ━ run {run.id} · ") == 2
    found = shown("tiny", "train/loss", "--curves")["curves"]
    assert [(curve["metric"], curve["steps"], curve["values"][0]) for curve in found] == [
        ("train/loss", [*range(1, 11)], 2.0),
        ("train/loss", [*range(1, 11)], 3.0),
    ]
    of_a_cell = typed("show", runs[0].cell_id, "--curves").stdout
    assert all(f"run {run.id} · seed {run.seed}" in of_a_cell for run in runs if run.cell_id == runs[0].cell_id)
    assert typed("show", str(runs[0].id), "--curves").stdout.endswith(
        f"\n━ run {runs[0].id}       0.2000  0.2000 at 10\n"
    )


def test_each_task_of_a_sweep_has_figures_of_its_own_by_the_metric_that_selects():
    text = typed("show", "tsai2019/table1-mini", "--curves", "--db", str(EXAMPLE)).stdout
    titles = [line for line in text.splitlines() if re.match("(translation|prediction): ", line)]
    assert titles == [
        "translation: valid/bleu",
        "translation: train/loss",
        "prediction: valid/perplexity",
        "prediction: train/loss",
    ]
    legend = re.findall(r"^(\w) ━ (run \d+) · (.*) · seed \d +([\d.]+)", text, re.MULTILINE)
    assert {what for _, _, what, _ in legend} == {
        "Vaswani et al. (2017), Eq. 4",
        "Shaw et al. (2018), Eq. 6",
        "Dai et al. (2019), Eq. 5",
        "Tsai et al. (2019), Eq. 9",
    }, "the task is in the title"
    assert len({run for _, run, _, _ in legend}) == 8 and len({(letter, what) for letter, _, what, _ in legend}) == 4
    bleu, _, perplexity, _ = ([float(last) for *_, last in legend[at : at + 4]] for at in range(0, 16, 4))
    assert bleu == sorted(bleu, reverse=True) and perplexity == sorted(perplexity)
    one = typed(
        "show", "tsai2019/table1-mini", "task=prediction", "--curves", "valid/loss", "--db", str(EXAMPLE)
    ).stdout
    assert one.splitlines()[2] == "valid/loss"


def test_a_curve_that_is_not_finite_is_null_in_json():
    (first,) = planned(1)
    claimed(first)
    with open_database(DB, write=True) as database:
        RunWriter(database, first.id, "me", 1).record([("train/loss", 1, math.nan)], 1)
    (curve,) = shown(str(first.id), "--curves")["curves"]
    assert curve["values"] == [None]


@pytest.mark.slow
@pytest.mark.parametrize("suffix", ["svg", "png", "pdf", "SVG"])
def test_the_same_figure_goes_into_a_file(suffix):
    (first,) = planned(1)
    learned(first, 6.0)
    said = typed("show", str(first.id), "--to", f"figure.{suffix}")
    assert said.stdout == f"figure.{suffix}\n" and said.stderr == "drew 2 curves of valid/loss, train/loss\n"
    assert Path(f"figure.{suffix}").stat().st_size > 1000
    again = refused("show", str(first.id), "--to", f"figure.{suffix}")
    assert again.problem == "this already exists"


def test_bad_input_has_one_message_with_what_was_meant():
    first, *_ = of_two_kernels()
    assert refused("show", "999").problem == "there is no run 999"
    assert refused("show", "tinny").hint == "did you mean `tiny`?"
    assert refused("show", "tiny", "kernl=rbf").hint == "did you mean `kernel`?"
    assert refused("show", "tiny", "kernel=rfb").hint == "did you mean `rbf`?"
    assert refused("show", str(first.id), "seed=0").problem == f"`seed=0` chooses among runs, and run {first.id} is one"
    assert refused("show", "tiny", "--to", "figure.sgv").hint == "did you mean `.svg`?"
    assert refused("show", "tiny", "--to", "figure").hint == "such as figure.svg"
    assert refused("show", "tiny", "--to", "figure.svg", "--json").problem == "--to and --json exclude each other"
    assert refused("show", "tiny", "valid/loss").hint == "--curves draws a metric"
    assert refused("show", "tiny", "--curves").problem == "there is no curve yet"
    learned(first, 6.0)
    assert refused("show", "tiny", "--curves", "valid/los").hint == "did you mean `valid/loss`?"


def test_names_of_another_database_act_on_no_terminal():
    planned(1)
    with open_database(DB, write=True) as database, database.write() as connection:
        connection.exec_driver_sql("UPDATE sweep SET name = ?", ("a\x1b[2Jb",))
        connection.exec_driver_sql("UPDATE sweep_cell SET labels = ?", (json.dumps({"kernel\x1b": "\x07rbf"}),))
    assert not {"\x1b", "\x07"} & set(typed("show").stdout)


def test_every_plan_of_a_sweep_is_shown_with_its_grid_as_written():
    of_two_kernels()
    text = Path("grid.yaml").read_text()
    Path("base.yaml").write_text(text.replace("rbf, linear", "rbf") + "# fewer\n")
    Path("grid.yaml").write_text("extends: base.yaml\nname: tiny\n")
    plan = load_grid("grid.yaml")
    with open_database(DB, write=True) as database:
        recording.register(database, plan, plan.grid)
    lines = typed("show", "tiny", "--plans").stdout.splitlines()
    heads = [line.partition(": ")[2] for line in lines if line.startswith("plan ")]
    assert heads == ["2 cells × 2 seeds", "1 cell × 2 seeds"]
    assert "    extends: base.yaml" in lines and "    # fewer" in lines
    first, second = shown("tiny", "--plans")["plans"]
    assert first["sources"] == {"grid.yaml": text} and set(second["sources"]) == {"grid.yaml", "base.yaml"}
    assert "as a whole" in refused("show", "1", "--plans").problem
    assert "as a whole" in refused("show", "tiny", "kernel=rbf", "--plans").problem
