"""From a grid file to its plan: what is read, and what is refused with which words."""

import time
import tracemalloc
from pathlib import Path

import pytest
from grids import faults_of, written

from kdx.attention.kernels import KERNELS
from kdx.errors import Faults
from kdx.grid.load import load_grid

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


def test_a_number_of_seeds_counts_from_zero_and_the_command_line_overrules_it(tmp_path):
    file = written(tmp_path, SMALL + "seeds: 3\n")
    assert load_grid(file).seeds == (0, 1, 2)
    assert load_grid(file, seeds=(7,)).seeds == (7,)


def test_an_axis_may_reach_into_a_section(tmp_path):
    plan = load_grid(written(tmp_path, SMALL + "axes: {training.learning_rate: [1e-3, 3e-3]}\n"))
    assert [cell.spec.training.learning_rate for cell in plan.cells] == [0.001, 0.003]
    assert [cell.labels["training.learning_rate"] for cell in plan.cells] == ["0.001", "0.003"]


def test_choices_that_come_to_one_cell_share_its_runs(tmp_path, figure):
    plan = load_grid(
        written(tmp_path, SMALL + "axes: {position: [none, product], placement: [[decoder-self], [encoder-self]]}\n")
    )
    assert len(plan.cells) == 4
    assert plan.cells[0].id == plan.cells[1].id
    assert len(plan.runs) == 3
    figure(f"{len(plan.cells)} choices, {len({cell.id for cell in plan.cells})} cells, {len(plan.runs)} runs")


def test_a_grid_extends_another_and_overrules_it(tmp_path):
    written(tmp_path, SMALL + "training: {steps: 50, warmup: 5}\nseeds: 4\n", "base.yaml")
    plan = load_grid(written(tmp_path, "extends: base.yaml\nname: mini\ntraining: {steps: 7}\n"))
    assert plan.name == "mini" and plan.seeds == (0, 1, 2, 3)
    assert (plan.cells[0].spec.training.steps, plan.cells[0].spec.training.warmup) == (7, 5)


def test_what_is_wrong_with_an_extended_grid_is_told_of_that_grid(tmp_path):
    written(tmp_path, "", "base.yaml")
    assert faults_of(tmp_path, "extends: base.yaml\n") == [
        "base.yaml: the grid is empty\n  hint: `kdx init` copies examples to start from"
    ]


def test_an_extending_grid_takes_out_an_approach_by_null(tmp_path):
    written(tmp_path, SMALL + "approaches: {One: {position: product}, Two: {position: none}}\n", "base.yaml")
    plan = load_grid(written(tmp_path, "extends: base.yaml\napproaches: {Two: null}\n"))
    assert [cell.labels["approach"] for cell in plan.cells] == ["One"]


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


def test_a_preset_lies_under_all_that_the_grid_sets(tmp_path):
    plan = load_grid(written(tmp_path, "preset: translation-mini\nmodel: {heads: 8}\naxes: {training.steps: [3, 5]}\n"))
    preset = load_grid("presets/translation-mini").cells[0].spec
    first, second = (cell.spec for cell in plan.cells)
    assert first.data == preset.data
    assert first.model == preset.model.model_copy(update={"heads": 8})
    assert first.training == preset.training.model_copy(update={"steps": 3})
    assert second.training.steps == 5


def test_the_preset_of_a_task_takes_the_place_of_the_grids(tmp_path):
    text = "preset: translation-mini\ntasks: {translation: {}, prediction: {preset: prediction-mini}}\n"
    corpora = [cell.spec.data.corpus for cell in load_grid(written(tmp_path, text)).cells]
    assert corpora == ["multi30k", "wikitext2"]


def test_an_extending_grid_takes_another_preset(tmp_path):
    written(tmp_path, "preset: translation-paper\nkernel: rbf\n", "base.yaml")
    plan = load_grid(written(tmp_path, "extends: base.yaml\npreset: translation-mini\n"))
    assert plan.cells[0].spec.data.corpus == "multi30k"
    assert plan.cells[0].spec.kernel == "rbf"


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("preset: translation-mimi", "grid.yaml:1:9: unknown preset `translation-mimi`"),
        ("preset: [a]", "grid.yaml:1:9: unknown preset `[a]`"),
        (
            "tasks: {prediction: {preset: translation-mini}}",
            "grid.yaml:1:30: preset `translation-mini` is for translation, not for prediction",
        ),
        (
            "preset: translation-mini\napproaches: {A: {preset: prediction-mini}}",
            "grid.yaml:2:26: preset `prediction-mini` is for prediction, not for translation",
        ),
        (
            "preset: translation-mini\naxes: {size: {A: {preset: huge}}}",
            "grid.yaml:2:27: unknown preset `huge`",
        ),
    ],
)
def test_a_preset_that_does_not_fit_is_told(tmp_path, text, fault):
    assert faults_of(tmp_path, text)[0].startswith(fault)


def test_every_fault_is_told_at_once_with_place_value_and_remedy(tmp_path, figure):
    told = faults_of(
        tmp_path,
        """\
        name: faulty
        task: translation
        data: {corpus: synthetic-translation, vocabulry: word}
        kernel: rfb
        model: {width: 65, heads: 4}
        training: {steps: no, learning_rate: 12:30}
        seeds: []
        colour: blue
        """,
    )
    assert told == [
        "grid.yaml:3:39: unknown key `data.vocabulry`\n"
        "  hint: did you mean `vocabulary`?\n"
        "  allowed: corpus, source, target, vocabulary, vocabulary_size, merges, dictionaries, train_lines,"
        " train_examples, max_tokens, seed",
        f"grid.yaml:4:9: unknown kernel `rfb`\n  hint: did you mean `rbf`?\n  allowed: {', '.join(KERNELS)}",
        "grid.yaml:5:16: width 65 does not divide by 4 heads\n  hint: take 64 or 68",
        "grid.yaml:6:19: `no` as training.steps\n  allowed: a whole number from 1 on",
        "grid.yaml:6:38: `12:30` as training.learning_rate\n  allowed: a number above 0",
        "grid.yaml:7:8: `[]` as seeds\n  allowed: a number of seeds, a list of different whole numbers from 0,"
        " or {min: 3, max: 12, until: decided}",
        told[6],
    ]
    assert told[6].startswith("grid.yaml:8:1: unknown key `colour`\n  allowed: name, description, extends, seeds")
    figure(f"{len(told)} faults told at once, {sum('did you mean' in fault for fault in told)} with what was meant")


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("axes: {kernl: [rbf]}", "grid.yaml:5:8: unknown axis `kernl`"),
        ("axes: {kernel: []}", "grid.yaml:5:16: `[]` as axes.kernel"),
        ("axes: {kernel: rbf}", "grid.yaml:5:16: `rbf` as axes.kernel"),
        ("axes: [kernel]", "grid.yaml:5:7: a list as axes"),
        ("axes: {kernel: [rbf, rbf]}", "grid.yaml:5:22: `rbf` stands twice on axis `kernel`"),
        ("axes: {training.steps: [10, .nan]}", "grid.yaml:5:29: `.nan` is not a finite number"),
        ("approaches: {A: rbf}", "grid.yaml:5:17: `rbf` as approach"),
        ("approaches: {A: {kernl: rbf}}", "grid.yaml:5:18: unknown key `kernl`"),
        (
            "approaches: {A: {kernel: rbf}}\naxes: {kernel: [rbf]}",
            "grid.yaml:5:18: axis `kernel` and approach `A` both set `kernel`",
        ),
        (
            "axes: {size: {A: {kernel: rbf}}, kernel: [rbf]}",
            "grid.yaml:5:19: axis `kernel` and size `A` both set `kernel`",
        ),
        (
            "axes: {kernel: [rbf], size: {A: {kernel: rbf}}}",
            "grid.yaml:5:34: axis `kernel` and size `A` both set `kernel`",
        ),
        ("axes: {size: {A: rbf}}", "grid.yaml:5:18: `rbf` as axes.size.A"),
        ("axes: {size: {A: {kernl: rbf}}}", "grid.yaml:5:19: unknown key `kernl`"),
        ("axes: {size: {}}", "grid.yaml:5:14: `{}` as axes.size"),
        ("axes: {size: {A: null}}", "grid.yaml:5:15: `axes.size.A` has no value"),
        ("axes: {kernle: null}", "`axes.kernle` has no value"),
        ("axes: {model: {width: [64, 128]}}", "grid.yaml:5:8: `model` as the name of an axis"),
        ("axes: {approach: {A: {kernel: rbf}}}", "grid.yaml:5:8: `approach` as the name of an axis"),
        ("seeds: 0", "grid.yaml:5:8: `0` as seeds"),
        ("seeds: [1, 1]", "grid.yaml:5:8: `[1, 1]` as seeds"),
        ("seeds: true", "grid.yaml:5:8: `true` as seeds"),
        ("tables: {rows: [kernel]}", "grid.yaml:5:9: a mapping as tables"),
        ("tables: [{name: t, rows: [kernl]}]", "grid.yaml:5:27: table `t`: unknown factor `kernl`"),
        ("tables: [{name: t, rows: []}]", "grid.yaml:5:26: `[]` as tables.rows"),
        (
            "tables: [{name: t, rows: kernel, where: {norm: pre}}]",
            "grid.yaml:5:48: table `t`: no cell where norm = pre",
        ),
        ("tables: [{name: t, rows: kernel, where: {clip: [4]}}]", "no cell where clip = 4"),
        ("tables: [{name: t, rows: kernel, where: {clip: {at: 4}}}]", "where.clip"),
        ("tables: [{name: t, rows: kernel, colums: x}]", "grid.yaml:5:34: unknown key `tables.colums`"),
        ("select: {metric: test/bleu}", "grid.yaml:5:18: `test/bleu` selects on the test set"),
        ("select: {metric: accuracy}", "grid.yaml:5:18: unknown validation metric `accuracy`"),
        ("select: {metric: bleu, direction: min}", "grid.yaml:5:35: the good end of bleu is max"),
        ("training: {steps: true}", "grid.yaml:5:19: `true` as training.steps"),
        (
            'training: {steps: "10"}',
            "grid.yaml:5:19: `'10'` as training.steps\n  allowed: a whole number from 1 on\n",
        ),
        ("training: {steps: -1}", "grid.yaml:5:19: `-1` as training.steps"),
        ("training: {steps: 1.5}", "grid.yaml:5:19: `1.5` as training.steps"),
        ("model: {dropout: 1.0}", "grid.yaml:5:18: `1.0` as model.dropout"),
        ("model: {width: 33, heads: 3}\nposition: product", "grid.yaml:5:16: sinusoids need an even width, not 33"),
        ("position: [none, product]", "grid.yaml:5:11: `none` does not go together with a scheme"),
        (
            "position: direct-sum\nvalue: without-position",
            "grid.yaml:6:8: direct-sum at the input puts the position into every value",
        ),
        (
            "position: direct-sum\nplacement: decoder-self",
            "grid.yaml:6:12: direct-sum at the input reaches every attention",
        ),
        ("filter: {decoder-self: full}", "grid.yaml:5:24: the decoder would see what it is to predict"),
        ("tasks: {}", "grid.yaml:3:1: `task` and `tasks` exclude each other"),
        ("extends: absent.yaml", "grid.yaml:5:10: cannot extend `absent.yaml`: no such grid"),
        ("extends: grid.yaml", "grid.yaml:5:10: a grid that extends itself"),
        ("name: ''", "stands twice"),
    ],
)
def test_a_fault_is_told_where_it_is(tmp_path, text, fault):
    told = faults_of(tmp_path, SMALL + f"{text}\n")
    assert any(fault in line for line in told), told


def test_a_billion_runs_are_counted_not_built(tmp_path, figure):
    names = ["steps", "warmup", "batch_tokens", "record_every", "accumulate", "threads", "validate_every"]
    axes = "".join(f"      training.{name}: [1, 2, 3, 4, 5, 6, 7, 8, 9, 10]\n" for name in names)
    axes += "      model.inner: [1, 2, 3, 4, 5, 6, 7, 8, 9, 10]\n      data.seed: [1, 2, 3, 4, 5, 6, 7, 8, 9, 10]\n"
    tracemalloc.start()
    begun = time.monotonic()
    told = faults_of(tmp_path, SMALL + "axes:\n" + axes)
    seconds, (_, peak) = time.monotonic() - begun, tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert told == ["grid.yaml:5:1: 1,000,000,000 runs\n  allowed: at most 10,000\n  hint: see --max-runs"]
    figure(f"{10 ** axes.count('['):,} runs refused in {seconds:.3f} s with {peak / 1e3:.0f} kB")


def test_a_grid_that_is_nowhere_is_refused_with_the_shipped_ones(tmp_path):
    with pytest.raises(
        Faults,
        match=r"no grid `quickstrt`\n  hint: did you mean `quickstart`",
    ):
        load_grid("quickstrt")


def test_a_missing_section_is_told(tmp_path):
    (told,) = faults_of(tmp_path, "task: prediction\n")
    assert told.startswith("grid.yaml:1:1: `data` is missing\n  allowed: a mapping of corpus, source, ")


def test_what_a_space_has_not_is_told_where_it_stands(tmp_path):
    told = faults_of(tmp_path, "task: set\ndata: {corpus: synthetic-sets, train_lines: 9}\nposition: product\n")
    assert told == ["grid.yaml:3:11: the space `set` has no position `product`\n  allowed: none"]
    told = faults_of(tmp_path, "task: set\ndata: {corpus: synthetic-sets, train_lines: 9}\n")
    assert told == ["grid.yaml:2:45: set reads generated examples, not text\n  hint: remove it"]


def test_a_table_may_have_a_slice_that_its_corpus_tells_and_no_other(tmp_path):
    text = "task: answer\ndata: {{corpus: recall}}\ntables: [{{name: t, rows: kernel, metric: {metric}}}]\n"
    plan = load_grid(written(tmp_path, text.format(metric="accuracy/pairs=5-8")))
    assert plan.tables[0].metric == "accuracy/pairs=5-8"
    (fault,) = faults_of(tmp_path, text.format(metric="accuracy/pairs=5-7"))
    assert "table `t`: unknown metric `accuracy/pairs=5-7`" in fault and "accuracy/pairs=5-8" in fault
    (fault,) = faults_of(tmp_path, text.format(metric="accuracy/digits=1"))
    assert "table `t`: unknown metric `accuracy/digits=1`" in fault and "accuracy/distance=5-8" in fault


def test_difficulty_is_refused_where_it_stands(tmp_path):
    told = faults_of(tmp_path, "task: answer\ndata: {corpus: recall, pairs: 0}\n")
    assert told == ["grid.yaml:2:31: `0` as data.pairs\n  allowed: a whole number from 1 on"]
    told = faults_of(tmp_path, "task: answer\ndata: {corpus: copy}\naxes: {data.pairs: [2, 4]}\n")
    problem = "`data.pairs` has no effect: no cell uses it\n  allowed: with recall\n  hint: remove it"
    assert told == [f"grid.yaml:3:21: {problem}"]


def test_difficulty_has_an_effect_on_the_corpora_of_an_axis_that_have_it(tmp_path):
    grid = "task: answer\ndata: {pairs: 2}\naxes: {data.corpus: [recall, copy]}\n"
    plan = load_grid(written(tmp_path, grid))
    assert [cell.spec.data.option("pairs") for cell in plan.cells] == [2, None]


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


@pytest.mark.parametrize("section", ["data", "model", "training"])
def test_an_empty_section_is_refused_also_where_every_task_has_its_own(tmp_path, section):
    text = (Path(__file__).parents[2] / "experiments" / "quickstart.yaml").read_text()
    (tmp_path / "grid.yaml").write_text(f"{text}{section}:\n")
    with pytest.raises(Faults) as caught:
        load_grid(tmp_path / "grid.yaml")
    assert [fault.problem for fault in caught.value.faults] == [f"`{section}` has no value"]
