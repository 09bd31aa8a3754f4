"""The corpora that kdx knows by name: generated ones, and published ones that are prepared from their archives.

Each has its own file, with a `kdx.data.text.GeneratedText`, a `kdx.data.examples.GeneratedExamples`, or a
`kdx.data.text.KnownText`.
"""

from kdx.definitions import Imported

BUILT_IN = Imported(
    {
        "synthetic-translation": "kdx.data.corpora.synthetic_translation:TEXT",
        "synthetic-language": "kdx.data.corpora.synthetic_language:TEXT",
        "synthetic-order": "kdx.data.corpora.synthetic_order:TEXT",
        "synthetic-images": "kdx.data.corpora.synthetic_images:EXAMPLES",
        "synthetic-sets": "kdx.data.corpora.synthetic_sets:EXAMPLES",
        "synthetic-streams": "kdx.data.corpora.synthetic_streams:EXAMPLES",
        "synthetic-tours": "kdx.data.corpora.synthetic_tours:EXAMPLES",
        "ancestor": "kdx.data.corpora.ancestor:EXAMPLES",
        "relation": "kdx.data.corpora.relation:EXAMPLES",
        "recall": "kdx.data.corpora.recall:EXAMPLES",
        "induction": "kdx.data.corpora.induction:EXAMPLES",
        "copy": "kdx.data.corpora.copy:EXAMPLES",
        "reverse": "kdx.data.corpora.reverse:EXAMPLES",
        "addition": "kdx.data.corpora.addition:EXAMPLES",
        "parity": "kdx.data.corpora.parity:EXAMPLES",
        "listops": "kdx.data.corpora.listops:EXAMPLES",
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
