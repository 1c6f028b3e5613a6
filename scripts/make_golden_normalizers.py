#!/usr/bin/env python3
"""Writes tests/golden/tokenizer/normalizers.json and normalizer_code_points.txt with Hugging Face's tokenizers: what each
normalizer of a tokenizer.json makes of hard texts and of all code points, and ids and offsets of tokenizers that have it.

Needs scripts/golden-requirements.txt. The results are committed; run it again only to follow a new tokenizers.
"""
import json
import os
import zlib

import golden_families
import make_golden_tokenizer as golden
from tokenizers import PreTokenizedString, Regex, Tokenizer

FAMILY = os.path.join(golden.GOLDEN, "unigram", "tokenizer.json")
WORDPIECE = os.path.join(golden.GOLDEN, "added.json")


def of(kind, **settings):
    return {"type": kind, **settings}


def replace(content, **pattern):
    return of("Replace", pattern=pattern, content=content)


def sequence(*steps):
    return of("Sequence", normalizers=list(steps))


def sections():
    with open(FAMILY, encoding="utf-8") as file:
        precompiled = json.load(file)["normalizer"]
    strip_right = of("Strip", strip_left=False, strip_right=True)
    made = {name: of(name) for name in ("NFC", "NFD", "NFKC", "NFKD", "Lowercase", "StripAccents")}
    made["Strip"] = of("Strip", strip_left=True, strip_right=True)
    made["strip_left"] = of("Strip", strip_left=True, strip_right=False)
    made["strip_right"] = strip_right
    made["Prepend"] = of("Prepend", prepend="\u2581x")
    made["replace_text"] = replace("->", String="e")
    made["replace_spaces"] = replace(" ", Regex=" {2,}")
    made["replace_classes"] = replace("#", Regex="[[:digit:]]+|[A-Z]|\u0301")
    made["remove"] = replace("", String="a")
    made["empty"] = sequence()
    made["albert"] = sequence(replace('"', String="``"), replace('"', String="''"), of("NFKD"), of("StripAccents"), of("Lowercase"),
                              precompiled, replace(" ", Regex=" {2,}"))
    made["t5"] = sequence(precompiled, strip_right, replace("\u2581", Regex=" {2,}"))
    made["llama"] = sequence(of("Prepend", prepend="\u2581"), replace("\u2581", String=" "))
    made["accents"] = sequence(of("NFD"), of("Lowercase"), of("StripAccents"), of("NFC"), sequence(of("Strip", strip_left=True, strip_right=True)))
    made["composed_again"] = sequence(of("NFKD"), of("NFC"), of("Prepend", prepend="> "), of("NFKC"))
    return made


def tokenizer_with(path, section):
    with open(path, encoding="utf-8") as file:
        content = json.load(file)
    content["normalizer"] = section
    return Tokenizer.from_str(json.dumps(content))


def normal_form(normalizer, text):
    """One line: the normal form in hexadecimal and, for each of its characters, the original one's index."""
    pieces = PreTokenizedString(text)
    pieces.normalize(normalizer.normalize)
    pieces.split(lambda _, piece: piece.split(Regex("(?m:.)"), "isolated"))
    splits = pieces.get_splits(offset_referential="original", offset_type="char")
    form = "".join(piece for piece, _, _ in splits).encode().hex()
    return form + "\t" + " ".join(str(offsets[0]) for _, offsets, _ in splits) + "\n"


def code_point_text(value):
    if 0xD800 <= value < 0xE000:
        return ""
    c = chr(value)
    return "a" + c + " " if value >= 0x33000 else c + "\u0301 a\u0315" + c + "\u0323 e\u0301" + c + "\u1112\u1161" + c + " " + c + "A"


CODE_POINT_COLUMNS = ("NFC", "NFD", "NFKC", "NFKD", "StripAccents", "Lowercase", "Strip", "accents")


def code_point_rows(made):
    columns = [tokenizer_with(FAMILY, made[name]).normalizer for name in CODE_POINT_COLUMNS]
    for block in range(0, 0x110000, 1024):
        texts = ["".join(map(code_point_text, range(start, start + 16))) for start in range(block, block + 1024, 16)]
        sums = [0] * len(columns)
        for i, normalizer in enumerate(columns):
            for text in texts:
                sums[i] = golden.add_line(sums[i], normal_form(normalizer, text) if text else "\n")
        yield "%x" % block, sums


def main():
    made = sections()
    spaced = ["  two  spaces ", "\u00a0\u2003x\u3000", " \t\n ", "``quoted'' text", "a1b22 C3", "\u1112\u1161\u11ab\u11ab \uac00\u11a8",
              "\u0344\u0301 \u1e9b\u0323 \u03d3\u0301 \u30ad\u3099 \u3349\u3099", "\ufdfa\u0323", "\u00c5\u0323 A\u030a\u0323 \u212b"]
    texts = golden.HARD_TEXTS + golden_families.TEXTS + spaced
    cases = []
    for name, section in made.items():
        family, wordpiece = tokenizer_with(FAMILY, section), tokenizer_with(WORDPIECE, section)
        for text in texts:
            lines = [normal_form(family.normalizer, text) if text else "\t\n", *(golden.line_of(t.encode(text)) for t in (family, wordpiece))]
            cases.append({"normalizer": name, "text": text, "sums": ["%08x" % zlib.crc32(line.encode()) for line in lines]})
    with open(os.path.join(golden.GOLDEN, "normalizers.json"), "w") as out:
        rows = ",\n".join(json.dumps(case, separators=(",", ":")) for case in cases)
        out.write('{"normalizers":%s,\n"cases":[\n%s\n]}\n' % (json.dumps(made), rows))
    golden.write_sums(os.path.join(golden.GOLDEN, "normalizer_code_points.txt"), code_point_rows(made))


if __name__ == "__main__":
    main()
