from itertools import pairwise

import numpy as np
import torch
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from kdx.data.arrays import TokenLists
from kdx.data.batching import ExampleBatches, ParallelBatches, StreamBatches
from kdx.data.examples import Examples
from kdx.data.parallel import ParallelText
from kdx.data.vocabulary import BEGIN, END, PADDING


def token_lists(lists) -> TokenLists:
    flat = np.array([token for tokens in lists for token in tokens], dtype=np.int32)
    return TokenLists(flat, np.cumsum([0, *map(len, lists)], dtype=np.int64))


def parallel(pairs) -> ParallelText:
    """Text of these (source, target) token lists, each closed by an end token."""
    sides = ([[*tokens, END] for tokens in side] for side in zip(*pairs, strict=True))
    return ParallelText(*map(token_lists, sides), references=())


SENTENCE = st.lists(st.integers(4, 99), max_size=12)
PAIRS = st.lists(st.tuples(SENTENCE, SENTENCE), min_size=1, max_size=60)
SEED = st.integers(0, 2**60)


def index_of(batches, epoch):
    count = len(batches)
    return [tuple(batches.batch(step).index.tolist()) for step in range(epoch * count, (epoch + 1) * count)]


@given(PAIRS, st.integers(1, 200), SEED, st.integers(0, 5))
def test_every_pair_comes_once_an_epoch(pairs, batch_tokens, seed, epoch):
    seen = [index for batch in index_of(ParallelBatches(parallel(pairs), batch_tokens, seed), epoch) for index in batch]
    assert sorted(seen) == list(range(len(pairs)))


@given(PAIRS, st.integers(1, 200), SEED)
def test_a_batch_keeps_to_its_tokens_on_both_sides(pairs, batch_tokens, seed):
    batches = ParallelBatches(parallel(pairs), batch_tokens, seed)
    for step in range(len(batches)):
        batch = batches.batch(step)
        assert len(batch.index) == 1 or max(batch.source.numel(), batch.target_out.numel()) <= batch_tokens


def cut_one_by_one(pairs, batch_tokens):
    """Which pairs make a batch, found by adding one pair after another."""
    order = sorted(range(len(pairs)), key=lambda index: (len(pairs[index][1]), len(pairs[index][0]), index))
    batches = [[]]
    for index in order:
        more = [*batches[-1], index]
        width = max(len(side) + 1 for place in more for side in pairs[place])
        if batches[-1] and width * len(more) > batch_tokens:
            batches.append([index])
        else:
            batches[-1] = more
    return batches


@given(PAIRS, st.integers(1, 200))
def test_a_batch_ends_only_where_another_pair_would_not_fit(pairs, batch_tokens):
    batches = ParallelBatches(parallel(pairs), batch_tokens).in_order()
    assert [batch.index.tolist() for batch in batches] == cut_one_by_one(pairs, batch_tokens)


@given(PAIRS, SEED)
def test_a_batch_holds_its_pairs(pairs, seed):
    batch = ParallelBatches(parallel(pairs), 100, seed).batch(0)
    assert all(tensor.dtype == torch.long for tensor in (batch.source, batch.target_in, batch.target_out, batch.index))
    assert batch.target_in.shape == batch.target_out.shape
    for row, index in enumerate(batch.index.tolist()):
        source, target = pairs[index]
        assert batch.source[row, : len(source) + 1].tolist() == [*source, END]
        assert batch.target_in[row, : len(target) + 1].tolist() == [BEGIN, *target]
        assert batch.target_out[row, : len(target) + 1].tolist() == [*target, END]
        assert not batch.source[row, len(source) + 1 :].any()
        assert not batch.target_in[row, len(target) + 1 :].any()
        assert not batch.target_out[row, len(target) + 1 :].any()
    assert torch.equal(batch.source_padding, batch.source == PADDING)
    assert not batch.source_padding.all(dim=1).any()


@given(PAIRS, SEED, st.integers(0, 1000))
def test_a_step_is_always_the_same_batch(pairs, seed, step):
    text = parallel(pairs)
    walked = ParallelBatches(text, 60, seed)
    for before in range(step % 7):
        walked.batch(before)
    there, here = walked.batch(step), ParallelBatches(text, 60, seed).batch(step)
    assert all(torch.equal(one, other) for one, other in zip(there, here, strict=True))


MANY = parallel([([4] * (i % 9), [5] * (i % 7)) for i in range(400)])


def test_epochs_and_seeds_shuffle_the_same_batches():
    first = ParallelBatches(MANY, 60, seed=1)
    orders = [index_of(first, 0), index_of(first, 1), index_of(ParallelBatches(MANY, 60, seed=2), 0)]
    assert len(orders[0]) > 20
    assert orders[0] != orders[1] != orders[2] != orders[0]
    assert sorted(orders[0]) == sorted(orders[1]) == sorted(orders[2])


def test_order_of_an_epoch_is_frozen():
    """Another order would make a resumed run another run."""
    text = parallel([([4], [4])] * 8)
    order = [batch[0] for batch in index_of(ParallelBatches(text, 1, seed=7), 3)]
    assert order == [7, 4, 1, 2, 6, 5, 3, 0]


STREAM = st.integers(1, 300).map(lambda length: np.arange(4, 4 + length, dtype=np.int32))
COUNT = st.integers(1, 12)


@given(STREAM, COUNT, COUNT)
def test_streams_go_on_where_they_ended(stream, streams, length):
    batches = StreamBatches(stream, streams, length)
    walk = [batches.batch(step) for step in range(len(batches))]
    for batch in walk:
        assert batch.inputs.shape == batch.targets.shape == (streams, length)
        assert batch.inputs.dtype == batch.targets.dtype == torch.long
        assert torch.equal(batch.inputs[:, 1:], batch.targets[:, :-1])
    for before, after in pairwise(walk):
        assert torch.equal(after.inputs[:, 0], before.targets[:, -1])
    if walk:
        rows = torch.cat([batch.targets for batch in walk], dim=1)
        assert [row[0].item() for row in rows] == [4 + i * (len(stream) // streams) for i in range(streams)]
        assert rows.numel() > len(stream) - streams * length - streams
        assert walk[0].inputs[0, 0] == END


@given(STREAM, COUNT, COUNT, st.integers(0, 100))
def test_the_next_epoch_reads_the_same_text(stream, streams, length, step):
    batches = StreamBatches(stream, streams, length)
    if len(batches):
        assert torch.equal(batches.batch(step).targets, batches.batch(step + len(batches)).targets)


@given(STREAM, COUNT, COUNT)
@settings(max_examples=200)
def test_evaluation_counts_every_token_once(stream, streams, length):
    batches = list(StreamBatches(stream, streams, length).in_order())
    targets = torch.cat([batch.targets for batch in batches], dim=1)
    inputs = torch.cat([batch.inputs for batch in batches], dim=1)
    assert targets.flatten()[targets.flatten() != PADDING].tolist() == stream.tolist()
    assert inputs.flatten()[targets.flatten() != PADDING].tolist() == [END, *stream[:-1].tolist()]
    assert not inputs[targets == PADDING].any()
    assert all(batch.targets.shape[1] <= length for batch in batches)


def examples(count: int) -> Examples:
    """Examples that are told from each other by their number."""
    number = np.arange(count)
    return Examples({"number": number.astype(np.uint8), "half": (number / 2).astype(np.float32)}, number[:, None])


def numbers_of(batches, epoch) -> list[list[int]]:
    count = len(batches)
    return [batches.batch(step).targets[:, 0].tolist() for step in range(epoch * count, (epoch + 1) * count)]


@given(st.integers(1, 60), st.integers(1, 60), SEED, st.integers(0, 5))
def test_an_example_comes_once_an_epoch_at_most_and_all_batches_are_full(count, size, seed, epoch):
    assume(size <= count)
    seen = numbers_of(ExampleBatches(examples(count), size, seed), epoch)
    assert {len(batch) for batch in seen} == {size} and len(seen) == count // size
    assert len({number for batch in seen for number in batch}) == size * len(seen)


@given(SEED, st.integers(0, 10**6))
def test_a_batch_of_examples_is_a_function_of_its_step_and_holds_them_whole(seed, step):
    one, again = (ExampleBatches(examples(50), 7, seed).batch(step) for _ in range(2))
    assert one.inputs["number"].tolist() == again.inputs["number"].tolist() == one.targets[:, 0].tolist()
    assert (2 * one.inputs["half"] == one.inputs["number"]).all()
    assert (one.inputs["number"].dtype, one.inputs["half"].dtype) == (torch.int64, torch.float32)


@given(st.integers(1, 60), st.integers(1, 60))
def test_evaluation_sees_every_example_once(count, size):
    batches = ExampleBatches(examples(count), size).in_order()
    assert [number for batch in batches for number in batch.targets[:, 0].tolist()] == list(range(count))
