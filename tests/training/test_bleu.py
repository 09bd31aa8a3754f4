"""BLEU is sacrebleu's, of tokenised text as it stands and after its tokenisation was undone."""

from collections import Counter

import sacrebleu
from sacrebleu.metrics.bleu import BLEU

from kdx.training.bleu import Bleu

REFERENCES = ["the dog &apos;s tail , they say , isn 't long .", "a dog ( black ) runs !"]
FOUND = ["the dog &apos;s tail , they said , isn 't long .", "a dog ( black ) runs !"]


def test_tokenised_text_is_scored_as_it_stands_and_detokenised():
    bleu = Bleu(tokenised=True, language="en")
    assert (
        bleu.score(FOUND, REFERENCES) == sacrebleu.corpus_bleu(FOUND, [REFERENCES], tokenize="none", force=True).score
    )
    plain = ["the dog's tail, they say, isn't long.", "a dog (black) runs!"]
    said = ["the dog's tail, they said, isn't long.", "a dog (black) runs!"]
    assert bleu.score_detokenised(FOUND, REFERENCES) == sacrebleu.corpus_bleu(said, [plain]).score


def test_raw_text_has_sacrebleus_tokeniser_and_no_other_score():
    bleu = Bleu(tokenised=False, language="en")
    assert bleu.score(FOUND, REFERENCES) == sacrebleu.corpus_bleu(FOUND, [REFERENCES]).score
    assert bleu.score_detokenised(FOUND, REFERENCES) is None


def test_the_sums_of_several_texts_add_up_to_the_score_of_all():
    bleu = Bleu(tokenised=False, language="en")
    lines = ["The cat sat on the mat.", "A dog barked at a cat today.", "The cat sat on the red mat, and slept."]
    references = ["The cat is on the mat.", "The dog barked at the cat today.", "The cat sat on the mat, and slept."]
    sums: Counter[str] = Counter()
    for line, reference in zip(lines, references, strict=True):
        sums.update(bleu.sums([line], [reference]))
    result = BLEU.compute_bleu(
        correct=[sums[f"matches_{n}"] for n in (1, 2, 3, 4)],
        total=[sums[f"ngrams_{n}"] for n in (1, 2, 3, 4)],
        sys_len=sums["words"],
        ref_len=sums["reference_words"],
    )
    assert result.score == bleu.score(lines, references)
