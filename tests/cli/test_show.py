"""`kdx show` says what a run, a cell or a sweep is, and draws curves."""

import json
import math
import re
from pathlib import Path

import pytest
import yaml
from looked_after import DB, claimed, completed, learned, of_two_kernels, planned, refused, registered, shown, typed
from trial import trial

from kdx.cli import show
from kdx.cli.shown import layer_lines
from kdx.cli.shown_cell import trial_lines
from kdx.grid.resolved_spec import ResolvedSpec
from kdx.grid.spec import CellSpec
from kdx.grid.tuning import DrawnRange, Pruner, Sampler, Search, Tuning
from kdx.report.selection.searched import searched
from kdx.report.statistics.metric import Metric
from kdx.run_files.files import files_beside
from kdx.run_files.folder_ownership import NOTE
from kdx.store.database import open_database
from kdx.store.recording import RunWriter, repeat
from kdx.store.records import SearchRecord, TrialState
from kdx.tasks import TASKS

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


def test_a_condition_on_runs_holds_for_what_is_drawn_and_changes_no_selection():
    example = ("--db", str(EXAMPLE))
    answer = shown("tsai2019/table1-mini", "seed=0", "task=translation", "valid/bleu", "--curves", *example)
    assert [curve["of"].rpartition(" · ")[2] for curve in answer["curves"]] == ["seed 0"] * 4
    cell = answer["cells"][0]
    assert shown(cell["cell"], "seed=0", *example)["selected"] == cell["selected"] != cell["runs"][0]["run"]


def test_a_metric_of_a_slice_is_drawn():
    name = "test/bleu/source-words=5-8"
    answer = shown("tsai2019/table1-mini", "task=translation", name, "--curves", "--db", str(EXAMPLE))
    assert {curve["metric"] for curve in answer["curves"]} == {name} and len(answer["curves"]) == 4


def test_a_choice_that_is_a_number_has_the_name_of_its_axis():
    text = typed("show", "shaw2018/table2-mini", "--curves", "--db", str(EXAMPLE)).stdout
    assert re.search(r"run \d+ · clip 16 · seed \d", text)


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
    registered("extends: base.yaml\nname: tiny\n")
    lines = typed("show", "tiny", "--plans").stdout.splitlines()
    heads = [line.partition(": ")[2] for line in lines if line.startswith("plan ")]
    assert heads == ["2 cells × 2 seeds", "1 cell × 2 seeds"]
    assert "    extends: base.yaml" in lines and "    # fewer" in lines
    first, second = shown("tiny", "--plans")["plans"]
    assert first["sources"] == {"grid.yaml": text} and set(second["sources"]) == {"grid.yaml", "base.yaml"}
    assert "as a whole" in refused("show", "1", "--plans").problem
    assert "as a whole" in refused("show", "tiny", "kernel=rbf", "--plans").problem


def lines(layers: dict) -> list[str]:
    cell = {
        "task": "prediction",
        "data": {"corpus": "synthetic-language"},
        "position": "rotary",
        "model": {"decoder_layers": 3},
        "layers": layers,
    }
    shown = layer_lines(ResolvedSpec.of(CellSpec.model_validate(cell)))
    return [line.rstrip() for line in shown]


def test_layers_that_differ_have_a_row_each_with_the_choices_in_which_they_differ():
    window = {"filter": {"decoder-self": "window"}, "left": 8}
    assert lines({"odd": window, "2": {"position": "none"}}) == [
        "",
        "  layer      filter.decoder-self  position  placement     options",
        "  decoder 1  window               rotary    decoder-self  left 8",
        "  decoder 2  causal               none      none",
        "  decoder 3  window               rotary    decoder-self  left 8",
    ]


def test_layers_that_are_alike_have_none():
    assert lines({}) == []


def test_a_run_has_its_settings_scores_attempts_place_files_and_log():
    first, *_ = of_two_kernels()
    learned(first, 6.0)
    text = typed("show", str(first.id)).stdout
    lines = text.splitlines()
    assert lines[0] == f"run {first.id}: rbf · seed 0, completed"
    facts = {line.split()[0]: line.split(maxsplit=1)[1] for line in lines[1 : lines.index("")]}
    assert facts["cell"] == first.cell_id and facts["sweeps"] == "tiny" and facts["step"] == "10 of 10"
    assert facts["scores"] == "valid/loss 3.000 at step 10, test/loss 2.000"
    assert facts["ran"] == "on  host here, torch 2.13" and facts["files"] == "log.txt (7 bytes)"
    assert Path(facts["log"]).read_text() == "step 1\n"
    assert "process" in text and " here" in text
    settings = yaml.safe_load(text.partition("settings, of which vary: kernel, temperature\n")[2])
    assert next(iter(settings)) == "kernel" and settings["training"]["steps"] == 10
    found = shown(str(first.id))
    assert (found["run"], found["state"], found["metrics"]) == (first.id, "completed", {"test/loss": 2.0})
    assert found["settings"]["kernel"] == "rbf" and found["varies"] == ["kernel", "temperature"]
    assert found["sweeps"] == [{"sweep": "tiny", "choices": {"kernel": "rbf"}}]
    (attempt,) = found["attempts"]
    assert attempt["outcome"] == "completed" and attempt["machine"] and attempt["process"]
    assert found["files"] == [{"name": "log.txt", "kind": "log", "bytes": 7}] and found["log"] == facts["log"]


def test_a_run_that_never_began_says_no_more_than_there_is():
    first, *_ = planned(1)
    found = shown(str(first.id))
    assert (found["state"], found["attempts"], found["files"], found["log"]) == ("pending", [], [], None)
    assert "log" not in typed("show", str(first.id)).stdout.partition("\n\n")[0].replace("of 10", "")


def test_nothing_is_shown_of_the_files_of_another_database():
    (first,) = planned(1)
    completed(first)
    folder = files_beside(DB)
    (folder / NOTE).write_text("f" * 32)
    assert shown(str(first.id))["files"] == []


RATE = "training.learning_rate"


def test_a_cell_has_its_seeds_and_the_selected_one():
    runs = of_two_kernels()
    cell = runs[0].cell_id
    mine = [run for run in runs if run.cell_id == cell]
    for run, loss in zip(mine, (6.0, 4.0), strict=True):
        learned(run, loss)
    found = shown(cell[:6])
    assert found["cell"] == cell and found["selected"] == mine[1].id
    assert [(run["seed"], run["valid_score"]) for run in found["runs"]] == [(0, 3.0), (1, 2.0)]
    text = typed("show", cell[:6]).stdout
    assert f"selected  run {mine[1].id}, by valid/loss" in text
    assert [run["run"] for run in shown(cell, "seed=1")["runs"]] == [mine[1].id]


def test_the_best_trial_the_cell_itself_and_what_is_not_found_yet_are_marked():
    settings = '{"task": "translation", "data": {"corpus": "synthetic-translation"}}'
    search = Search(
        "0" * 32,
        settings,
        {RATE: DrawnRange(low=1e-4, high=1e-2, log=True)},
        Tuning(trials=3, sampler=Sampler.TPE, pruner=Pruner.MEDIAN),
    )
    trials = (
        trial(0, {RATE: 1e-3}, "a" * 32, TrialState.PRUNED, 1.0),
        trial(1, {RATE: 9.5e-3}, "b" * 32, TrialState.COMPLETED, 12.34567),
        trial(2, {RATE: 2e-3}, None, TrialState.FAILED, None),
    )
    cell = searched(
        SearchRecord(search.id, 0, {"kernel": "rbf"}, search.plain, trials),
        Metric("valid/bleu", TASKS.definition("translation").metrics["bleu"]),
    )
    first, head, pruned, best, failed, edge = (line.rstrip() for line in trial_lines(cell, "a" * 32))
    assert first.endswith("of rbf: 3 of 3 trials have ended; sampler tpe, pruner median, tuning seeds 1000000")
    assert head.split() == ["trial", "cell", "state", "valid/bleu", RATE]
    assert pruned.split() == ["0", "a" * 8, "pruned", "1.00", "0.001", "this", "cell"]
    assert best.split() == ["1", "b" * 8, "completed", "12.35", "0.0095", "the", "best"]
    assert failed.split()[:3] == ["2", "none", "failed"]
    assert edge.strip() == f"{RATE} 0.0095 at the upper edge: not found yet, try 0.01 to 0.1"


def test_a_sweep_has_its_cells_and_what_varies_and_is_the_one_planned_last():
    runs = of_two_kernels()
    learned(runs[0], 6.0)
    found = shown()
    assert found == shown("tiny") == shown("grid.yaml")
    assert found["varies"]["kernel"] == ["rbf", "linear"] and found["seeds"] == [0, 1]
    assert [cell["choices"] for cell in found["cells"]] == [{"kernel": "rbf"}, {"kernel": "linear"}]
    assert [cell["selected"] for cell in found["cells"]] == [runs[0].id, None]
    lines = typed("show").stdout.splitlines()
    assert lines[0] == "sweep tiny"
    (row,) = [line.split() for line in lines if line.startswith(f"  {runs[0].cell_id[:8]}")]
    assert row[1:] == ["rbf", "1", "of", "2", str(runs[0].id), "0", "3.000", "2.000"]
    same = yaml.safe_load("\n".join(lines[lines.index("the same in all cells") + 1 :]))
    assert "kernel" not in same and same["training"]["steps"] == 10
    assert [cell["choices"] for cell in shown("tiny", "kernel=linear")["cells"]] == [{"kernel": "linear"}]
    # The selected run is that of the report, whichever runs are listed, and until a repetition of it has ended.
    with open_database(DB, write=True) as database:
        repeat(database, [runs[0].id])
    for listed in ((), ("seed=1",)):
        assert [cell["selected"] for cell in shown("tiny", *listed)["cells"]] == [runs[0].id, None]


def test_of_many_cells_and_values_the_first_are_listed(monkeypatch):
    monkeypatch.setattr(show, "MOST_CELLS", 3)
    rates = ", ".join(f"0.0{number}" for number in range(1, 10))
    registered(
        "name: many\ntask: translation\ndata: {corpus: synthetic-translation}\n"
        f"axes: {{training.learning_rate: [{rates}]}}\n"
    )
    lines = typed("show").stdout.splitlines()
    assert sum(" of 1" in line for line in lines) == 3
    assert "  … and 6 more cells; kdx status many lists all runs" in lines
    (values,) = [line for line in lines if line.startswith("  training.learning_rate  0.01")]
    assert values.endswith("0.08, … (9 values)")
