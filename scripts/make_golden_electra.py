#!/usr/bin/env python3
"""Writes tests/golden/electra/: tiny random ELECTRA models, whose embeddings are narrower than their layers, and what transformers
computes with them.

Needs torch, transformers and safetensors (the files in the repository: torch 2.13, transformers 5.23):
    python3 scripts/make_golden_electra.py

sequence/, token/, qa/    config.json, model.safetensors (fp32) and golden.safetensors, and
parity_sequence/, parity_token/, parity_qa/, all as make_golden_roberta.py writes them
"""

import make_golden_bert as common
import make_golden_roberta as roberta
from transformers import ElectraConfig, ElectraForQuestionAnswering, ElectraForSequenceClassification, ElectraForTokenClassification

SMALL = dict(vocab_size=60, embedding_size=20, hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=48,
             max_position_embeddings=48, pad_token_id=1, hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0)

if __name__ == "__main__":
    roberta.ROOT = common.ROOT.parent / "electra"
    roberta.CASES = {"sequence": (ElectraForSequenceClassification, 3), "token": (ElectraForTokenClassification, 5),
                     "qa": (ElectraForQuestionAnswering, 2)}
    roberta.make_config = lambda labels: ElectraConfig(**SMALL, num_labels=labels)
    roberta.main()
