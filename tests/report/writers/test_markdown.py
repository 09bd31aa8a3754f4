"""GitHub Markdown: the table as a paper's reader wants it, and no name that is read as markup."""

from hypothesis import example, given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from sweeps import cell, run, scored, seeded, sweep

from kdx.report.sheets.notes import caption
from kdx.report.tables import Table, tables
from kdx.report.writers.markdown import to_markdown
from kdx.sanitize import sanitize
from kdx.store.records import RunState

READER = MarkdownIt("commonmark").enable(["table", "strikethrough"])


def test_a_table_with_its_title_its_caption_and_every_kind_of_place() -> None:
    cells = [
        cell(f"{kernel}-{position}", kernel=kernel, position=position)
        for kernel in ("exponential", "rbf")
        for position in ("none", "product")
    ]
    diverged, failed = RunState.DIVERGED, RunState.FAILED
    runs = [
        *scored("exponential-none", (8.0, 9.5), (7.0, 9.25)),
        *(run("exponential-product", 0, 30.0, 30.5), run("exponential-product", 1, state=failed)),
        *(run("rbf-none", 0, state=diverged), run("rbf-none", 1, state=diverged)),
    ]
    spec = {"name": "main", "caption": "Kernels", "rows": ["kernel"], "columns": ["position"]}
    (table,) = tables(sweep(cells, runs, tables=[spec]))
    assert (
        to_markdown(table)
        == """\
**main**: Kernels

| kernel | BLEU ↑ / position none | BLEU ↑ / product |
| :--- | ---: | ---: |
| exponential | 9.50 (9.38 ± 0.18, n = 2) | 30.50 (1), failed 1/2 |
| rbf | diverged 2/2 | – |

"""
        + "\n\n".join(caption(table, best="Bold"))
        + "\n"
    )


def test_every_row_repeats_its_names_so_that_each_line_stands_alone() -> None:
    cells = [cell(f"{k}{n}", kernel=k, norm=n) for k in ("rbf", "exponential") for n in ("pre", "post")]
    text = to_markdown(tables(sweep(cells, [], axes=["kernel", "norm"]))[0])
    assert "| rbf | pre | – |\n| rbf | post | – |\n" in text


def test_the_mean_stands_with_its_interval_and_what_is_near_the_best_is_marked() -> None:
    cells = [cell("a", kernel="rbf"), cell("b", kernel="exponential")]
    runs = [*seeded("a", 30.0, 31.0, 32.0), *seeded("b", 30.5, 31.0, 31.0)]
    text = to_markdown(tables(sweep(cells, runs, tables=[{"name": "main", "rows": ["kernel"], "cell": "mean"}]))[0])
    assert "| rbf | **31.00** ± 2.48 |\n| exponential | 30.83† ± 0.72 |\n" in text
    assert "Bold: best" in text and "†: " in text


def test_what_belongs_to_a_table_follows_as_tables_of_its_own() -> None:
    cells = [cell("a", kernel="rbf"), cell("b", kernel="exponential")]
    runs = [*seeded("a", 30.0, 31.0, 32.0), *seeded("b", 30.5, 31.0, 31.0)]
    spec = {"name": "main", "rows": ["kernel"], "baseline": {"kernel": "exponential"}}
    text = to_markdown(tables(sweep(cells, runs, tables=[spec]))[0])
    assert "\n\n**main: differences from exponential**\n\n| kernel | mean | better by | " in text
    tokens = [token.type for token in READER.parse(text)]
    assert tokens.count("table_open") == 2


def table_of(title: str, first: str, second: str) -> Table:
    labels = [{"approach": first}, {"approach": second}]
    cells = [cell(f"c{i}", labels=label, training={"steps": i + 1}) for i, label in enumerate(labels)]
    runs = [*scored("c0", (1.0, 12.25)), *scored("c1", (1.0, 34.25))]
    spec = {"name": title or "t", "caption": title, "rows": ["approach", "training.steps"], "columns": ["approach"]}
    return tables(sweep(cells, runs, tables=[spec]))[0]


names = st.text(max_size=30) | st.text(st.sampled_from("|\\`*_[]()<>!&#~$@:/-+=.wh1a \n\r\t\x1b\u202e"), max_size=20)


@settings(deadline=None)
@given(names, names, names)
@example("t", "a | b\n| c |", "<script>alert(1)</script>")
@example("![x](http://x/y.png)", "`code` **bold** ~~gone~~ [link](http://x)", "&lt;b&gt; $x$ https://x.y www.x.y")
@example("trailing \\", "\\", "|")
def test_any_names_come_out_as_plain_text_in_a_table_of_the_same_shape(title: str, first: str, second: str) -> None:
    table = table_of(title, first, second)
    tokens = READER.parse(to_markdown(table))
    assert [token.type for token in tokens].count("table_open") == 1
    inside = [token for token in tokens if token.type == "inline"]
    body = [token for token in inside if token.level > 2]
    heads = [sanitize(word) for word in ("approach", "training.steps")]
    assert len(body) == (1 + len(table.layout.rows)) * (2 + len(table.layout.columns))
    assert ["".join(part.content for part in token.children or []) for token in body[:2]] == heads
    for token in inside:
        kinds = {part.type for part in token.children or []}
        assert kinds <= {"text", "text_special", "strong_open", "strong_close"}, kinds
    read = ["".join(part.content for part in token.children or []) for token in body]
    width = 2 + len(table.layout.columns)
    assert read[width::width] == [sanitize(row[0]) for row in table.layout.rows]


def test_addresses_are_not_made_into_links() -> None:
    text = to_markdown(table_of("see", "https://example.org", "www.example.org and me@example.org"))
    assert "https\\://example.org" in text
    assert "www\\.example.org and me\\@example.org" in text
