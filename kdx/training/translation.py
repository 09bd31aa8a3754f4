"""Translation: cross-entropy on the target words; BLEU by sacrebleu on greedy translations."""

from typing import Any

from sacrebleu.metrics.bleu import BLEU
from torch import Tensor

from kdx.axes import Split
from kdx.data.batching import ParallelBatch
from kdx.data.corpus import ParallelCorpus
from kdx.grid.spec import CellSpec
from kdx.models.translation import TranslationModel
from kdx.training.module import TaskModule


class TranslationModule(TaskModule):
    """Translates with the model at each evaluation whose metrics need it; the test's always do."""

    model: TranslationModel

    def __init__(self, spec: CellSpec, corpus: ParallelCorpus) -> None:
        super().__init__(spec, TranslationModel(spec, corpus.target_vocabulary.size, corpus.source_vocabulary.size))
        self.corpus = corpus
        # Tokenised text is scored as it stands; sacrebleu asks to be forced, since it prefers raw text.
        self.bleu = BLEU(tokenize="none" if corpus.tokenised else "13a", force=corpus.tokenised)
        self.translations: dict[int, str] = {}
        self.signature: str | None = None
        """Of sacrebleu; None before the first scoring, which sets it."""
        self.selects_bleu = spec.selection[0] == "valid/bleu"

    def hidden_and_targets(self, batch: ParallelBatch) -> tuple[Tensor, Tensor]:
        return self.model.hidden(batch.source, batch.source_padding, batch.target_in), batch.target_out

    def _start(self) -> None:
        super()._start()
        self.translations = {}

    def _translates(self, split: Split) -> bool:
        return split is Split.TEST or self.selects_bleu

    def evaluate(self, batch: Any, split: Split) -> None:
        super().evaluate(batch, split)
        if self._translates(split):
            longest = 2 * batch.source.shape[1] + 10
            for index, tokens in zip(
                batch.index.tolist(), self.model.translate(batch.source, batch.source_padding, longest), strict=True
            ):
                self.translations[index] = self.corpus.target_vocabulary.decode(tokens)

    def lines(self) -> list[str]:
        """Translations of the last pass, in the order of the corpus."""
        return [self.translations[index] for index in sorted(self.translations)]

    def summarise(self, split: Split) -> dict[str, float]:
        metrics = super().summarise(split)
        if self._translates(split):
            references = [list(self.corpus.splits[split].references)]
            metrics["bleu"] = self.bleu.corpus_score(self.lines(), references).score
            self.signature = str(self.bleu.get_signature())
        return metrics

    def definitions(self) -> dict[str, str]:
        unit = "word" if self.spec.data.vocabulary == "word" else "byte-pair token"
        loss = f"mean over target {unit}s and end marks of -ln p, in nats, without label smoothing"
        defined = {"loss": loss, "perplexity": f"exp of: {loss}"}
        if self.signature is not None:
            defined["bleu"] = f"sacrebleu, greedy translations: {self.signature}"
        return defined
