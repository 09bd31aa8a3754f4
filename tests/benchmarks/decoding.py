"""Beam search over batches against one sentence at a time, with the model of `presets/translation-mini`, on a CPU.

Neither trained nor on real text: sources are as long as Multi30k's, and translations go on until they are as long as
their source, so the work is that of a trained model. Both sides find the same translations.
"""

import random
import time

import torch
from torch import Tensor

from kdx.data.vocabulary import PADDING, SPECIAL
from kdx.grid.load import load_grid
from kdx.models.beam import Search
from kdx.models.translation import TranslationModel

BEAMS = (1, 5)
LIMIT = 5.0  # of the larger beam
SENTENCES, ALONE = 400, 40  # so many are translated together, and of these so many one at a time
ROUNDS = 2


def measure() -> dict[str, object]:
    """Sentences a second, the fastest round, and their ratio; one thread."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        model, source = _model(), _sources()
        result = {f"beam {beam}": _measure(model, source, Search(beam, longest=(1.0, 0))) for beam in BEAMS}
    finally:
        torch.set_num_threads(threads)
    return result | {"limit": LIMIT, "within": result[f"beam {BEAMS[-1]}"]["ratio"] >= LIMIT}


def _model() -> TranslationModel:
    torch.manual_seed(0)
    spec = load_grid("presets/translation-mini").runs[0].cell.spec
    assert spec.data.vocabulary_size is not None
    return TranslationModel(spec, spec.data.vocabulary_size).eval()


def _sources() -> Tensor:
    draw = random.Random(0)
    lengths = [min(max(round(draw.lognormvariate(2.72, 0.33)), 6), 45) for _ in range(SENTENCES)]
    tokens = [torch.tensor([draw.randrange(SPECIAL, 4000) for _ in range(length)]) for length in lengths]
    return torch.nn.utils.rnn.pad_sequence(tokens, batch_first=True, padding_value=PADDING)


def _measure(model: TranslationModel, source: Tensor, search: Search) -> dict[str, float]:
    each = SENTENCES // ALONE

    def translated(rows: Tensor) -> list[list[int]]:
        return model.translate(rows, rows == PADDING, search)

    together, alone = float("inf"), float("inf")
    for _ in range(ROUNDS):
        start = time.perf_counter()
        of_all = translated(source)
        between = time.perf_counter()
        of_some = [translated(row[None, row != PADDING])[0] for row in source[::each]]
        end = time.perf_counter()
        together, alone = min(together, between - start), min(alone, end - between)
        assert of_some == of_all[::each]
    return {
        "sentences a second, batched": round(SENTENCES / together, 1),
        "one at a time": round(ALONE / alone, 1),
        "ratio": round(SENTENCES / together / (ALONE / alone), 1),
    }
