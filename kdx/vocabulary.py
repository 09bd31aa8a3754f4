"""The vocabulary of the study: names in YAML, enums in code.

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
    """A: the encoder's tokens attend to each other."""
    ENCODER_DECODER = "encoder-decoder"
    """B: the decoder's tokens attend to the encoder's."""
    DECODER_SELF = "decoder-self"
    """C: the decoder's tokens attend to each other."""


class Symmetry(StrEnum):
    """Whether queries and keys share one projection, weights and biases alike (W_q = W_k)."""

    ASYMMETRIC = "asymmetric"
    """Queries and keys have separate projections."""
    SYMMETRIC = "symmetric"
    """One projection serves both: W_q = W_k."""


class QKNorm(StrEnum):
    """How queries and keys are normalised before any kernel compares them."""

    NONE = "none"
    """No normalisation."""
    L2 = "l2"
    """Scaled to length 1, with a learned scale (Henry et al. 2020)."""
    RMS = "rms"
    """Scaled to a root mean square of 1, with a learned gain (Dehghani et al. 2023, who use layer normalisation)."""


class Maps(StrEnum):
    """The weights of a head's values."""

    SINGLE = "single"
    """One attention map."""
    DIFFERENTIAL = "differential"
    """The difference of two attention maps (Ye et al. 2024)."""


class ValueProjection(StrEnum):
    """The projection that makes the values."""

    OWN = "own"
    """One of their own, W_v."""
    KEYS = "keys"
    """That of the keys: W_v = W_k (Kayyam et al. 2026)."""


class Projection(StrEnum):
    """The projections that make queries and keys."""

    LINEAR = "linear"
    """W_q and W_k."""
    NONE = "none"
    """None: each head compares its share of the tokens' own features (Kundu et al. 2026)."""


class Smoother(StrEnum):
    """The estimator that a kernel's weights give, of the values at a query."""

    LOCAL_CONSTANT = "local-constant"
    """The average of Eq. 2."""
    LOCAL_LINEAR = "local-linear"
    """A line that is fitted to the values near the query (Zuo et al. 2026)."""


class OutputGate(StrEnum):
    """The gate by which the heads' output is multiplied before W_o."""

    NONE = "none"
    """No gate."""
    SIGMOID = "sigmoid"
    """σ(x W_g), where x is the query's token (Qiu et al. 2025)."""


class Bias(StrEnum):
    """Whether a projection adds a learned bias."""

    NONE = "none"
    """No bias."""
    LEARNED = "learned"
    """A learned bias."""


class Initialisation(StrEnum):
    """The initial weights."""

    XAVIER = "xavier"
    """Xavier's uniform distribution (Glorot & Bengio 2010)."""
    NORMAL = "normal"
    """N(0, 0.02²), as in Dai et al. 2019."""


class Inject(StrEnum):
    """The place of the direct sum f + t."""

    INPUT = "input"
    """Once, at the input of the stack."""
    PER_LAYER = "per-layer"
    """Inside each attention."""


class Reach(StrEnum):
    """The side of a query to which the patterns `strided` and `fixed` extend."""

    PAST = "past"
    BOTH = "both"


class Norm(StrEnum):
    """The place of layer normalisation."""

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
    """The function between the matrices of a feed-forward layer."""

    RELU = "relu"
    """A ReLU (Vaswani et al. 2017)."""
    GELU = "gelu"
    """x Φ(x) with the normal distribution's Φ (Hendrycks & Gimpel 2016)."""
    SWIGLU = "swiglu"
    """x σ(x) times a second projection, so the layer has three matrices (Shazeer 2020)."""


class Embeddings(StrEnum):
    """The embedding matrices that are shared."""

    SHARED = "shared"
    """All three matrices are one."""
    TIED = "tied"
    """The decoder's input and output are one."""
    SEPARATE = "separate"
    """Three separate matrices."""


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
    """A list for each language, of the tokens in its training text."""


class Optimiser(StrEnum):
    """The optimisation algorithm."""

    ADAMW = "adamw"
    """AdamW (Loshchilov & Hutter 2019)."""
    LION = "lion"
    """Lion (Chen et al. 2023)."""
    MUON = "muon"
    """Muon (Jordan et al. 2024) for the matrices inside the layers; AdamW for all others."""


class Schedule(StrEnum):
    """The learning rate after the warm-up."""

    INVERSE_SQRT = "inverse-sqrt"
    """Falls as 1/√step (Vaswani et al. 2017)."""
    COSINE = "cosine"
    """Falls along half a cosine (Loshchilov & Hutter 2017)."""
    CONSTANT = "constant"
    """Stays constant."""
    WARMUP_STABLE_DECAY = "warmup-stable-decay"
    """Stays constant, then falls at the end of the run (Hu et al. 2024)."""


class LengthPenalty(StrEnum):
    """The divisor of a log-probability of n tokens."""

    LENGTH = "length"
    """n^a (Ott et al. 2019)."""
    GNMT = "gnmt"
    """((5 + n) / 6)^a (Wu et al. 2016)."""


class Precision(StrEnum):
    """The number format of the forward and backward pass; weights stay in 32 bits."""

    FP32 = "fp32"
    """32 bits."""
    BF16 = "bf16"
    """bfloat16: 16 bits, 8 of them for the exponent."""


class Arithmetic(StrEnum):
    """The algorithms that torch may use."""

    EXACT = "exact"
    """Deterministic algorithms only: a run has the same bits each time, also if it was resumed."""
    FAST = "fast"
    """The fastest algorithms, whose sums may have another order each time."""


class Direction(StrEnum):
    """The direction in which a metric is better."""

    MAX = "max"
    """Higher is better."""
    MIN = "min"
    """Lower is better."""


class Split(StrEnum):
    """The three parts of a corpus."""

    TRAIN = "train"
    """The part that weights are trained on."""
    VALID = "valid"
    """The part that runs are selected by."""
    TEST = "test"
    """The part that results are reported on."""


class IfChanged(StrEnum):
    """What to do with a run that was started under other conditions than the current ones, which would change its bits.

    The run is refused and stays as it is, starts again from step 0, or resumes and is marked as not bit-exact.
    """

    REFUSE = "refuse"
    RESTART = "restart"
    CONTINUE = "continue"
