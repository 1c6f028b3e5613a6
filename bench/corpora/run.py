#!/usr/bin/env python3
"""From JSON Lines to a corpus of tokens on one core: `stretto data tokenize` versus Hugging Face datasets' map with
tokenizers.

The peer's time is that of load_dataset and map, with tokenizers' fastest call, without the start of Python;
stretto's is that of the whole program. The tokenizer is GPT-2's in $STRETTO_DATA/tokenizers, the text
$STRETTO_DATA's War and Peace and WikiText-2; without it a byte-level BPE of 8,000 tokens that the peer trains on the
demo's reviews.
"""

import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
import measure

PEER = """
import json, sys, time
import datasets
from tokenizers import Tokenizer
datasets.disable_progress_bars()
folder, text, cache, out = sys.argv[1:5]
tokenizer = Tokenizer.from_file(folder + "/tokenizer.json")
tokenizer.no_padding()
tokenizer.no_truncation()
start = time.monotonic()
data = datasets.load_dataset("json", data_files=text, split="train", cache_dir=cache)
data = data.map(lambda rows: {"ids": [encoding.ids for encoding in tokenizer.encode_batch_fast(rows["text"])]},
                batched=True, remove_columns=data.column_names)
print(json.dumps(time.monotonic() - start))
import numpy
numpy.concatenate([numpy.asarray(row["ids"], numpy.uint16) for row in data]).tofile(out)
"""

TRAIN = """
import sys
from tokenizers import Tokenizer, models, pre_tokenizers, trainers
tokenizer = Tokenizer(models.BPE())
tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
alphabet = pre_tokenizers.ByteLevel.alphabet()
tokenizer.train([sys.argv[1]], trainers.BpeTrainer(vocab_size=8000, initial_alphabet=alphabet, show_progress=False))
tokenizer.save(sys.argv[2] + "/tokenizer.json")
"""


def paragraphs(text, least):
    """The text as documents of at least so many characters."""
    documents, current = [], ""
    for line in text.splitlines(keepends=True):
        current += line
        if len(current) >= least:
            documents.append(current)
            current = ""
    return documents + ([current] if current else [])


def prepare(options, temporary):
    """The tokenizer's folder, and the documents."""
    if "STRETTO_DATA" in os.environ:
        data = pathlib.Path(os.environ["STRETTO_DATA"])
        names = ["war_and_peace/wap.train.txt", "wikitext2/valid.txt"]
        texts = [(data / name).read_text(encoding="utf-8") for name in names]
        return data / "tokenizers/gpt2", [document for text in texts for document in paragraphs(text, 2000)]
    rows = measure.training_file(temporary).read_text(encoding="utf-8").splitlines()[1:]
    text = temporary / "text"
    text.write_text("\n".join(row.split("\t")[0] for row in rows) + "\n", encoding="utf-8")
    folder = temporary / "bpe"
    folder.mkdir()
    subprocess.run([options.python, "-c", TRAIN, text, folder], check=True)
    return folder, paragraphs(text.read_text(encoding="utf-8"), 2000)


def main():
    parser = measure.arguments(__doc__)
    parser.add_argument("--megabytes", type=int, default=30)
    options = parser.parse_args()
    measure.require_tools("taskset")
    with tempfile.TemporaryDirectory(prefix="corpora-bench-") as name:
        temporary = pathlib.Path(name)
        tokenizer, documents = prepare(options, temporary)
        text = temporary / "text.jsonl"
        written = 0
        with open(text, "w", encoding="utf-8") as file:
            while written < options.megabytes * 1e6:
                for document in documents:
                    file.write(json.dumps({"text": document}) + "\n")
                    written += len(document.encode())
        ours, theirs = [], []
        environment = {"TOKENIZERS_PARALLELISM": "false", "RAYON_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1"}
        for _ in range(options.rounds):
            shutil.rmtree(temporary / "corpus", ignore_errors=True)
            one = measure.run([options.stretto, "data", "tokenize", text, "--tokenizer", tokenizer, "-o",
                               temporary / "corpus", "-j", 1, "--no-eos"], measure.one_core())
            ours.append(written / 1e6 / one.seconds)
            shutil.rmtree(temporary / "cache", ignore_errors=True)
            one = measure.run([options.python, "-c", PEER, tokenizer, text, temporary / "cache",
                               temporary / "theirs"], measure.one_core(), environment)
            theirs.append(written / 1e6 / json.loads(one.out.splitlines()[0]))
        if (temporary / "corpus/tokens-00000.bin").read_bytes() != (temporary / "theirs").read_bytes():
            sys.exit("the two programs do not agree on the tokens")
        measure.print_row("corpus to tokens, byte-level BPE", "MB/s", ours, "HF datasets map", theirs, True, 4,
                          8)


if __name__ == "__main__":
    main()
