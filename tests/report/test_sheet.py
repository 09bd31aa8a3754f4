"""What every format lines up and leaves out alike."""

from kdx.report.sheet import Score, lined_up, spans, unless_repeated


def test_what_stands_beside_the_scores_of_a_column_lines_up() -> None:
    parts = [Score("9.5", "9.38", "0.18", "(2)", aligned=True), Score("30.5", "120.00", n="(12)", aligned=True)]
    parts += [Score("failed 1/1", note="why"), Score("1.0", "1.00", "1.00", "(1)", "failed 1/2", aligned=True)]
    _, means, beside = zip(*lined_up(parts), strict=True)
    assert means == ("  9.38", "120.00", "", "  1.00")
    assert beside == ("± 0.18  (2)", "       (12)", "why", "± 1.00  (1)  failed 1/2")
    assert [text for *_, text in lined_up([Score("1.0", aligned=True), Score()])] == ["", ""]


def test_headers_with_the_same_words_above_them_are_one() -> None:
    headers = [("a", "x"), ("a", "y"), ("b", "y"), ("b", "y")]
    assert spans(headers, 0) == [("a", 2), ("b", 2)]
    assert spans(headers, 1) == [("x", 1), ("y", 1), ("y", 2)]
    assert unless_repeated(headers) == [["a", "x"], ["", "y"], ["b", "y"], ["", ""]]
