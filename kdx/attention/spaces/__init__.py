"""Kernel feature spaces X, at the level of the attention module (Sec. 2.2.1 of Tsai et al. 2019).

A space says what a token is: features F, and a position. Each space is built around `KernelAttention` and takes the
same names for kernel, symmetry and path. A sequence, F × T, is `KernelAttention` itself; the others have a file each,
and `graph` has only F, with labelled relations between the tokens (Shaw et al. 2018).
"""
