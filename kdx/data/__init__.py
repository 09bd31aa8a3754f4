"""Text to token ids, on one path for every corpus: text, generated or prepared → vocabulary → ids → cache.

`prepare` copies real text into the data home once, checked; `corpus` turns a `kdx.grid.spec.Data` into tokens and keeps
them by content hash, so that a run opens in milliseconds and text that changed is never mixed up with the text of
before. Examples that are no text are arrays, generated and kept in the same way. Only `batching` knows torch.
"""
