"""The models of the tasks, built from a cell; their attention comes from `kdx.attention`.

Shape letters: B batch, T positions (Ts of the source, Tt of the target), M model width, V vocabulary.
"""
