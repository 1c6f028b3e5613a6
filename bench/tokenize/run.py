#!/usr/bin/env python3
"""Tokenization on one core: `stretto tokenize` versus Hugging Face tokenizers, whole programs, from a text file to a file of ids.

WordPiece uses the demo's encoder. Byte-level BPE and Unigram use GPT-2's and T5's vocabularies in $STRETTO_DATA/tokenizers; without
it, vocabularies of 8,000 tokens that the peer trains on the text.
"""

import argparse
import os
import pathlib
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
import measure

PEER = """
import sys
from tokenizers import Tokenizer
tokenizer = Tokenizer.from_file(sys.argv[1] + "/tokenizer.json")
tokenizer.no_padding()
tokenizer.no_truncation()
with open(sys.argv[2], encoding="utf-8") as file, open(sys.argv[3], "w") as out:
    lines = file.read().splitlines()
    for begin in range(0, len(lines), 1000):
        for encoding in tokenizer.encode_batch_fast(lines[begin:begin + 1000]):
            out.write(" ".join(map(str, encoding.ids)) + "\\n")
"""

# Writes a tokenizer.json of the family argv[1] to argv[3]: from the file argv[4], else trained on the text
# argv[2].
MAKE = """
import sys
sys.path.insert(0, sys.argv[5])
import sentencepiece_model
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, trainers
family, text, target, source = sys.argv[1:5]
if family == "bpe":
    tokenizer = Tokenizer(models.BPE())
    trainer = trainers.BpeTrainer(vocab_size=8000, initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), show_progress=False)
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
else:
    tokenizer = Tokenizer(models.Unigram())
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    trainer = trainers.UnigramTrainer(vocab_size=8000, unk_token="<unk>", special_tokens=["<unk>"], show_progress=False)
if source:
    with open(source, "rb") as file:
        model = sentencepiece_model.read_model(file.read())
    tokenizer = Tokenizer(models.Unigram([piece[:2] for piece in model["pieces"]], unk_id=model["unk_id"]))
    tokenizer.normalizer = normalizers.Precompiled(model["charsmap"])
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Metaspace()])
else:
    tokenizer.train([text], trainer)
tokenizer.save(target)
"""


def family_folder(python, family, text, temporary):
    """A folder with a tokenizer.json that both programs read."""
    data = pathlib.Path(os.environ["STRETTO_DATA"]) / "tokenizers" if "STRETTO_DATA" in os.environ else None
    if family == "bpe" and data:
        return data / "gpt2"
    folder = temporary / family
    folder.mkdir()
    source = data / "unigram/t5_tokenizer_base.model" if data else ""
    subprocess.run([python, "-c", MAKE, family, text, folder / "tokenizer.json", source, measure.ROOT / "scripts"], check=True)
    return folder


def compare(name, options, tokenizer, text, temporary, must, goal):
    megabytes = text.stat().st_size / 1e6
    ours, theirs = [], []
    for _ in range(options.rounds):
        one = measure.run(["sh", "-c", f'"{options.stretto}" tokenize --tokenizer "{tokenizer}" "{text}" > "{temporary}/ours"'],
                          measure.one_core())
        ours.append(megabytes / one.seconds)
        one = measure.run([options.python, "-c", PEER, tokenizer, text, temporary / "theirs"], measure.one_core(),
                          {"TOKENIZERS_PARALLELISM": "false", "RAYON_NUM_THREADS": "1"})
        theirs.append(megabytes / one.seconds)
    if (temporary / "ours").read_bytes() != (temporary / "theirs").read_bytes():
        sys.exit(f"{name}: the two programs do not agree on the ids")
    measure.print_row(f"{name}, file to ids", "MB/s", ours, "HF tokenizers", theirs, True, must, goal)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--stretto", type=pathlib.Path, default=measure.ROOT / "build/release/bin/stretto")
    parser.add_argument("--python", default=sys.executable, help="a Python with tokenizers")
    parser.add_argument("--encoder", help="for WordPiece; default: STRETTO_ENCODER, else the demo's")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--only", nargs="*", choices=["wordpiece", "bpe", "unigram"], default=["wordpiece", "bpe", "unigram"])
    options = parser.parse_args()
    measure.require_tools("taskset")
    with tempfile.TemporaryDirectory(prefix="tokenize-bench-") as name:
        temporary = pathlib.Path(name)
        rows = measure.training_file(temporary).read_text(encoding="utf-8").splitlines()[1:]
        text = temporary / "text"
        text.write_text("\n".join(row.split("\t")[0] for row in rows) * 4 + "\n", encoding="utf-8")
        if "wordpiece" in options.only:
            compare("WordPiece", options, measure.encoder(options.encoder), text, temporary, 4, 8)
        for family, title in (("bpe", "byte-level BPE"), ("unigram", "Unigram")):
            if family in options.only:
                compare(title, options, family_folder(options.python, family, text, temporary), text, temporary, 3, None)


if __name__ == "__main__":
    main()
