import pytest

from kdx.data.prepare import prepare
from kdx.data.prepared import corpus_folder
from kdx.errors import KdxError


def side_by_side(target: str, pairs: int = 4, tests: int = 2) -> dict[str, str]:
    """Training text and test sets in one folder."""
    return {
        f"{name}.{language}": "".join(f"{name} {language} {number}\n" for number in range(lines))
        for name, lines in (("train", pairs), ("newstest2012", 1), ("newstest2013", tests), ("newstest2014", tests))
        for language in ("en", target)
    }


def marked(text: str) -> str:
    segments = f'<seg id="1"> {text} one. </seg>\n<seg id="2">{text} two.</seg>\n'
    return f'<srcset setid="x">\n<doc>\n{segments}</doc>\n</srcset>\n'


def campaign(target: str) -> dict[str, str]:
    """What the campaign's archives hold of a direction."""
    pair = f"{target}-en"
    files = {}
    for language, side in (("en", "src"), (target, "ref")):
        files |= {
            f"training/europarl-v7.{pair}.{language}": f"europarl {language}\n",
            f"commoncrawl.{pair}.{language}": f"crawl {language}\ncrawl {language} 2",
            f"training/news-commentary-v9.{pair}.{language}": f"news {language}\n",
            f"dev/newstest2013-{side}.{language}.sgm": marked(f"2013 {language}"),
            f"test-full/newstest2014-{target}en-{side}.{language}.sgm": marked(f"2014 {language}"),
        }
        if target == "fr":
            files |= {
                f"giga-fren.release2.fixed.{language}": f"giga {language}\n",
                f"un/undoc.2000.fr-en.{language}": f"un {language}\n",
            }
    return files


def read(name: str, file: str) -> str:
    return (corpus_folder(name) / file).read_text()


@pytest.mark.parametrize("target", ["de", "fr"])
def test_each_direction_has_its_folder(write, target):
    for other in ("de", "fr"):
        source = write({f"en-{other}/{name}": text for name, text in side_by_side(other).items()})
    about = prepare(f"wmt14-en-{target}", source)
    assert about.suffixes == ("en", target) and not about.tokenised
    assert read(about.name, f"valid.{target}") == f"newstest2013 {target} 0\nnewstest2013 {target} 1\n"
    assert read(about.name, "test.en") == "newstest2014 en 0\nnewstest2014 en 1\n"


def test_the_campaigns_own_files(write):
    source = write(campaign("de") | campaign("fr"))
    prepare("wmt14-en-de", source)
    prepare("wmt14-en-fr", source)
    assert read("wmt14-en-de", "train.de") == "crawl de\ncrawl de 2\neuroparl de\nnews de\n"
    assert read("wmt14-en-fr", "train.en") == "crawl en\ncrawl en 2\neuroparl en\ngiga en\nnews en\nun en\n"
    assert read("wmt14-en-de", "valid.en") == "2013 en one.\n2013 en two.\n"
    assert read("wmt14-en-fr", "test.fr") == "2014 fr one.\n2014 fr two.\n"


@pytest.mark.parametrize("gone", ["training/europarl-v7.de-en.de", "test-full/newstest2014-deen-ref.de.sgm"])
def test_a_campaigns_file_that_is_missing_is_named(write, gone):
    files = campaign("de")
    del files[gone]
    with pytest.raises(KdxError, match=f"of the campaign's files is missing: {gone.split('/')[1]}"):
        prepare("wmt14-en-de", write(files))


def test_counts_that_are_not_the_published_ones_are_noted(write):
    assert prepare("wmt14-en-de", write(side_by_side("de"))).notes == (
        "valid.en: 2 lines instead of 3,000",
        "valid.de: 2 lines instead of 3,000",
        "test.en: 2 lines instead of 3,003",
        "test.de: 2 lines instead of 3,003",
    )


def test_it_cannot_be_fetched():
    with pytest.raises(KdxError) as caught:
        prepare("wmt14-en-de")
    assert str(caught.value) == (
        "the text of `wmt14-en-de` cannot be fetched\n"
        "  hint: its parts are at https://www.statmt.org/wmt14/translation-task.html;"
        " then: kdx data prepare wmt14-en-de --from PATH"
    )
