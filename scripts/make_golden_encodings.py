#!/usr/bin/env python3
"""Writes tests/golden/tokenizer/encodings.jsonl: complete encodings by Hugging Face's tokenizers (any recent version) of texts
and words, single and in pairs, with every truncation strategy and with overflowing windows.

Needs: pip install tokenizers. The results are committed; run it again only to follow a new tokenizers. The tokenizers are
those of make_golden_tokenizer.py.
"""
import json
import os

import make_golden_tokenizer as golden

SHORT, LONG = "hello the Map", "the world is not a g\u00f6od film, hello [MASK] new york\u2026 \u4e2d\u56fd re-read"
WORDS = ["Hello", "unhappily", "", "\u4e2d\u56fd", "caf\u00e9!", " ", "New York", "[MASK]x", "don't", "\u0301"]
STRATEGIES = ("longest_first", "only_first", "only_second", "do_not_truncate")


def columns(encoding):
    return {
        "ids": encoding.ids,
        "types": encoding.type_ids,
        "offsets": [n for offset in encoding.offsets for n in offset],
        "words": [-1 if w is None else w for w in encoding.word_ids],
        "sequences": [-1 if s is None else s for s in encoding.sequence_ids],
        "mask": encoding.special_tokens_mask,
    }


def case_of(name, tokenizer, first, second=None, special=True, max_length=None, strategy="longest_first", stride=0, side="right"):
    case = {"tokenizer": name, "first": first}
    if second is not None:
        case["second"] = second
    if not special:
        case["special"] = False
    if max_length is not None:
        case.update(max_length=max_length, strategy=strategy, stride=stride, side=side)
    tokenizer.no_truncation()
    try:
        if max_length is not None and strategy != "do_not_truncate":
            tokenizer.enable_truncation(max_length, stride=stride, strategy=strategy, direction=side)
        split = isinstance(first, list)
        encoding = tokenizer.encode(first, second, is_pretokenized=split, add_special_tokens=special)
        case["windows"] = [columns(e) for e in [encoding, *encoding.overflowing]]
    except BaseException:  # a refusal, or Rust's assertion
        case["error"] = True
    tokenizer.no_truncation()
    return case


def cases(name, tokenizer, short, long, words):
    for first in (short, long, words):
        yield case_of(name, tokenizer, first)
        yield case_of(name, tokenizer, first, first, special=False)
        for side in ("right", "left"):
            for length, stride in ((3, 0), (7, 0), (7, 4), (12, 9), (200, 5)):
                yield case_of(name, tokenizer, first, max_length=length, stride=stride, side=side)
    yield case_of(name, tokenizer, long, max_length=4, special=False, stride=1)
    yield case_of(name, tokenizer, long, max_length=6, strategy="only_second")
    yield case_of(name, tokenizer, long, max_length=6, stride=6)
    for first, second in ((short, long), (long, short), (short, ""), (long, long), (words, words[:2])):
        if isinstance(first, list) != isinstance(second, list):
            second = [second]
        for strategy in STRATEGIES:
            for length, stride, side in ((9, 0, "right"), (12, 2, "right"), (14, 1, "left"), (24, 3, "right")):
                yield case_of(name, tokenizer, first, second, max_length=length, strategy=strategy, stride=stride, side=side)
    yield case_of(name, tokenizer, short, long, special=False, max_length=9, strategy="only_second", stride=1)


def main():
    with open(os.path.join(golden.GOLDEN, "encodings.jsonl"), "w") as out:
        for name, (tokenizer, _, _) in golden.own_tokenizers().items():
            for case in cases(name, tokenizer, SHORT, LONG, WORDS):
                out.write(json.dumps(case, separators=(",", ":")) + "\n")


if __name__ == "__main__":
    main()
