"""The translations of selected runs, with the references of the local corpora."""

from collections.abc import Mapping, Sequence
from functools import cache

from kdx.data.find_text import find_text
from kdx.grid.sections import Data
from kdx.report.table.bleu_randomisation import Translations
from kdx.store.records import SweepRecord
from kdx.vocabulary import Split

TEXTS = "test/translations"
"""The name of a run's output with its translations."""


def translations_of(sweep: SweepRecord, lines: Mapping[int, Sequence[str]]) -> Translations:
    """The translations of a sweep's selected runs.

    Args:
        lines: run id → its translations.
    """

    @cache
    def references(data: Data) -> Sequence[str]:
        text = find_text(data)
        return [" ".join(line.split()) for line in text.lines(Split.TEST, text.suffixes[-1])]

    return Translations(sweep, lines, references)
