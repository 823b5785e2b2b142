"""A Llama-family decoder in plain PyTorch."""

import torch
from torch import Tensor, nn
from torch.nn import functional

from reference_engine.model.adapters import AdapterHook
from reference_engine.model.attention import PagedAttention
from reference_engine.model.batch import Batch
from reference_engine.model.config import ModelConfig
from reference_engine.model.cuda_attention import CudaAttention
from reference_engine.model.kv_cache import KVCache
from reference_engine.model.layers import Attend, DecoderLayer, RMSNorm, Step, rotary
from reference_engine.model.linear import Linear
from reference_engine.model.product import Product, Products
from reference_engine.model.rope import frequencies
from reference_engine.model.tiles import pad_rows


class Decoder(nn.Module):
    """Embedding, layers and the last norm."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        # Not drawn at random: that would be thrown away, and on the meta device PyTorch imports
        # its compiler for it, 1.2 s of every start.
        size = (config.vocab_size, config.hidden_size)
        self.embed_tokens = nn.Embedding(size[0], size[1], _weight=torch.zeros(size))
        self.layers = nn.ModuleList(DecoderLayer(config, i) for i in range(config.num_layers))
        self.norm = RMSNorm(config.hidden_size, config.rms_norm_eps)


class Llama(nn.Module):
    """The model; the names of its weights are those of Hugging Face checkpoints.

    The residual stream is float32: with a bfloat16 one SmolLM2 answers nonsense.
    """

    frequencies: Tensor

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.config = config
        self.model = Decoder(config)
        if not config.tie_word_embeddings:
            self.lm_head = Linear(config.hidden_size, config.vocab_size)
        self.register_buffer(
            "frequencies",
            frequencies(config.rope_theta, config.head_dim, config.rope_scaling),
            persistent=False,
        )
        self._head: Product | None = None
        for name, module in self.named_modules():
            if isinstance(module, Linear):
                module.name = name

    @property
    def device(self) -> torch.device:
        """Where the weights are, and where a cache for it must be."""
        return self.frequencies.device

    def prepare(self, dtype: torch.dtype = torch.float32) -> "Llama":
        """Bring the weights into the form that computes fastest; call it where they shall stay.

        Products multiply in `dtype`, float32 or bfloat16; logits are float32 in any case.
        The weights of projections and head are gone from the state dict afterwards.
        """
        products = Products(dtype)
        for layer in self.modules():
            if isinstance(layer, DecoderLayer):
                for projections in layer.projections:
                    projections.prepare(products)
                if self.frequencies.is_cuda:
                    layer.norm_to(dtype)
        if self._head is None:
            self._head = products.make_head(self._head_weight().detach())
            if not self.config.tie_word_embeddings:
                self.lm_head.release()
        return self

    def hidden_states(
        self,
        token_ids: Tensor,
        positions: Tensor,
        attend: Attend,
        adapters: AdapterHook | None = None,
    ) -> Tensor:
        """token_ids and positions [n] -> normed states [n, hidden]."""
        step = Step(*rotary(self.frequencies, positions), attend, adapters)
        x = self.model.embed_tokens(token_ids)
        for layer in self.model.layers:
            x = layer(x, step)
        return torch.as_tensor(self.model.norm(x))

    def logits(self, states: Tensor) -> Tensor:
        """States [n, hidden] -> [n, vocab]."""
        if self._head is not None:
            return self._head(states)
        return functional.linear(states, self._head_weight())

    def _head_weight(self) -> Tensor:
        head = self.model.embed_tokens if self.config.tie_word_embeddings else self.lm_head
        return head.weight

    @torch.inference_mode()
    def forward(self, batch: Batch, cache: KVCache) -> Tensor:
        """Run one step: store the KV of its tokens, return float32 logits [n, vocab].

        n is the length of `batch.logit_rows`. A row's logits don't depend on the other rows, nor
        on how its prompt was cut into steps; see tiles.py for how exactly that holds.
        """
        if cache.device.type != "cpu":
            return self._forward_on_gpu(batch.to(cache.device), cache)
        attend = PagedAttention(batch, cache, self.config.num_heads)
        states = self.hidden_states(
            pad_rows(batch.token_ids), pad_rows(batch.positions), attend, batch.adapters
        )
        wanted = states[batch.logit_rows]
        return self.logits(pad_rows(wanted))[: wanted.shape[0]].float()

    def _forward_on_gpu(self, batch: Batch, cache: KVCache) -> Tensor:
        """The same without padding: what makes rows independent on a CPU doesn't on a GPU."""
        attend = CudaAttention(batch, cache)
        states = self.hidden_states(batch.token_ids, batch.positions, attend, batch.adapters)
        return self.logits(states[batch.logit_rows]).float()
