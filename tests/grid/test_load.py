"""From a grid file to its plan, or to all of its faults: whatever stands in a grid."""

import time
import tracemalloc

import pytest
from grids import any_grid, faults_of, written
from hypothesis import HealthCheck, given, settings

from kdx.errors import Faults, Place
from kdx.grid.load import load_grid
from kdx.grid.plan import Plan

SMALL = """
name: small
task: translation
data: {corpus: synthetic-translation}
"""


def test_what_a_grid_extends_may_have_options_that_none_of_its_cells_takes(tmp_path):
    written(tmp_path, SMALL + "temperature: 2\n", "base.yaml")
    assert load_grid(written(tmp_path, "extends: base.yaml\nkernel: linear\n")).cells[0].spec.options == {}


def test_axes_multiply_with_approaches_tasks_and_seeds(tmp_path):
    plan = load_grid(
        written(
            tmp_path,
            """
            name: product
            seeds: [3, 5]
            tasks:
              translation: {data: {corpus: synthetic-translation}}
              prediction: {data: {corpus: synthetic-language}}
            approaches:
              One: {position: direct-sum}
              Two: {position: product, symmetry: symmetric}
            axes:
              kernel: [exponential, rbf]
            """,
        )
    )
    assert plan.name == "product" and plan.seeds == (3, 5)
    assert len(plan.cells) == 2 * 2 * 2 and len(plan.runs) == 16
    assert plan.axes == ("task", "approach", "kernel")
    second = plan.cells[1]
    assert dict(second.labels) == {"task": "translation", "approach": "One", "kernel": "rbf"}
    assert second.spec.kernel == "rbf" and second.spec.position == ("direct-sum",)
    assert plan.cells[-1].spec.task == "prediction"
    # One seed of every cell comes before the next seed.
    assert [run.seed for run in plan.runs] == [3] * 8 + [5] * 8


def test_an_axis_of_its_own_name_has_named_choices_that_set_several_factors(tmp_path):
    plan = load_grid(
        written(
            tmp_path,
            SMALL
            + """
            model: {dropout: 0.2}
            approaches: {One: {position: product}, Two: {position: none}}
            axes:
              size: {small: {model: {width: 32, inner: 64}}, large: {model: {width: 64, inner: 128}}}
              kernel: [rbf, exponential]
            tables: [{name: t, rows: [approach, kernel], columns: [size]}]
            """.replace("\n            ", "\n"),
        )
    )
    assert plan.axes == ("approach", "size", "kernel") and len(plan.cells) == 8
    last = plan.cells[-1]
    assert dict(last.labels) == {"approach": "Two", "size": "large", "kernel": "exponential"}
    assert (last.spec.model.width, last.spec.model.inner, last.spec.model.dropout) == (64, 128, 0.2)


def test_a_later_axis_of_named_choices_lies_over_an_earlier_one(tmp_path):
    axes = "axes: {size: {large: {model: {dropout: 0.3}}}, language: {de: {}, fr: {model: {dropout: 0.1}}}}\n"
    plan = load_grid(written(tmp_path, SMALL + axes))
    assert [cell.spec.model.dropout for cell in plan.cells] == [0.3, 0.1]


def test_an_extending_grid_takes_out_a_named_choice_and_adds_another(tmp_path):
    written(tmp_path, SMALL + "axes: {size: {a: {norm: pre}, b: {norm: post}}}\n", "base.yaml")
    plan = load_grid(written(tmp_path, "extends: base.yaml\naxes: {size: {a: null, c: {norm: pre}}}\n"))
    assert [cell.labels["size"] for cell in plan.cells] == ["b", "c"]


def test_an_extending_grid_takes_out_the_tables(tmp_path):
    axis = "axes: {kernel: [rbf, linear], norm: [pre, post]}\n"
    base = load_grid(written(tmp_path, SMALL + axis + "tables: [{name: t, rows: [norm, kernel]}]\n", "base.yaml"))
    plan = load_grid(written(tmp_path, "extends: base.yaml\ntables: null\n"))
    assert [table.rows for table in base.tables] == [("norm", "kernel")]
    assert plan.tables == load_grid(written(tmp_path, SMALL + axis, "other.yaml")).tables


def test_the_preset_of_a_choice_lies_under_all_that_the_grid_sets(tmp_path):
    text = """
    preset: translation-mini
    training: {warmup: 7}
    axes:
      training.steps: [3, 5]
      size:
        mini: {}
        paper: {preset: translation-paper, model: {heads: 8}}
    """
    cells = load_grid(written(tmp_path, text)).cells
    mini, paper = (load_grid(f"presets/translation-{size}").cells[0].spec for size in ("mini", "paper"))
    assert [cell.labels["size"] for cell in cells] == ["mini", "paper"] * 2
    assert [cell.spec.training.steps for cell in cells] == [3, 3, 5, 5]
    assert {cell.spec.training.warmup for cell in cells} == {7}
    assert (cells[0].spec.model, cells[0].spec.data) == (mini.model, mini.data)
    assert cells[1].spec.model == paper.model.model_copy(update={"heads": 8})
    assert cells[1].spec.data == paper.data


def test_the_name_of_a_grid_without_one_is_its_files(tmp_path):
    assert (
        load_grid(written(tmp_path, "task: prediction\ndata: {corpus: synthetic-language}\n", "my.yaml")).name == "my"
    )


def test_the_preset_of_a_task_takes_the_place_of_the_grids(tmp_path):
    text = "preset: translation-mini\ntasks: {translation: {}, prediction: {preset: prediction-mini}}\n"
    corpora = [cell.spec.data.corpus for cell in load_grid(written(tmp_path, text)).cells]
    assert corpora == ["multi30k", "wikitext2"]


def test_an_extending_grid_takes_another_preset(tmp_path):
    written(tmp_path, "preset: translation-paper\nkernel: rbf\n", "base.yaml")
    plan = load_grid(written(tmp_path, "extends: base.yaml\npreset: translation-mini\n"))
    assert plan.cells[0].spec.data.corpus == "multi30k"
    assert plan.cells[0].spec.kernel == "rbf"


def test_a_billion_runs_are_counted_not_built(tmp_path, figure):
    names = ["steps", "warmup", "batch_tokens", "record_every", "accumulate", "threads", "validate_every"]
    axes = "".join(f"      training.{name}: [1, 2, 3, 4, 5, 6, 7, 8, 9, 10]\n" for name in names)
    axes += "      model.inner: [1, 2, 3, 4, 5, 6, 7, 8, 9, 10]\n      data.seed: [1, 2, 3, 4, 5, 6, 7, 8, 9, 10]\n"
    tracemalloc.start()
    begun = time.monotonic()
    messages = faults_of(tmp_path, SMALL + "axes:\n" + axes)
    seconds, (_, peak) = time.monotonic() - begun, tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert messages == ["grid.yaml:5:1: 1,000,000,000 runs\n  allowed: at most 10,000\n  hint: see --max-runs"]
    figure(f"{10 ** axes.count('['):,} runs refused in {seconds:.3f} s with {peak / 1e3:.0f} kB")


def test_a_table_may_have_a_slice_that_its_corpus_tells_and_no_other(tmp_path):
    text = "task: answer\ndata: {{corpus: recall}}\ntables: [{{name: t, rows: kernel, metric: {metric}}}]\n"
    plan = load_grid(written(tmp_path, text.format(metric="accuracy/pairs=5-8")))
    assert plan.tables[0].metric == "accuracy/pairs=5-8"


def test_difficulty_has_an_effect_on_the_corpora_of_an_axis_that_have_it(tmp_path):
    grid = "task: answer\naxes: {data.corpus: [recall, copy], data.pairs: [2]}\n"
    plan = load_grid(written(tmp_path, grid))
    assert [cell.spec.data.option("pairs") for cell in plan.cells] == [2, None]
    assert [cell.labels["data.pairs"] for cell in plan.cells] == ["2", "none"]


@pytest.mark.parametrize(
    ("setting", "searched"),
    [
        ("schedule: constant, final_rate: 0.2", "training.schedule: [constant, cosine]"),
        ("momentum: 0.5", "training.optimiser: [adamw, muon]"),
    ],
)
def test_a_setting_that_only_some_trials_use_has_an_effect(tmp_path, setting, searched):
    grid = tmp_path / "tuned.yaml"
    grid.write_text(
        f"task: prediction\ndata: {{corpus: synthetic-language}}\ntraining: {{steps: 20, warmup: 5, {setting}}}\n"
        f"tune: {{parameters: {{{searched}}}, sampler: grid, trials: 2}}\n"
    )
    assert load_grid(str(grid)).searched


@settings(max_examples=300, suppress_health_check=[HealthCheck.too_slow])
@given(any_grid())
def test_any_grid_gives_a_plan_or_faults(tmp_path_factory, text):
    file = tmp_path_factory.mktemp("grid") / "grid.yaml"
    file.write_text(text, encoding="utf-8", errors="surrogatepass")
    try:
        assert isinstance(load_grid(file), Plan)
    except Faults as refusal:
        for fault in refusal.faults:
            assert fault.problem and (isinstance(fault.place, Place) or fault.place == str(file)), fault


def test_a_setting_that_one_task_uses_is_without_effect_in_the_others(tmp_path):
    text = "data: {corpus: text}\nmodel: {encoder_layers: 3, decoder_layers: 3, embeddings: shared}\n"
    plan = load_grid(written(tmp_path, text + "tasks: {prediction: {}, translation: {}}\n"))
    assert [cell.spec.model.encoder_layers for cell in plan.cells] == [0, 3]
    (only,) = load_grid(written(tmp_path, text.replace("encoder_layers: 3, ", "") + "task: prediction\n")).cells
    assert only.id == plan.cells[0].id


def test_an_option_that_some_cell_takes_is_without_effect_in_the_others(tmp_path):
    plan = load_grid(written(tmp_path, SMALL + "axes: {kernel: [linear, rbf], temperature: [1, 2]}\n"))
    assert [cell.spec.option("temperature") for cell in plan.cells] == [None, 1.0, 2.0]
    assert [(cell.ordinal, cell.labels["temperature"]) for cell in plan.cells] == [(0, "none"), (1, "1"), (2, "2")]


def test_a_note_says_which_axis_makes_no_difference(tmp_path):
    axes = "axes: {encoding: [learned, sinusoidal], kernel: [rbf, elu]}\n"
    (note,) = load_grid(written(tmp_path, SMALL + axes)).notes
    assert note == "`encoding` makes no difference to any cell"
    searched = (
        axes.replace("}", ", position: [none, direct-sum]}")
        + "tune: {parameters: {inject: [input, per-layer]}, trials: 2}\n"
    )
    assert "encoding" not in "".join(load_grid(written(tmp_path, SMALL + searched)).notes)


def test_a_note_says_which_choices_the_command_line_overrules(tmp_path):
    grid = written(tmp_path, SMALL + "approaches: {A: {kernel: rbf}, B: {kernel: elu}, C: {norm: pre}}\n")
    assert load_grid(grid).notes == ()
    (replaced,) = load_grid(grid, given=["kernel=linear"]).notes
    assert replaced == "--set replaces the `kernel` of approach A and 1 more"


def test_a_note_says_where_runs_end_within_their_warm_up(tmp_path):
    short = SMALL + "training: {steps: 60}\n"
    (note,) = load_grid(written(tmp_path, short)).notes
    assert note == (
        "the learning rate never reaches its peak: it ends at 30%, as training.steps is 60 and training.warmup 200"
    )
    (note,) = load_grid(written(tmp_path, short + "axes: {training.warmup: [60, 61]}\n")).notes
    assert note.startswith("the learning rate never reaches its peak in 1 of 2 cells: it ends at 98%")
    assert load_grid(written(tmp_path, SMALL)).notes == ()
    searched = "tune: {parameters: {training.warmup: [10, 20]}, trials: 2, sampler: random}\n"
    assert load_grid(written(tmp_path, short + searched)).notes == ()
