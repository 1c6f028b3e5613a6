#!/usr/bin/env python3
"""WordPiece on one core: `stretto tokenize` versus Hugging Face tokenizers, whole programs, from file to ids."""

import argparse
import pathlib
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


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--stretto", type=pathlib.Path, default=measure.ROOT / "build/release/bin/stretto")
    parser.add_argument("--python", default=sys.executable, help="a Python with tokenizers")
    parser.add_argument("--encoder", help="default: STRETTO_ENCODER, else the demo's")
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    encoder = measure.encoder(options.encoder)
    measure.require_tools("taskset")
    with tempfile.TemporaryDirectory(prefix="wordpiece-bench-") as temporary:
        folder = pathlib.Path(temporary)
        rows = measure.training_file(folder).read_text(encoding="utf-8").splitlines()[1:]
        text = folder / "text"
        text.write_text("\n".join(row.split("\t")[0] for row in rows) * 4 + "\n", encoding="utf-8")
        megabytes = text.stat().st_size / 1e6
        ours, theirs = [], []
        for _ in range(options.rounds):
            one = measure.run(["sh", "-c", f'"{options.stretto}" tokenize --tokenizer "{encoder}" "{text}" > "{folder}/ours"'], measure.one_core())
            ours.append(megabytes / one.seconds)
            one = measure.run([options.python, "-c", PEER, encoder, text, folder / "theirs"], measure.one_core(),
                              {"TOKENIZERS_PARALLELISM": "false", "RAYON_NUM_THREADS": "1"})
            theirs.append(megabytes / one.seconds)
        if (folder / "ours").read_bytes() != (folder / "theirs").read_bytes():
            sys.exit("the two programs do not agree on the ids")
        measure.print_row("WordPiece, file to ids", "MB/s", ours, "HF tokenizers", theirs, True, 4, 8)


if __name__ == "__main__":
    main()
