"""Kernel feature spaces X, at the level of the attention module (Sec. 2.2.1 of Tsai et al. 2019).

A space says what a token is: features F, and where it stands. Each is built around `KernelAttention` and takes its
words for kernel, symmetry and path. A sequence, F × T, is `KernelAttention` itself; the others have a file each, and
`graph` has F alone with labelled relations between the tokens (Shaw et al. 2018).
"""
