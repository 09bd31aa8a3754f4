"""The vocabulary of the study, as words in YAML and enums in code.

Equations are those of Tsai et al. 2019 ("Transformer Dissection", EMNLP) unless another paper is named.
"""

from enum import StrEnum


class Space(StrEnum):
    """The kernel feature space X (Sec. 2.2.1): F × T, F × H × W, F, and F^l × F^v × F^a × T.

    The last is one product of kernels over the modalities, or a cross kernel for each ordered pair of them. In a graph
    there is F, with labelled edges between the elements (Shaw et al. 2018).
    """

    SEQUENCE = "sequence"
    IMAGE = "image"
    SET = "set"
    MULTIMODAL = "multimodal"
    CROSSMODAL = "crossmodal"
    GRAPH = "graph"


class Modality(StrEnum):
    """The streams of the Multimodal Transformer (Tsai et al., ACL 2019)."""

    LANGUAGE = "language"
    VISION = "vision"
    AUDIO = "audio"


class Attention(StrEnum):
    """The three attentions of a Transformer; the paper's A, B and C (Table 3)."""

    ENCODER_SELF = "encoder-self"
    ENCODER_DECODER = "encoder-decoder"
    DECODER_SELF = "decoder-self"


class Symmetry(StrEnum):
    """Whether queries and keys share one projection, weights and biases alike (W_q = W_k)."""

    ASYMMETRIC = "asymmetric"
    SYMMETRIC = "symmetric"


class QKNorm(StrEnum):
    """How queries and keys are normalised before any kernel compares them.

    Not at all, to one length with a learned scale (Henry et al. 2020), or to a root mean square of 1 with a learned
    gain (Dehghani et al. 2023, who take layer normalisation).
    """

    NONE = "none"
    L2 = "l2"
    RMS = "rms"


class Maps(StrEnum):
    """What a head's values are weighted by: one attention map, or the difference of two (Ye et al. 2024)."""

    SINGLE = "single"
    DIFFERENTIAL = "differential"


class OutputGate(StrEnum):
    """What the heads' output is multiplied by before W_o.

    Nothing, or σ(x W_g), where x is the query's token (Qiu et al. 2025).
    """

    NONE = "none"
    SIGMOID = "sigmoid"


class Bias(StrEnum):
    """Whether a projection adds a learned bias."""

    NONE = "none"
    LEARNED = "learned"


class Initialisation(StrEnum):
    """Where weights begin: Xavier's uniform (Glorot & Bengio 2010), or N(0, 0.02²) as Dai et al. 2019 do it."""

    XAVIER = "xavier"
    NORMAL = "normal"


class Inject(StrEnum):
    """Where the direct sum f + t is taken: once at the input of the stack, or inside each attention."""

    INPUT = "input"
    PER_LAYER = "per-layer"


class Reach(StrEnum):
    """Which side of a query the patterns `strided` and `fixed` extend to."""

    PAST = "past"
    BOTH = "both"


class Norm(StrEnum):
    """Layer normalisation after the residual sum (Vaswani et al. 2017) or before each sublayer (Xiong et al. 2020)."""

    POST = "post"
    PRE = "pre"


class Normalisation(StrEnum):
    """Layer normalisation (Ba et al. 2016), or RMSNorm, which leaves out mean and bias (Zhang & Sennrich 2019)."""

    LAYER = "layer"
    RMS = "rms"


class FeedForwardKind(StrEnum):
    """What stands between the matrices of a feed-forward layer.

    A ReLU (Vaswani et al. 2017), x Φ(x) with the normal distribution's Φ (Hendrycks & Gimpel 2016), or x σ(x) times a
    second projection, which makes three matrices of two (Shazeer 2020).
    """

    RELU = "relu"
    GELU = "gelu"
    SWIGLU = "swiglu"


class Embeddings(StrEnum):
    """Which embedding matrices are one: all three, the decoder's input and output, or none."""

    SHARED = "shared"
    TIED = "tied"
    SEPARATE = "separate"


class VocabularyKind(StrEnum):
    """How text becomes tokens: whole words, or byte pairs learned on source and target together.

    subword-nmt is byte pairs as the tool of Sennrich et al. 2016 learns them, by a number of merges.
    """

    WORD = "word"
    BPE = "bpe"
    SUBWORD_NMT = "subword-nmt"


class Dictionaries(StrEnum):
    """Whether source and target share one list of tokens, or each has those that its own training text holds."""

    JOINT = "joint"
    SEPARATE = "separate"


class Optimiser(StrEnum):
    """AdamW (Loshchilov & Hutter 2019), Lion (Chen et al. 2023), or Muon (Jordan et al. 2024).

    Muon is for the matrices inside the layers; embeddings, gains, biases and the output have AdamW beside it.
    """

    ADAMW = "adamw"
    LION = "lion"
    MUON = "muon"


class Schedule(StrEnum):
    """The learning rate after the warm-up.

    It falls as 1/√step (Vaswani et al. 2017), by half a cosine (Loshchilov & Hutter 2017), or not at all; or it stays
    and falls at the end of the run (Hu et al. 2024).
    """

    INVERSE_SQRT = "inverse-sqrt"
    COSINE = "cosine"
    CONSTANT = "constant"
    WARMUP_STABLE_DECAY = "warmup-stable-decay"


class LengthPenalty(StrEnum):
    """What a log-probability of n tokens is divided by: n^a (Ott et al. 2019), or ((5 + n) / 6)^a (Wu et al. 2016)."""

    LENGTH = "length"
    GNMT = "gnmt"


class Precision(StrEnum):
    """Number format of the forward and backward pass; weights stay in 32 bits."""

    FP32 = "fp32"
    BF16 = "bf16"


class Direction(StrEnum):
    """Which end of a metric is the good one."""

    MAX = "max"
    MIN = "min"


class Split(StrEnum):
    """The three parts of a corpus."""

    TRAIN = "train"
    VALID = "valid"
    TEST = "test"


class IfChanged(StrEnum):
    """What is done with a run that began under other conditions than those of now, so that its bits would differ.

    It is refused and stays as it is, begins anew, or goes on and is marked as not bit-exact.
    """

    REFUSE = "refuse"
    RESTART = "restart"
    CONTINUE = "continue"
