"""What the runner of a document's blocks takes for the same output, and what it does not."""

import pytest

from tests.document_blocks import compare, run

SHOWN = "4 runs in 3 s, id 3f9a2c1d\n…\nmean  80.30 ± 1.23\n"


@pytest.mark.parametrize("printed", ["4 runs in 17 s, id 00aa2c1d\nmore\nmean 80.27 ± 0.97\n", SHOWN])
def test_what_differs_between_machines_is_the_same(printed):
    compare(SHOWN, printed, "here")


@pytest.mark.parametrize("change", [("4 runs", "5 runs"), ("80.30", "84.30"), ("mean", "median"), ("± 1.23\n", "")])
def test_another_count_number_or_word_is_refused(change):
    with pytest.raises(AssertionError, match="the document shows"):
        compare(SHOWN, SHOWN.replace(*change), "here")


@pytest.mark.parametrize("block", ["```sh\nfalse\n```\n", "```sh\ntrue\n# exits with 2\n```\n", "```yaml\na: 1\n```\n"])
def test_a_wrong_exit_status_and_a_block_without_a_name_are_refused(tmp_path, block):
    (tmp_path / "page.md").write_text(block)
    with pytest.raises(AssertionError, match=r"page\.md:1"):
        run(tmp_path / "page.md", tmp_path)
