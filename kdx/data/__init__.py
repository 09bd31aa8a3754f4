"""Text to token ids, on one path for every corpus: text, generated or prepared → vocabulary → ids → cache.

`prepare` copies real text into the data home once, checked; `corpus` turns a `kdx.grid.spec.Data` into tokens and keeps
them by content hash, so that a run opens in milliseconds and text that changed is never mixed up with the text of
before. Examples that are no text are arrays, generated and kept in the same way. Only `batching` knows torch.
"""

from kdx.data import (
    iwslt14,
    multi30k,
    synthetic_images,
    synthetic_language,
    synthetic_sets,
    synthetic_streams,
    synthetic_tours,
    synthetic_translation,
    wikitext2,
    wikitext103,
    wmt14,
)
from kdx.data.examples import GeneratedExamples
from kdx.data.text import GeneratedText, KnownText

# What kdx knows by name: a generated corpus needs nothing else, a known one is to be prepared from its archive.
BUILT_IN: dict[str, GeneratedText | GeneratedExamples | KnownText] = {
    "synthetic-translation": synthetic_translation.TEXT,
    "synthetic-language": synthetic_language.TEXT,
    "synthetic-images": synthetic_images.EXAMPLES,
    "synthetic-sets": synthetic_sets.EXAMPLES,
    "synthetic-streams": synthetic_streams.EXAMPLES,
    "synthetic-tours": synthetic_tours.EXAMPLES,
    "multi30k": multi30k.TEXT,
    "iwslt14": iwslt14.TEXT,
    "wikitext2": wikitext2.TEXT,
    "wikitext103": wikitext103.TEXT,
    **wmt14.TEXTS,
}

# What is prepared together, from one folder, in so far as it is there.
FAMILIES = {"wmt14": tuple(wmt14.TEXTS)}
