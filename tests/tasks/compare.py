"""Runs the comparisons with transformers. Usage: compare.py FOLDER; transformers_test.py runs it with a
Python that has transformers."""

import pathlib
import sys

import torch
import transformers

import compare_classes
import compare_folders
import compare_language_models
import compare_questions
import compare_tokens

if __name__ == "__main__":
    transformers.logging.set_verbosity_error()
    torch.set_num_threads(1)
    folder = pathlib.Path(sys.argv[1])
    compare_folders.main(folder / "folders")
    compare_language_models.main(folder / "language_models")
    compare_classes.main(folder / "classification")
    compare_questions.main(folder / "questions")
    compare_tokens.main(folder / "tokens")
