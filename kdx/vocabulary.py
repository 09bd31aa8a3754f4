"""The vocabulary of the study, as words in YAML and enums in code.

Equations are those of Tsai et al. 2019 ("Transformer Dissection", EMNLP) unless another paper is named.
"""

from enum import StrEnum


class Space(StrEnum):
    """The kernel feature space X (Sec. 2.2.1)."""

    SEQUENCE = "sequence"
    """F × T: features and a time."""
    IMAGE = "image"
    """F × H × W: features, a row and a column."""
    SET = "set"
    """F: features alone, without an order."""
    MULTIMODAL = "multimodal"
    """F^l × F^v × F^a × T: one product of kernels over the modalities."""
    CROSSMODAL = "crossmodal"
    """F^l × F^v × F^a × T: a cross kernel for each ordered pair of modalities."""
    GRAPH = "graph"
    """F with labelled edges between the elements (Shaw et al. 2018)."""


class Modality(StrEnum):
    """The streams of the Multimodal Transformer (Tsai et al., ACL 2019)."""

    LANGUAGE = "language"
    VISION = "vision"
    AUDIO = "audio"


class Attention(StrEnum):
    """The three attentions of a Transformer; the paper's A, B and C (Table 3)."""

    ENCODER_SELF = "encoder-self"
    """A: of the encoder's tokens to each other."""
    ENCODER_DECODER = "encoder-decoder"
    """B: of the decoder's tokens to the encoder's."""
    DECODER_SELF = "decoder-self"
    """C: of the decoder's tokens to each other."""


class Symmetry(StrEnum):
    """Whether queries and keys share one projection, weights and biases alike (W_q = W_k)."""

    ASYMMETRIC = "asymmetric"
    """Queries and keys have a projection each."""
    SYMMETRIC = "symmetric"
    """One projection serves both: W_q = W_k."""


class QKNorm(StrEnum):
    """How queries and keys are normalised before any kernel compares them."""

    NONE = "none"
    """Not at all."""
    L2 = "l2"
    """To one length, with a learned scale (Henry et al. 2020)."""
    RMS = "rms"
    """To a root mean square of 1, with a learned gain (Dehghani et al. 2023, who take layer normalisation)."""


class Maps(StrEnum):
    """What a head's values are weighted by."""

    SINGLE = "single"
    """One attention map."""
    DIFFERENTIAL = "differential"
    """The difference of two attention maps (Ye et al. 2024)."""


class OutputGate(StrEnum):
    """What the heads' output is multiplied by before W_o."""

    NONE = "none"
    """Nothing."""
    SIGMOID = "sigmoid"
    """σ(x W_g), where x is the query's token (Qiu et al. 2025)."""


class Bias(StrEnum):
    """Whether a projection adds a learned bias."""

    NONE = "none"
    """No bias."""
    LEARNED = "learned"
    """A learned bias."""


class Initialisation(StrEnum):
    """Where weights begin."""

    XAVIER = "xavier"
    """Xavier's uniform distribution (Glorot & Bengio 2010)."""
    NORMAL = "normal"
    """N(0, 0.02²), as Dai et al. 2019 do it."""


class Inject(StrEnum):
    """Where the direct sum f + t is taken."""

    INPUT = "input"
    """Once, at the input of the stack."""
    PER_LAYER = "per-layer"
    """Inside each attention."""


class Reach(StrEnum):
    """Which side of a query the patterns `strided` and `fixed` extend to."""

    PAST = "past"
    BOTH = "both"


class Norm(StrEnum):
    """Where layer normalisation stands."""

    POST = "post"
    """After the residual sum (Vaswani et al. 2017)."""
    PRE = "pre"
    """Before each sublayer (Xiong et al. 2020)."""


class Normalisation(StrEnum):
    """How features are normalised."""

    LAYER = "layer"
    """Layer normalisation (Ba et al. 2016)."""
    RMS = "rms"
    """RMSNorm, which leaves out mean and bias (Zhang & Sennrich 2019)."""


class FeedForwardKind(StrEnum):
    """What stands between the matrices of a feed-forward layer."""

    RELU = "relu"
    """A ReLU (Vaswani et al. 2017)."""
    GELU = "gelu"
    """x Φ(x) with the normal distribution's Φ (Hendrycks & Gimpel 2016)."""
    SWIGLU = "swiglu"
    """x σ(x) times a second projection, which makes three matrices of two (Shazeer 2020)."""


class Embeddings(StrEnum):
    """Which embedding matrices are one."""

    SHARED = "shared"
    """All three matrices are one."""
    TIED = "tied"
    """The decoder's input and output are one."""
    SEPARATE = "separate"
    """Each is its own."""


class VocabularyKind(StrEnum):
    """How text becomes tokens."""

    WORD = "word"
    """Whole words."""
    BPE = "bpe"
    """Byte pairs, learned on source and target together."""
    SUBWORD_NMT = "subword-nmt"
    """Byte pairs as the tool of Sennrich et al. 2016 learns them, by a number of merges."""


class Dictionaries(StrEnum):
    """Whether source and target share one list of tokens."""

    JOINT = "joint"
    """One list of tokens."""
    SEPARATE = "separate"
    """A list for each, of the tokens in its own training text."""


class Optimiser(StrEnum):
    """What takes a step along the gradient."""

    ADAMW = "adamw"
    """AdamW (Loshchilov & Hutter 2019)."""
    LION = "lion"
    """Lion (Chen et al. 2023)."""
    MUON = "muon"
    """Muon (Jordan et al. 2024) for the matrices inside the layers; AdamW for all others."""


class Schedule(StrEnum):
    """The learning rate after the warm-up."""

    INVERSE_SQRT = "inverse-sqrt"
    """It falls as 1/√step (Vaswani et al. 2017)."""
    COSINE = "cosine"
    """It falls by half a cosine (Loshchilov & Hutter 2017)."""
    CONSTANT = "constant"
    """It stays."""
    WARMUP_STABLE_DECAY = "warmup-stable-decay"
    """It stays, and falls at the end of the run (Hu et al. 2024)."""


class LengthPenalty(StrEnum):
    """What a log-probability of n tokens is divided by."""

    LENGTH = "length"
    """n^a (Ott et al. 2019)."""
    GNMT = "gnmt"
    """((5 + n) / 6)^a (Wu et al. 2016)."""


class Precision(StrEnum):
    """Number format of the forward and backward pass; weights stay in 32 bits."""

    FP32 = "fp32"
    """32 bits."""
    BF16 = "bf16"
    """bfloat16: 16 bits, 8 of them for the exponent."""


class Arithmetic(StrEnum):
    """Which algorithms torch may compute with."""

    EXACT = "exact"
    """Deterministic ones alone: a run has the same bits in each repetition, and where it was resumed."""
    FAST = "fast"
    """The fastest, whose sums may have another order in each repetition."""


class Direction(StrEnum):
    """Which end of a metric is the good one."""

    MAX = "max"
    """More is better."""
    MIN = "min"
    """Less is better."""


class Split(StrEnum):
    """The three parts of a corpus."""

    TRAIN = "train"
    """What the weights are found on."""
    VALID = "valid"
    """What runs are selected by."""
    TEST = "test"
    """What is reported."""


class IfChanged(StrEnum):
    """What happens to a run that started under other conditions than the present ones, so that its bits would differ.

    It is refused and stays as it is, starts again, or resumes and is marked as not bit-exact.
    """

    REFUSE = "refuse"
    RESTART = "restart"
    CONTINUE = "continue"
