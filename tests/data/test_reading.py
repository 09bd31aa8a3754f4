"""How long a context an evaluation really reads, and what of it cannot be had."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kdx.data.batching import StreamBatches
from kdx.data.reading import check_reading, data_facts, extent
from kdx.data.stream import load_stream
from kdx.data.vocabulary import PADDING
from kdx.errors import KdxError
from kdx.grid.reading import Reading
from kdx.grid.spec import CellSpec
from kdx.vocabulary import Split

COUNT = st.integers(1, 40)


def cell(evaluation: dict | None = None, **fields) -> CellSpec:
    """A cell that is trained in 16 streams of 64 tokens."""
    return CellSpec.model_validate(
        {
            "task": "prediction",
            "data": {"corpus": "synthetic-language", "train_lines": 300},
            "training": {"batch_tokens": 1024, "length": 64},
            "evaluation": evaluation or {},
            **fields,
        }
    )


@given(st.integers(1, 300), COUNT, COUNT, st.integers(0, 60))
def test_the_extent_is_what_the_batches_of_an_evaluation_hold(tokens, streams, length, memory):
    segments, remembered, contexts = [], [], []
    read = 0
    for batch in StreamBatches(np.full(tokens, 5, np.int32), streams, length).in_order():
        segment = int((batch.targets != PADDING).sum(1).max())
        segments.append(segment)
        remembered.append(min(memory, read))
        contexts.append(segment + remembered[-1])
        read += batch.targets.shape[1]
    result = extent(tokens, Reading(streams, length, memory))
    assert result == (read, max(segments), max(remembered), max(contexts))


def test_the_context_that_is_recorded_is_what_the_text_gives(home):
    spec = cell({"length": 512})
    corpus = load_stream(spec.data)
    facts = data_facts(spec, corpus)
    longest = -(-len(corpus.splits[Split.TEST]) // 16)
    assert facts["test/longest_context"] == longest < 512
    assert (facts["reading/streams"], facts["reading/length"], facts["reading/memory"]) == (16, 512, 0)
    assert corpus.facts.items() < facts.items()
    asked = cell({"length": 10}, memory=20, position="alibi")
    assert data_facts(asked, corpus)["test/longest_context"] == 30


def test_a_length_that_the_text_cannot_fill_is_refused_with_what_it_can(home):
    spec = cell({"length": 512})
    corpus = load_stream(spec.data)
    tokens = {split: len(corpus.splits[split]) for split in (Split.VALID, Split.TEST)}
    shortest = min(tokens, key=tokens.__getitem__)
    with pytest.raises(KdxError) as caught:
        check_reading(spec, corpus)
    each = -(-tokens[shortest] // 16)
    assert str(caught.value) == (
        f"evaluation.length: segments of 512 tokens, but the {shortest} text of `synthetic-language` has "
        f"{tokens[shortest]:,} tokens in 16 streams, {each} in each\n"
        f"  allowed: at most {each}\n"
        f"  hint: read fewer streams: evaluation.streams: {tokens[shortest] // 512}"
    )
    check_reading(cell({"length": 512, "streams": tokens[shortest] // 512}), corpus)
    check_reading(cell({"length": each}), corpus)
    with pytest.raises(KdxError, match="take a longer text"):
        check_reading(cell({"length": 100_000, "streams": 1}), corpus)


def test_a_memory_that_is_never_filled_is_refused(home):
    corpus = load_stream(cell().data)
    with pytest.raises(KdxError, match="a memory of 100 tokens") as caught:
        check_reading(cell({"memory": 100}, memory=8, position="alibi"), corpus)
    assert caught.value.place == "evaluation.memory" and caught.value.allowed == "at most 64"
    streams = int(caught.value.hint.rpartition(" ")[2])
    check_reading(cell({"memory": 100, "streams": streams}, memory=8, position="alibi"), corpus)
