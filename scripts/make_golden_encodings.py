#!/usr/bin/env python3
"""Writes the expected encodings of all families of tokenizers for the tests of stretto/text, with Hugging Face's tokenizers.

  golden         tests/golden/tokenizer/: small tokenizers (a folder each), encodings.jsonl, family_code_points.txt
  data FOLDER    tests/golden/tokenizer/family_data_sums.txt: a sum for each text file under FOLDER

Needs scripts/golden-requirements.txt. The results are committed; run it again only to follow a new tokenizers. An encoding is stored as
a sum (crc32) of the line that `line_of` writes of it; `show NUMBER` prints the lines of one row of encodings.jsonl.
"""
import argparse
import json
import os
import zlib

import golden_families
import make_golden_tokenizer as golden
import sentencepiece_model
from tokenizers import decoders

SHORT, LONG = "hello the Map", "the world is not a g\u00f6od film, hello [MASK] new york\u2026 \u4e2d\u56fd re-read <mask> it's\U0001f600"
WORDS = ["Hello", "unhappily", "", "\u4e2d\u56fd", "caf\u00e9!", " ", "New York", "[MASK]x", "don't", "\u0301", "<mask>", " a "]
SPLIT = LONG.split()  # words without white space inside, as `stretto tokenize --split-into-words` reads them
STRATEGIES = ("longest_first", "only_first", "only_second", "do_not_truncate")


def line_of(encoding, types=True):
    columns = [
        encoding.ids,
        encoding.type_ids if types else [],
        [n for offset in encoding.offsets for n in offset],
        [-1 if word is None else word for word in encoding.word_ids],
        [-1 if sequence is None else sequence for sequence in encoding.sequence_ids],
        encoding.special_tokens_mask,
    ]
    return "\t".join(" ".join(map(str, column)) for column in columns) + "\n"


def lines_of_case(case, tokenizer):
    """One line per window; nothing where tokenizers refuses."""
    first, second, length = case["first"], case.get("second"), case.get("max_length")
    tokenizer.no_truncation()
    try:
        if length is not None and case["strategy"] != "do_not_truncate":
            tokenizer.enable_truncation(length, stride=case["stride"], strategy=case["strategy"], direction=case["side"])
        encoding = tokenizer.encode(first, second, is_pretokenized=isinstance(first, list),
                                    add_special_tokens=case.get("special", True))
    except BaseException:  # also Rust's assertions
        return []
    finally:
        tokenizer.no_truncation()
    # In the overflowing windows of a pair tokenizers leaves its own type ids; stretto has the template's
    # everywhere.
    pair_types = case["tokenizer"] != "xlm_roberta"
    windows = [encoding, *encoding.overflowing]
    return [line_of(window, pair_types or second is None or window is encoding) for window in windows]


def cases(name, tokenizer):
    texts = golden.HARD_TEXTS + golden_families.TEXTS + [b.decode(errors="replace") for b in golden.HARD_BYTES]
    for text in texts:
        yield {"first": text, "decoded": [tokenizer.decode(tokenizer.encode(text).ids, skip_special_tokens=skip) for skip in (True, False)]}
    for first in (SHORT, LONG, WORDS):
        yield {"first": first}
        yield {"first": first, "second": first, "special": False}
        for side in ("right", "left"):
            for length, stride in ((3, 0), (7, 0), (7, 4), (12, 7), (200, 5)):
                yield {"first": first, "max_length": length, "strategy": "longest_first", "stride": stride, "side": side}
    yield {"first": LONG, "special": False, "max_length": 4, "strategy": "longest_first", "stride": 1, "side": "right"}
    yield {"first": LONG, "max_length": 6, "strategy": "only_second", "stride": 0, "side": "right"}
    yield {"first": LONG, "max_length": 6, "strategy": "longest_first", "stride": 6, "side": "right"}
    for first, second in ((SHORT, LONG), (LONG, SHORT), (SHORT, ""), (LONG, LONG), (WORDS, WORDS[:2])):
        for strategy in STRATEGIES:
            if name == "word_level" and strategy != "do_not_truncate":
                continue  # without a post-processor tokenizers loses the sequence ids of a pair's further windows
            for length, stride, side in ((9, 0, "right"), (12, 2, "right"), (14, 1, "left"), (24, 3, "right")):
                yield {"first": first, "second": second, "max_length": length, "strategy": strategy, "stride": stride, "side": side}
    yield {"first": SPLIT}
    yield {"first": SPLIT, "max_length": 7, "strategy": "longest_first", "stride": 2, "side": "right"}
    if name != "word_level":
        for strategy in STRATEGIES:
            yield {"first": SPLIT[:3], "second": SPLIT, "max_length": 14, "strategy": strategy, "stride": 2, "side": "right"}
    if name not in ("roberta", "word_level"):  # its type ids differ: see lines_of_case
        yield {"first": SHORT, "second": LONG, "special": False, "max_length": 9, "strategy": "only_second", "stride": 1, "side": "right"}


def all_tokenizers():
    own = golden.own_tokenizers()
    made = {name: own[name][0] for name in ("uncased", "options")}
    made["uncased"].decoder = decoders.WordPiece()  # as transformers makes it from a vocab.txt
    made.update({name: tokenizer for name, (tokenizer, _) in golden_families.families().items()})
    return made


def all_cases(tokenizers):
    for name, tokenizer in tokenizers.items():
        for case in cases(name, tokenizer):
            yield {"tokenizer": name, **case}


def code_point_text(value):
    if 0xD800 <= value < 0xE000:
        return ""
    c = chr(value)
    return "a" + c + "b " if value >= 0x33000 else " a" + c + "b " + c + c + " 1" + c + "!" + c + " " + c + "'s e" + c + "\u0301 "


def code_point_rows(tokenizers):
    columns = [tokenizers[name] for name in ("gpt2", "unigram", "xlm_roberta")]
    for block in range(0, 0x110000, 1024):
        texts = ["".join(map(code_point_text, range(start, start + 16))) for start in range(block, block + 1024, 16)]
        sums = [0] * len(columns)
        for i, tokenizer in enumerate(columns):
            for encoding in tokenizer.encode_batch(texts):
                sums[i] = golden.add_line(sums[i], golden.line_of(encoding))
        yield "%x" % block, sums


def write_golden():
    for name, (_, files) in golden_families.families().items():
        os.makedirs(os.path.join(golden.GOLDEN, name), exist_ok=True)
        for file, content in files.items():
            with open(os.path.join(golden.GOLDEN, name, file), "wb") as out:
                out.write(content)
    tokenizers = all_tokenizers()
    with open(os.path.join(golden.GOLDEN, "encodings.jsonl"), "w") as out:
        for case in all_cases(tokenizers):
            lines = lines_of_case(case, tokenizers[case["tokenizer"]])
            case["sums"] = ["%08x" % zlib.crc32(line.encode()) for line in lines]
            out.write(json.dumps(case, separators=(",", ":")) + "\n")
    golden.write_sums(os.path.join(golden.GOLDEN, "family_code_points.txt"), code_point_rows(tokenizers))


# ---- real data


def data_tokenizers(folder):
    """What transformers makes of the files; in the test in the same order."""
    import transformers

    folder = os.path.join(folder, "tokenizers")
    tokenizers = [transformers.GPT2Tokenizer.from_pretrained(os.path.join(folder, "gpt2"))._tokenizer,
                  transformers.RobertaTokenizer.from_pretrained(os.path.join(folder, "roberta-base"))._tokenizer]
    with open(os.path.join(folder, "unigram", "t5_tokenizer_base.model"), "rb") as file:
        model = sentencepiece_model.read_model(file.read())
    t5 = golden_families.unigram_tokenizer([piece[:2] for piece in model["pieces"]], model["unk_id"], model["charsmap"], True)
    t5.add_special_tokens([text for text, _, kind in model["pieces"] if kind == 3])
    for tokenizer in (*tokenizers, t5):
        tokenizer.no_truncation()
    return [*tokenizers, t5]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["golden", "show", "data"])
    parser.add_argument("argument", nargs="?", help="a row's number, from 1; the folder of the real data")
    arguments = parser.parse_args()
    if arguments.what == "golden":
        write_golden()
    elif arguments.argument is None:
        parser.error(arguments.what + " needs an argument")
    elif arguments.what == "show":
        tokenizers = all_tokenizers()
        case = list(all_cases(tokenizers))[int(arguments.argument) - 1]
        print(case)
        print("".join(lines_of_case(case, tokenizers[case["tokenizer"]])), end="")
    else:
        rows = golden.data_rows(arguments.argument, data_tokenizers(arguments.argument))
        golden.write_sums(os.path.join(golden.GOLDEN, "family_data_sums.txt"), rows)


if __name__ == "__main__":
    main()
