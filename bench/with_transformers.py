"""transformers' generate on the weights that our loader reads."""

import time
from pathlib import Path

import torch

from bench.workload import Workload
from reference_engine.model.load_gguf import load_gguf


class WithTransformers:
    """One call of generate per workload: padded on the left, until the longest output is done."""

    def __init__(self, path: Path) -> None:
        import transformers  # noqa: PLC0415  # a developer's tool, perhaps not installed

        transformers.logging.set_verbosity_error()
        ours, _, shape = load_gguf(path)
        config = transformers.LlamaConfig(
            vocab_size=shape.vocab_size,
            hidden_size=shape.hidden_size,
            intermediate_size=shape.intermediate_size,
            num_hidden_layers=shape.num_layers,
            num_attention_heads=shape.num_heads,
            num_key_value_heads=shape.num_kv_heads,
            head_dim=shape.head_dim,
            rms_norm_eps=shape.rms_norm_eps,
            rope_parameters={"rope_type": "default", "rope_theta": shape.rope_theta},
            max_position_embeddings=shape.max_position_embeddings,
            tie_word_embeddings=True,
            bos_token_id=None,
            # Nothing ends an output early: every side makes the same number of tokens.
            eos_token_id=None,
        )
        self._model = transformers.LlamaForCausalLM(config).eval()
        missing, unexpected = self._model.load_state_dict(ours.state_dict(), strict=False)
        if unexpected or not set(missing) <= {"lm_head.weight"}:
            raise RuntimeError(f"weights do not fit: missing {missing}, unexpected {unexpected}")
        self._model.tie_weights()
        self.version = f"transformers {transformers.__version__}"

    @torch.inference_mode()
    def seconds(self, workload: Workload) -> float:
        """Of wall time for all prompts and outputs."""
        longest = max(map(len, workload.prompts))
        padded = [[0] * (longest - len(one)) + list(one) for one in workload.prompts]
        mask = [[0] * (longest - len(one)) + [1] * len(one) for one in workload.prompts]
        start = time.perf_counter()
        out = self._model.generate(
            torch.tensor(padded),
            attention_mask=torch.tensor(mask),
            do_sample=False,
            max_new_tokens=max(workload.outputs),
            pad_token_id=0,
        )
        took = time.perf_counter() - start
        if out.shape[1] != longest + max(workload.outputs):
            raise RuntimeError(f"generate stopped early, at {out.shape[1] - longest} tokens")
        return took
