import pytest

from kdx.data.find_text import find_text
from kdx.data.prepare import prepare
from kdx.errors import KdxError
from kdx.grid.sections import Data
from kdx.vocabulary import Split


def refusal(data, home) -> str:
    with pytest.raises(KdxError) as caught:
        find_text(data, home)
    return str(caught.value)


def lines(data, home, split, suffix="txt") -> list[str]:
    return list(find_text(data, home).lines(split, suffix))


def test_only_a_line_feed_ends_a_line(write, home):
    files = {"train.txt": "a\u2028 b\x0b\x85c\rd\n\ne", "valid.txt": "\ufeffa\r\n", "test.txt": "a\n\n"}
    prepare("mine", write(files))
    mine = Data(corpus="mine")
    assert lines(mine, home, Split.TRAIN) == ["a\u2028 b\x0b\x85c\rd", "", "e"]
    assert [line.split() for line in lines(mine, home, Split.VALID)] == [["a"]]
    assert lines(mine, home, Split.TEST) == ["a", ""]


def test_unknown_corpus(pairs, home):
    prepare("pets", pairs)
    assert refusal(Data(corpus="multi30"), home) == (
        "data.corpus: unknown corpus `multi30`\n"
        "  hint: did you mean `multi30k`? For your own text: kdx data prepare multi30 --from PATH\n"
        "  allowed: eltec-eng, iwslt14, multi30k, pets, synthetic-language, synthetic-order, synthetic-translation,"
        " tatoeba-deu-eng, wikitext103, wikitext2, wmt14-en-de, wmt14-en-fr"
    )
    assert "\n  hint: kdx data prepare qqq --from PATH\n" in refusal(Data(corpus="qqq"), home)


def test_examples_are_no_text(home):
    assert refusal(Data(corpus="synthetic-sets"), home) == (
        "data.corpus: `synthetic-sets` is no text: it is for task set\n"
        "  allowed: synthetic-language, synthetic-order, synthetic-translation"
    )


def test_known_corpus_that_is_not_prepared(home):
    assert refusal(Data(corpus="multi30k"), home) == (
        "data.corpus: corpus `multi30k` is not prepared yet\n  hint: kdx data prepare multi30k"
    )
    assert refusal(Data(corpus="wmt14-en-de"), home).endswith("\n  hint: kdx data prepare wmt14-en-de --from PATH")


def test_seed_of_a_text_that_is_not_generated(pairs, home):
    prepare("pets", pairs)
    assert refusal(Data(corpus="pets", seed=1), home) == (
        "data.seed: `pets` is not generated, so it has no seed\n  allowed: 0"
    )


def test_languages_of_plain_text(home):
    assert refusal(Data(corpus="synthetic-language", source="de", target="en"), home) == (
        "data.source: `synthetic-language` is plain text: it has no languages to translate between\n"
        "  hint: remove source and target"
    )


@pytest.mark.parametrize("direction", [("de", "fr"), ("de", "de"), ("fr", "en")])
def test_direction_that_is_not_there(pairs, home, direction):
    prepare("pets", pairs)
    source, target = direction
    assert refusal(Data(corpus="pets", source=source, target=target), home) == (
        f"data.source: `pets` has no direction {source} → {target}\n  allowed: de → en, en → de"
    )


def test_more_training_lines_than_there_are(pairs, home):
    prepare("pets", pairs)
    assert refusal(Data(corpus="pets", train_lines=4), home) == (
        "data.train_lines: 4 lines wanted, but the training text of `pets` has 3\n  allowed: at most 3"
    )


def test_text_changed_after_it_was_prepared(pairs, home):
    prepare("pets", pairs)
    path = home / "corpora" / "pets" / "valid.en"
    for change in (lambda: path.write_text("a cat\n"), path.unlink):
        change()
        with pytest.raises(KdxError) as caught:
            lines(Data(corpus="pets"), home, Split.VALID, "en")
        assert str(caught.value) == (
            f"{path}: this file is not what was prepared\n"
            f"  hint: remove {path.parent}, then: kdx data prepare pets --from {pairs}"
        )
