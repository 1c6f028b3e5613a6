#!/usr/bin/env python3
"""Writes tests/golden/distilbert/: tiny random DistilBERT models and what transformers computes with them.

Needs torch, transformers and safetensors (the files in the repository: torch 2.13, transformers 5.23):
    python3 scripts/make_golden_distilbert.py

sequence/, token/, qa/    config.json, model.safetensors (fp32) and golden.safetensors, and
parity_sequence/, parity_token/, parity_qa/, all as make_golden_roberta.py writes them
"""

import make_golden_bert as common
import make_golden_roberta as roberta
from transformers import (DistilBertConfig, DistilBertForQuestionAnswering, DistilBertForSequenceClassification,
                          DistilBertForTokenClassification)

SMALL = dict(vocab_size=60, dim=32, n_layers=2, n_heads=4, hidden_dim=48, max_position_embeddings=48, dropout=0.0,
             attention_dropout=0.0, seq_classif_dropout=0.0, pad_token_id=1)

if __name__ == "__main__":
    roberta.ROOT = common.ROOT.parent / "distilbert"
    roberta.CASES = {"sequence": (DistilBertForSequenceClassification, 3), "token": (DistilBertForTokenClassification, 5),
                     "qa": (DistilBertForQuestionAnswering, 2)}
    roberta.make_config = lambda labels: DistilBertConfig(**SMALL, num_labels=labels, **(dict(qa_dropout=0.0) if labels == 2 else {}))
    roberta.main()
