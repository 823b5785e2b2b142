"""A Llama-family decoder in plain PyTorch."""

import torch
from torch import Tensor, nn
from torch.nn import functional

from reference_engine.model.attention import PagedAttention, pad_rows
from reference_engine.model.batch import Batch
from reference_engine.model.config import ModelConfig
from reference_engine.model.kv_cache import KVCache
from reference_engine.model.layers import Attend, DecoderLayer, RMSNorm, rotary


class Decoder(nn.Module):
    """Embedding, layers and the last norm."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.embed_tokens = nn.Embedding(config.vocab_size, config.hidden_size)
        self.layers = nn.ModuleList(DecoderLayer(config, i) for i in range(config.num_layers))
        self.norm = RMSNorm(config.hidden_size, config.rms_norm_eps)


class Llama(nn.Module):
    """The model; the names of its weights are those of Hugging Face checkpoints.

    Weights and residual stream are float32: with a bfloat16 residual SmolLM2 answers nonsense.
    """

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.config = config
        self.model = Decoder(config)
        if not config.tie_word_embeddings:
            self.lm_head = nn.Linear(config.hidden_size, config.vocab_size, bias=False)

    def hidden_states(self, token_ids: Tensor, positions: Tensor, attend: Attend) -> Tensor:
        """token_ids and positions [n] -> normed states [n, hidden]."""
        cos, sin = rotary(self.config, positions)
        x = self.model.embed_tokens(token_ids)
        for layer in self.model.layers:
            x = layer(x, cos, sin, attend)
        return torch.as_tensor(self.model.norm(x))

    def logits(self, states: Tensor) -> Tensor:
        """States [n, hidden] -> [n, vocab]."""
        head = self.model.embed_tokens if self.config.tie_word_embeddings else self.lm_head
        return functional.linear(states, head.weight)

    @torch.inference_mode()
    def forward(self, batch: Batch, cache: KVCache) -> Tensor:
        """Run one step: store the KV of its tokens, return float32 logits [n, vocab].

        n is the length of `batch.logit_rows`. A row's logits don't depend on the other rows, nor
        on how its prompt was cut into steps; see attention.py for how exactly that holds.
        """
        attend = PagedAttention(batch, cache)
        states = self.hidden_states(pad_rows(batch.token_ids), pad_rows(batch.positions), attend)
        wanted = states[batch.logit_rows]
        return self.logits(pad_rows(wanted))[: wanted.shape[0]].float()
