#!/usr/bin/env python3
"""Writes tests/golden/llama/: tiny random models of Llama's family and what transformers computes with them.

Needs torch, transformers and safetensors (the files in the repository: torch 2.13, transformers 5.23):
    python3 scripts/make_golden_llama.py

<case>/     see golden_decoders.make_case
parity_*/   see golden_decoders.make_parity

The reference runs each sequence by itself, in a model of its own (dynamic positions depend on what a model has seen before),
without dropout, on one thread. Its RMSNorm and its eager attention compute in fp32 whatever the model's type: that is changed
here, so that fp64 is a reference of that precision. Partial rotary positions are those of Phi-3: Llama's class does not compute them.
"""

import torch
from transformers import (LlamaConfig, LlamaForCausalLM, MistralConfig, MistralForCausalLM, Qwen2Config, Qwen2ForCausalLM,
                          Qwen3Config, Qwen3ForCausalLM)
from transformers.models.llama import modeling_llama
from transformers.models.mistral import modeling_mistral
from transformers.models.phi3 import modeling_phi3
from transformers.models.qwen2 import modeling_qwen2
from transformers.models.qwen3 import modeling_qwen3

import golden_decoders as decoders
import make_golden_bert as common

ROOT = common.ROOT.parent / "llama"
SMALL = dict(vocab_size=40, hidden_size=16, intermediate_size=23, num_hidden_layers=2, num_attention_heads=2,
             max_position_embeddings=64, rms_norm_eps=1e-5, bos_token_id=0, eos_token_id=0)
GROUPED = dict(SMALL, hidden_size=24, num_attention_heads=4, num_key_value_heads=2)


def rope(**parameters):
    return dict(SMALL, hidden_size=24, max_position_embeddings=12, rope_parameters=dict(parameters))


CASES = {
    "plain": (LlamaForCausalLM, LlamaConfig, SMALL),
    "grouped": (LlamaForCausalLM, LlamaConfig, dict(GROUPED, head_dim=10, rope_parameters={"rope_theta": 500.0, "rope_type": "default"})),
    "biases": (LlamaForCausalLM, LlamaConfig, dict(SMALL, attention_bias=True, mlp_bias=True, hidden_act="gelu", pad_token_id=7)),
    "tied": (LlamaForCausalLM, LlamaConfig, dict(SMALL, num_hidden_layers=3, num_key_value_heads=1, tie_word_embeddings=True)),
    "linear": (LlamaForCausalLM, LlamaConfig, rope(rope_type="linear", factor=4.0, rope_theta=10000.0)),
    "dynamic": (LlamaForCausalLM, LlamaConfig, rope(rope_type="dynamic", factor=2.0, rope_theta=1000.0)),
    "yarn": (LlamaForCausalLM, LlamaConfig, rope(rope_type="yarn", factor=4.0, original_max_position_embeddings=6, rope_theta=10000.0,
                                                 beta_fast=2.0, beta_slow=0.5)),
    "yarn_scaled": (LlamaForCausalLM, LlamaConfig, rope(rope_type="yarn", factor=4.0, original_max_position_embeddings=6, rope_theta=100.0,
                                                        mscale=0.7, mscale_all_dim=1.3, truncate=False)),
    "longrope": (LlamaForCausalLM, LlamaConfig, rope(rope_type="longrope", original_max_position_embeddings=8, rope_theta=10000.0,
                                                     short_factor=[1.0, 1.1, 1.3, 1.7, 2.0, 2.2], long_factor=[1.5, 2.0, 3.0, 4.0, 6.0, 9.0])),
    "llama3": (LlamaForCausalLM, LlamaConfig, rope(rope_type="llama3", factor=8.0, low_freq_factor=1.0, high_freq_factor=4.0,
                                                   original_max_position_embeddings=32, rope_theta=100.0)),
    "partial": (LlamaForCausalLM, LlamaConfig, rope(rope_type="linear", factor=1.5, rope_theta=10000.0, partial_rotary_factor=0.5)),
    "mistral": (MistralForCausalLM, MistralConfig, dict(GROUPED, sliding_window=5)),
    "qwen2": (Qwen2ForCausalLM, Qwen2Config, dict(GROUPED, num_hidden_layers=3, use_sliding_window=True, sliding_window=4, max_window_layers=1)),
    "qwen3": (Qwen3ForCausalLM, Qwen3Config, dict(GROUPED, head_dim=8, attention_bias=True, tie_word_embeddings=True)),
}


PARITY = ["grouped", "mistral", "qwen2", "qwen3"]


def rms_norm(self, hidden_states):
    variance = hidden_states.pow(2).mean(-1, keepdim=True)
    return self.weight * (hidden_states * torch.rsqrt(variance + self.variance_epsilon))


def fan_in(name):
    return 1


def main():
    decoders.set_up()
    for norm in (modeling_llama.LlamaRMSNorm, modeling_mistral.MistralRMSNorm, modeling_qwen2.Qwen2RMSNorm, modeling_qwen3.Qwen3RMSNorm):
        norm.forward = rms_norm
    for seed, (name, (kind, config_kind, values)) in enumerate(CASES.items(), start=1):
        whole = modeling_llama.apply_rotary_pos_emb
        if name == "partial":
            modeling_llama.apply_rotary_pos_emb = modeling_phi3.apply_rotary_pos_emb
        decoders.make_case(ROOT, kind, name, config_kind(**values), seed, fan_in, attention="sdpa")
        modeling_llama.apply_rotary_pos_emb = whole
    for name in PARITY:
        kind, config_kind, values = CASES[name]
        decoders.make_parity(ROOT, kind, "parity_" + name, config_kind(**values), 70 + PARITY.index(name), fan_in, attention="sdpa")


if __name__ == "__main__":
    main()
