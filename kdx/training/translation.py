"""Translation: cross-entropy on the target words; BLEU by sacrebleu on what beam search finds."""

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import torch
from torch import Tensor

from kdx.data.arrays import token_lists
from kdx.data.batching import ParallelBatch, ParallelBatches
from kdx.data.documents import Documents, blocks
from kdx.data.parallel import ParallelCorpus, ParallelText
from kdx.data.vocabulary import END, PADDING, Vocabulary
from kdx.grid.spec import CellSpec
from kdx.models.beam import Search
from kdx.models.translation import TranslationModel
from kdx.tasks.difficulty import slice_name
from kdx.training.bleu import Bleu
from kdx.training.module import Batches
from kdx.training.text import TextModule
from kdx.vocabulary import LengthPenalty, Split


class TranslationModule(TextModule):
    """Encoder–decoder translation.

    The model translates in a test, and in a validation if runs are selected by BLEU. `kdx.training.bleu` scores the
    translations; only a test has `bleu_detokenised`.
    """

    name = "translation"
    reads = "parallel text"
    metrics: ClassVar[Mapping[str, tuple[str, str, str]]] = {
        "bleu": ("max", "percent", "text"),
        "loss": ("min", "nats", "token"),
        "perplexity": ("min", "perplexity", "token"),
        "bits_per_byte": ("min", "bits", "byte"),
    }
    only_test: ClassVar[Mapping[str, tuple[str, str, str]]] = {
        "bleu_detokenised": ("max", "percent", "text"),
    }
    slicings = (("source-words", "number of words in the source sentence", ("bleu", "perplexity")),)
    attentions = ("encoder-self", "encoder-decoder", "decoder-self")
    embeddings = ("shared", "tied", "separate")
    settings = (
        "evaluation.beam",
        "evaluation.valid_beam",
        "evaluation.length_penalty",
        "evaluation.penalty",
        "evaluation.longest",
    )

    texts = ("source", "target")
    model: TranslationModel
    corpus: ParallelCorpus

    def __init__(self, spec: CellSpec, corpus: ParallelCorpus) -> None:
        model = TranslationModel(spec, corpus.target_vocabulary.size, corpus.source_vocabulary.size)
        super().__init__(spec, model, corpus)
        self.bleu = Bleu(tokenised=corpus.tokenised, language=corpus.target)
        self.translations: dict[int, str] = {}
        self._words: dict[int, int] = {}
        """Index of a pair → number of words in its source sentence."""
        self.selects_bleu = spec.selection[0] == "valid/bleu"

    @classmethod
    def batches(cls, spec: CellSpec, corpus: ParallelCorpus, seed: int) -> Batches:
        return Batches.of(lambda split: ParallelBatches(corpus.splits[split], spec.training.batch_tokens, seed))

    @classmethod
    def model_of(cls, spec: CellSpec, state: Mapping[str, Tensor]) -> TranslationModel:
        target, source = (len(state[f"{side}_input.embedding.weight"]) for side in ("target", "source"))
        return TranslationModel(spec, target, source)

    def inputs(self, *texts: str) -> dict[str, Tensor]:
        source, target = texts
        batch = self._pairs([source], [target]).batch(0)
        return {"source": batch.source, "source_padding": batch.source_padding, "target": batch.target_in}

    def vocabulary(self, text: str) -> Vocabulary:
        return self.corpus.source_vocabulary if text == "source" else self.corpus.target_vocabulary

    def translate(self, sentences: Sequence[str], beam: int | None = None) -> list[str]:
        search = self.search(Split.TEST)
        if not sentences:
            return []
        search = search if beam is None else search._replace(beam=beam)
        translated: dict[int, str] = {}
        for batch in self._pairs(sentences, [""] * len(sentences)).in_order():
            translations = self.model.translate(batch.source, batch.source_padding, search)
            for index, tokens in zip(batch.index.tolist(), translations, strict=True):
                translated[index] = self.corpus.target_vocabulary.decode(tokens)
        return [translated[index] for index in range(len(sentences))]

    def nats(self, *texts: Sequence[str]) -> tuple[float, int]:
        sources, targets = texts
        self._start()
        for batch in self._pairs(sources, targets).in_order():
            self.read(batch)
        return self._nats.item(), self._targets

    def _pairs(self, sources: Sequence[str], targets: Sequence[str]) -> ParallelBatches:
        return ParallelBatches(
            ParallelText(
                token_lists([*self.corpus.source_vocabulary.encode(line), END] for line in sources),
                token_lists([*self.corpus.target_vocabulary.encode(line), END] for line in targets),
                references=(),
            ),
            self.spec.training.batch_tokens,
        )

    def hidden_and_targets(self, batch: ParallelBatch) -> tuple[Tensor, Tensor]:
        return self.model.hidden(batch.source, batch.source_padding, batch.target_in), batch.target_out

    def search(self, split: Split) -> Search:
        """Return the beam search of a split."""
        evaluation = self.spec.evaluation
        beam = evaluation.beam if split is Split.TEST else evaluation.valid_beam
        return Search(beam, evaluation.length_penalty, evaluation.penalty, evaluation.longest)

    def _start(self) -> None:
        super()._start()
        self.translations = {}
        self._words = {}

    def _translates(self, split: Split) -> bool:
        return split is Split.TEST or self.selects_bleu

    def evaluate(self, batch: Any, split: Split) -> None:
        super().evaluate(batch, split)
        if self._translates(split):
            translations = self.model.translate(batch.source, batch.source_padding, self.search(split))
            for index, tokens in zip(batch.index.tolist(), translations, strict=True):
                self.translations[index] = self.corpus.target_vocabulary.decode(tokens)

    def measure(self, batch: ParallelBatch, nats: Tensor) -> None:
        # Words, not tokens, so that a sentence is in the same slice whatever the vocabulary.
        decode = self.corpus.source_vocabulary.decode
        words = [len(decode(tokens).split()) for tokens in batch.source.tolist()]
        self._words |= zip(batch.index.tolist(), words, strict=True)
        counted = batch.target_out != PADDING
        words_of_source = torch.tensor(words)[:, None].expand(counted.shape)
        self.slices.add("source-words", words_of_source[counted.cpu()], nats[counted])
        self.by_document.add(batch.index[:, None].expand(counted.shape)[counted], nats=nats[counted])

    def test_documents(self) -> Documents:
        return blocks(len(self.corpus.splits[Split.TEST].sources))

    def outputs(self) -> Mapping[str, list[str]]:
        return {"translations": self.lines()}

    def lines(self) -> list[str]:
        """Return the translations of the last pass, in the order of the corpus."""
        return [self.translations[index] for index in sorted(self.translations)]

    def summarise(self, split: Split) -> dict[str, float]:
        metrics = super().summarise(split)
        if self._translates(split):
            lines, references = self.lines(), list(self.corpus.splits[split].references)
            metrics["bleu"] = self.bleu.score(lines, references)
            self.by_document.add_each(
                lambda pairs: self.bleu.sums([lines[i] for i in pairs], [references[i] for i in pairs])
            )
            detokenised = self.bleu.score_detokenised(lines, references) if split is Split.TEST else None
            if detokenised is not None:
                metrics["bleu_detokenised"] = detokenised
        return metrics | self._bleu_by_slice(split)

    def _bleu_by_slice(self, split: Split) -> dict[str, float]:
        """Return the BLEU of the pairs of each slice."""
        references = self.corpus.splits[split].references
        pairs: dict[str, list[int]] = {}
        for index, words in sorted(self._words.items(), key=lambda pair: (pair[1], pair[0])):
            pairs.setdefault(slice_name("source-words", words), []).append(index)
        return {
            f"bleu/{name}": self.bleu.score([self.translations[i] for i in indices], [references[i] for i in indices])
            for name, indices in pairs.items()
        }

    def definitions(self, split: Split) -> dict[str, str]:
        unit = "word" if self.spec.data.vocabulary == "word" else "byte-pair token"
        loss = f"mean over target {unit}s and end marks of -ln p, in nats, without label smoothing"
        defined = self.bleu.definitions(_described(self.search(split)))
        if split is not Split.TEST:
            defined.pop("bleu_detokenised", None)
        whole = super().definitions(split) | {"loss": loss, "perplexity": f"exp of: {loss}"} | defined
        return whole | self.definitions_by_slice(whole)


def _described(search: Search) -> str:
    each, more = search.longest
    limit = f"at most {each:g} × source + {more} tokens"
    if search.beam == 1:
        return f"greedy translations of {limit}"
    base = "n" if search.penalty is LengthPenalty.LENGTH else "((5 + n) / 6)"
    score = f"ln p / {base}^{search.length_penalty:g}" if search.length_penalty else "ln p"
    return f"best {score} of a beam of {search.beam}, n tokens with the end mark, {limit}"
