"""Turns text into token ids, in the same way for every corpus: generated or prepared text → vocabulary → ids → cache.

`prepare` checks real text and copies it into the data home once. `corpus` turns a `kdx.grid.spec.Data` into tokens and
caches them by content hash, so that a run opens in milliseconds and changed text is never mixed up with older text.
Examples that are not text are arrays, generated and cached in the same way. Only `batching` imports torch.
"""
