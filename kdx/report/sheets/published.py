"""A listing of published values beside those of a table."""

from kdx.grid.plan import Shown
from kdx.report.papers.published_comparison import Agreement, PublishedComparison
from kdx.report.selection.cells import State
from kdx.report.sheet import Sheet
from kdx.report.table.layout import Layout
from kdx.report.wording import equals, rounded, signed


def published_values(layout: Layout, comparison: PublishedComparison) -> Sheet:
    """The published values of a paper beside those of a table."""
    factors = (*layout.row_factors, *layout.column_factors)
    same = any(pair.same_corpus for pair in comparison.pairs)
    other = any(not pair.same_corpus for pair in comparison.pairs)
    rows = []
    for pair in comparison.pairs:
        metric = pair.metric.name
        rows.append(
            (
                *layout.header(pair.at).values(),
                str(pair.metric),
                ", ".join(pair.tables),
                State.DIVERGED.value if pair.published is None else rounded(pair.published, metric),
                "diverged" if pair.diverged else "–" if pair.ours is None else rounded(pair.ours, metric),
                *(["–" if pair.gain is None else signed(pair.gain, metric)] if same else []),
                *((map(str, pair.places) if pair.places and not pair.same_corpus else ("–", "–")) if other else ()),
            )
        )
    paper = comparison.paper
    shown = "the best-validation seed's score" if layout.shown is Shown.BEST_SEED else "the mean over seeds"
    notes = [f"Published: {'; '.join(filter(None, (paper.source, paper.protocol)))}."]
    notes.append(f"Ours: {shown}{'; better by: positive where ours is better' if same else ''}.")
    if other:
        notes.append("Place: in the order of each side, 1 the best; numbers of another corpus compare by their order.")
    if not comparison.pairs:
        notes = [notes[0], "It has no cell of this table."]
    noted: dict[str, dict[str, None]] = {}
    for pair in comparison.pairs:
        if pair.note and pair.published is not None:
            noted.setdefault(pair.note, {})[rounded(pair.published, pair.metric.name)] = None
    notes += [f"{' and '.join(values)}: {note}" for note, values in noted.items()]
    for task, ours in comparison.scale.items():
        published = f"; published: {paper.scale[task]}" if task in paper.scale else ""
        notes.append(f"Scale ({task}): ours {ours}{published}.")
    notes += [_agreement(agreement) for agreement in comparison.agreement]
    columns = ["published", "ours", *(["better by"] if same else [])]
    columns += ["place, published", "place, ours"] if other else []
    return Sheet(
        title=f"{layout.name}: beside {paper.title or paper.name}",
        key=(layout.name, "published"),
        headers=(*factors, "metric", "from", *columns),
        names=len(factors) + 2,
        rows=tuple(rows),
        notes=tuple(notes),
    )


def _agreement(agreement: Agreement) -> str:
    cells = f"{agreement.n} cell{'' if agreement.n == 1 else 's'}"
    what = f"Order of {cells} ({agreement.task}, {agreement.corpus}, {agreement.metric.name})"
    if agreement.tau is None or agreement.p is None:
        return f"{what}: too few that differ to be ranked."
    return f"{what}: Kendall's τ = {signed(agreement.tau, '')} (p {equals(agreement.p)}); what diverged ranks last."
