"""Loads a model folder with transformers."""

import sys

import transformers


def load(folder, task):
    """The model for `task` (of AutoModelFor...) and the tokenizer. Ends the program unless the weights are all of the model's."""
    model, report = getattr(transformers, f"AutoModelFor{task}").from_pretrained(folder, output_loading_info=True)
    for kind in ["missing_keys", "unexpected_keys", "mismatched_keys"]:
        if report[kind]:
            sys.exit(f"{folder}: {kind}: {report[kind]}")
    return model.eval(), transformers.AutoTokenizer.from_pretrained(folder)
