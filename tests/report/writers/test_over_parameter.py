"""The scores of trials against each parameter."""

import trials

from kdx.report.writers.over_parameter import TrialPoint, over_parameters


def test_a_range_keeps_its_ends_and_scale_and_a_list_its_words():
    rate, dropout = over_parameters(trials.table(trials.search("rbf")).searches[0, 0])
    assert (rate.name, rate.words, rate.span, rate.logarithmic) == (trials.RATE, (), (1e-4, 1e-2), True)
    assert rate.points[1] == TrialPoint(1, 9.5e-3, 20.0, True) and not rate.points[0].best
    assert (dropout.words, dropout.span, dropout.logarithmic) == (("0", "0.1", "0.3"), (0.0, 2.0), False)
    assert [one.at for one in dropout.points] == [1.0, 0.0, 2.0]
