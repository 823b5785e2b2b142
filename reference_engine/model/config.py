"""Shape and constants of a decoder model, whatever file format they came from."""

from dataclasses import dataclass

from reference_engine.model.rope import RopeScaling


@dataclass(frozen=True, slots=True)
class ModelConfig:
    """A Llama-family decoder: RMSNorm, rotary positions, grouped-query attention, SwiGLU."""

    architecture: str
    """Name that the checkpoint gives itself, such as LlamaForCausalLM."""
    vocab_size: int
    """Rows of the embedding; may exceed the tokens that the tokenizer defines."""
    hidden_size: int
    intermediate_size: int
    num_layers: int
    num_heads: int
    num_kv_heads: int
    """Divides num_heads."""
    head_dim: int
    """Even; need not be hidden_size / num_heads."""
    rms_norm_eps: float
    rope_theta: float
    max_position_embeddings: int
    """Longest sequence, prompt and output together, in tokens."""
    tie_word_embeddings: bool
    eos_token_ids: tuple[int, ...]
    """Ids that end a generation; may be empty."""
    bos_token_id: int | None = None
    rope_scaling: RopeScaling | None = None
    """How the rotary frequencies differ from the plain ones."""
    qkv_bias: bool = False
    """Biases on the query, key and value projections."""
    output_bias: bool = False
    """A bias on the output projection of the attention."""
    qk_norm: bool = False
    """Whether every query and key head is normed before its rotation."""
