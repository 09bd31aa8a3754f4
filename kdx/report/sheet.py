"""A sheet: the one shape of everything in rows and columns, between what computes it and what writes it."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

from kdx.grid.table_layout import NO_CHOICE
from kdx.report.table.comparisons import Mark

Column = tuple[str, Sequence[str]]
"""The header of a column, and its text in each row."""
STARTS_NUMBER = re.compile(r"[-+−<>≤≥±∞]*\s?\d")
DIGIT = "\u2007"
"""A blank as wide as a digit."""
SIGNS: dict[Mark | None, str] = {Mark.NOT_DISTINGUISHABLE: "†", Mark.UNTESTED: "‡"}
"""The sign behind a mean that is not the best."""


@dataclass(frozen=True)
class Score:
    """What one place of a table of scores shows; a part that is not shown is empty."""

    score: str = ""
    """The selected test score or the mean; without one, `–` or the reason, such as `diverged k/n`."""
    mean: str = ""
    """The mean beside a selected score."""
    sd: str = ""
    """The spread behind `±`: the standard deviation, or half of the mean's interval."""
    n: str = ""
    note: str = ""
    """Why some seeds have no score, such as `1/3 failed`."""
    aligned: bool = False
    """Whether `score` lines up with the numbers of its column."""
    mark: Mark | None = None
    """How the cell compares with the best of its column."""
    value: float | None = None
    """The number in full precision, to sort by."""
    anchor: str = ""
    """The name of the place on a page that has the runs behind the score."""

    @property
    def best(self) -> bool:
        return self.mark is Mark.BEST

    @property
    def sign(self) -> str:
        """The sign behind a mean that is not the best, † or ‡; empty where there is none."""
        return SIGNS.get(self.mark, "")

    @property
    def marks_mean(self) -> bool:
        """Whether the mark stands at the mean beside the score, and not at the score; none stands at a ∞."""
        return self.mean not in ("", "nan", "∞", "-∞")


@dataclass(frozen=True)
class Sheet:
    """A table of scores, or a plain table of words below or beside one."""

    title: str
    """The name of a table, or what else the rows are."""
    key: tuple[str, ...]
    """Identifies the sheet in a report: the name of its table, and its kind unless it is the table itself."""
    headers: tuple[str, ...]
    """The innermost header of each column."""
    names: int
    """Number of columns on the left that are names; the others are numbers, or scores."""
    rows: tuple[tuple[str | Score, ...], ...]
    notes: tuple[str, ...]
    """Paragraphs below the rows."""
    above: tuple[tuple[str, ...], ...] = ()
    """The headers above those of the columns that are no names, outermost first; empty without any."""
    caption: str = ""
    """What stands behind the title."""
    of_scores: bool = False
    """Whether the columns that are no names have scores. Names of a row that repeat the row above are then left out."""

    def levels(self, at: int) -> tuple[str, ...]:
        """The headers of a column, outermost first."""
        above = self.above[at - self.names] if self.above and at >= self.names else ()
        return (*above, self.headers[at])

    def texts(self, at: int) -> list[str]:
        """The words of a column that has no scores."""
        return [cell for row in self.rows if isinstance(cell := row[at], str)]

    def is_of_words(self, at: int) -> bool:
        """Whether a column is aligned as words: one of names, or of words or signs without a number."""
        texts = self.texts(at)
        signs_alone = set("".join(texts)) <= {NO_CHOICE, " "}
        return at < self.names or not (self.of_scores or any(map(STARTS_NUMBER.match, texts)) or signs_alone)

    def scores(self, at: int) -> list[Score]:
        """The places of a column of scores."""
        return [cell for row in self.rows if isinstance(cell := row[at], Score)]

    def row_names(self) -> list[list[str]]:
        """The names of each row, blank where a table of scores repeats those of the row above."""
        names = [[str(cell) for cell in row[: self.names]] for row in self.rows]
        return unless_repeated(names) if self.of_scores else names


def listing(
    title: str, key: tuple[str, ...], names: Sequence[Column], columns: Sequence[Column], notes: Sequence[str]
) -> Sheet:
    """A plain table of words: columns of names on the left, others to their right."""
    headers, texts = zip(*names, *columns, strict=True)
    return Sheet(title, key, headers, len(names), tuple(zip(*texts, strict=True)), tuple(notes))


def lined_up(scores: Sequence[Score], blank: str = " ") -> Iterator[tuple[Score, str, str]]:
    """Each place of a column of scores, with the mean beside the score, and the text to their right: spread, n, note.

    Args:
        blank: pads numbers so that they line up; it is as wide as a digit.
    """
    mean = max((len(score.mean) for score in scores), default=0)
    sd, n = (max((len(getattr(score, name)) for score in scores if score.aligned), default=0) for name in ("sd", "n"))
    for score in scores:
        if not score.aligned:
            yield score, "", score.note
            continue
        parts = [f"{'±' if score.sd else blank} {score.sd.rjust(sd, blank)}"] * bool(sd)
        parts += [score.n.rjust(n, blank)] * bool(n)
        beside = f"{' '.join(parts)}{f'  {score.note}' if score.note else ''}".rstrip()
        yield score, score.mean.rjust(mean, blank), beside


def unless_repeated(headers: Sequence[Sequence[str]]) -> list[list[str]]:
    """The levels of each header, blank where they repeat the header before it."""
    return [
        ["" if [*before[: level + 1]] == [*header[: level + 1]] else word for level, word in enumerate(header)]
        for before, header in zip([(), *headers], headers, strict=False)
    ]


def spans(headers: Sequence[Sequence[str]], level: int) -> list[tuple[str, int]]:
    """The words of one level of headers, each with the number of neighbours that share it and all levels above it."""
    groups = groupby(headers, key=lambda header: tuple(header[: level + 1]))
    return [(shared[level], len(list(group))) for shared, group in groups]
