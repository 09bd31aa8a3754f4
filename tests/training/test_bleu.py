"""BLEU is sacrebleu's, of tokenised text as it stands and after its tokenisation was undone."""

import pytest
import sacrebleu

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


@pytest.mark.parametrize(("tokenised", "tokeniser"), [(True, "none"), (False, "13a")])
def test_a_metric_is_defined_by_its_signature_once_it_was_scored(tokenised, tokeniser):
    bleu = Bleu(tokenised=tokenised, language="en")
    assert bleu.definitions("greedy") == {}
    bleu.score(FOUND, REFERENCES)
    bleu.score_detokenised(FOUND, REFERENCES)
    told = bleu.definitions("greedy")
    assert f"sacrebleu, greedy: nrefs:1|case:mixed|eff:no|tok:{tokeniser}|" in told["bleu"]
    assert ("detokenised by sacremoses" in told.get("bleu_detokenised", "")) is tokenised
