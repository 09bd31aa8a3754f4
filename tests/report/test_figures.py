"""The scores of trials against a parameter on the terminal."""

import io

import trials
from rich.console import Console

from kdx.report.figures.series import over_parameters
from kdx.report.figures.text import TextTrials


def drawn(which: int, width: int = 60) -> list[str]:
    one = trials.table(trials.search("rbf")).searches[0, 0]
    console = Console(file=io.StringIO(), width=width, color_system=None)
    with console.capture() as captured:
        console.print(TextTrials([*over_parameters(one)][which], one.metric))
    return captured.get().splitlines()


def test_the_best_stands_highest_and_where_its_parameter_is():
    title, *plot, axis, ends, note, rest = drawn(0)
    assert title == "valid/bleu ↑ against training.learning_rate"
    assert plot[0].startswith("20 │") and plot[-1].startswith("10 │") and plot[0].rstrip().endswith("●")
    assert plot[-1].index("·") - 4 in (27, 28), "of 56 columns, 0.001 is in the middle of 0.0001 to 0.01"
    assert axis.startswith("   └") and ends.split() == ["0.0001", "0.01"]
    assert f"{note} {rest}" == "· a trial, * several, ● the best; the parameter's axis is logarithmic."


def test_the_values_of_a_list_stand_below_their_trials():
    *plot, _, ends, _ = drawn(1)
    assert ends.split() == ["0", "0.1", "0.3"]
    assert plot[1].index("●") == 4 and "●" not in plot[-1]


def test_a_narrow_console_is_kept_to():
    assert max(map(len, drawn(0, width=30)[1:-1])) <= 30
