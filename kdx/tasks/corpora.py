"""The corpora that kdx knows by name: generated corpora, and published ones that are prepared from their archives.

Each has its own file in `kdx.data.corpora`, with a `kdx.data.text.GeneratedText`, a `kdx.data.text.KnownText` or a
`kdx.data.examples.ExamplesFromNumbers`; or with a class of `kdx.data.examples.ExamplesOneByOne`, whose options are keys
of the grid.
"""

from collections import UserDict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from kdx.words.family import Definition, Family, cached_over_words, imported
from kdx.words.option import Option


@dataclass(frozen=True)
class CorpusDefinition(Definition):
    """See `kdx.data.examples.ExamplesOneByOne`."""

    source: str
    task: str
    slices: tuple[str, ...]


DIFFICULTIES: Family[Any, CorpusDefinition] = Family(
    "corpus",
    CorpusDefinition,
    "kdx.data.examples:ExamplesOneByOne",
)
"""The corpora whose difficulty the grid chooses."""


@cached_over_words
def options_of_corpora() -> dict[str, tuple[Option, ...]]:
    """Return name → the options that corpora declare under it, one for each corpus."""
    options: dict[str, tuple[Option, ...]] = {}
    for corpus in DIFFICULTIES.definitions():
        for option in corpus.options:
            options[option.name] = (*options.get(option.name, ()), option)
    return options


class _Corpora(UserDict[str, Any]):
    """Name → corpus, imported when needed; each of `DIFFICULTIES` has its default difficulty."""

    def __init__(self, addresses: Mapping[str, str]) -> None:
        """Take name → `module:name`, such as `kdx.data.corpora.multi30k:TEXT`."""
        self.addresses = dict(addresses)
        super().__init__(addresses)

    def __getitem__(self, name: str) -> Any:
        if name in DIFFICULTIES:
            return DIFFICULTIES[name]()
        corpus = self.data[name]
        return imported(corpus) if isinstance(corpus, str) else corpus

    def __contains__(self, name: object) -> bool:
        return name in DIFFICULTIES or super().__contains__(name)


BUILT_IN = _Corpora(
    {
        "synthetic-translation": "kdx.data.corpora.synthetic_translation:TEXT",
        "synthetic-language": "kdx.data.corpora.synthetic_language:TEXT",
        "synthetic-order": "kdx.data.corpora.synthetic_order:TEXT",
        "synthetic-images": "kdx.data.corpora.synthetic_images:EXAMPLES",
        "synthetic-sets": "kdx.data.corpora.synthetic_sets:EXAMPLES",
        "synthetic-streams": "kdx.data.corpora.synthetic_streams:EXAMPLES",
        "synthetic-tours": "kdx.data.corpora.synthetic_tours:EXAMPLES",
        **DIFFICULTIES.addresses,
        "multi30k": "kdx.data.corpora.multi30k:TEXT",
        "iwslt14": "kdx.data.corpora.iwslt14:TEXT",
        "wikitext2": "kdx.data.corpora.wikitext2:TEXT",
        "wikitext103": "kdx.data.corpora.wikitext103:TEXT",
        "eltec-eng": "kdx.data.corpora.eltec_eng:TEXT",
        "tatoeba-deu-eng": "kdx.data.corpora.tatoeba_deu_eng:TEXT",
        "wmt14-en-de": "kdx.data.corpora.wmt14:EN_DE",
        "wmt14-en-fr": "kdx.data.corpora.wmt14:EN_FR",
    }
)
