"""The translations of selected runs, beside the references of the corpora that are here."""

from collections.abc import Mapping, Sequence
from functools import cache

from kdx.data.find_text import find_text
from kdx.data.storage import data_home
from kdx.grid.sections import Data
from kdx.report.table.bleu_randomisation import Translations
from kdx.store.records import SweepRecord
from kdx.vocabulary import Split

TEXTS = "test/translations"
"""The output of a run that holds them."""


def translations_of(sweep: SweepRecord, lines: Mapping[int, Sequence[str]]) -> Translations:
    """What the selected runs of a sweep translated.

    Args:
        lines: run id → its translations.
    """

    @cache
    def references(data: Data) -> Sequence[str]:
        text = find_text(data, data_home())
        return [" ".join(line.split()) for line in text.lines(Split.TEST, text.suffixes[-1])]

    return Translations(sweep, lines, references)
