"""The corpora that kdx knows by name: generated ones, and published ones that are prepared from their archives.

Each has its own file, with a `kdx.data.text.GeneratedText`, a `kdx.data.examples.ExamplesFromNumbers` or a
`kdx.data.text.KnownText`; or with a class of `kdx.data.examples.ExamplesOneByOne`, whose options are keys of the grid.
"""

from dataclasses import dataclass
from typing import Any

from kdx.definitions import Definition, Family, Imported, Option, cached_over_words


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
    {
        "ancestor": "kdx.data.corpora.ancestor:Ancestor",
        "relation": "kdx.data.corpora.relation:Relation",
        "edge-label": "kdx.data.corpora.edge_label:EdgeLabel",
        "neighbour": "kdx.data.corpora.neighbour:Neighbour",
        "recall": "kdx.data.corpora.recall:Recall",
        "induction": "kdx.data.corpora.induction:Induction",
        "copy": "kdx.data.corpora.copy:Copy",
        "reverse": "kdx.data.corpora.reverse:Reverse",
        "addition": "kdx.data.corpora.addition:Addition",
        "parity": "kdx.data.corpora.parity:Parity",
        "listops": "kdx.data.corpora.listops:ListOps",
    },
)
"""The corpora whose difficulty is for the grid to say."""


@cached_over_words
def options_of_corpora() -> dict[str, tuple[Option, ...]]:
    """Name → what corpora declare under it, for all that declare it."""
    found: dict[str, tuple[Option, ...]] = {}
    for known in DIFFICULTIES.definitions():
        for one in known.options:
            found[one.name] = (*found.get(one.name, ()), one)
    return found


class _Corpora(Imported):
    """With those of `DIFFICULTIES`, each at the difficulty that it has unless said otherwise."""

    def __getitem__(self, name: str) -> Any:
        return DIFFICULTIES[name]() if name in DIFFICULTIES else super().__getitem__(name)

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
        **{word: DIFFICULTIES.address(word) for word in DIFFICULTIES},
        "multi30k": "kdx.data.corpora.multi30k:TEXT",
        "iwslt14": "kdx.data.corpora.iwslt14:TEXT",
        "wikitext2": "kdx.data.corpora.wikitext2:TEXT",
        "wikitext103": "kdx.data.corpora.wikitext103:TEXT",
        "wmt14-en-de": "kdx.data.corpora.wmt14:EN_DE",
        "wmt14-en-fr": "kdx.data.corpora.wmt14:EN_FR",
    }
)

# Corpora that are prepared together from one folder, as far as it has them.
FAMILIES = {"wmt14": ("wmt14-en-de", "wmt14-en-fr")}
