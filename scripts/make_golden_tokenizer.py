#!/usr/bin/env python3
"""Writes the expected results for the tests of stretto/text, with Hugging Face's tokenizers (any recent version).

  tables         stretto/text/unicode_tables.cpp: the character classes of tokenizers' Unicode crates
  golden         tests/golden/tokenizer/: a small vocabulary, hard cases, sums over all code points
  data FOLDER    tests/golden/tokenizer/data_sums.txt: a sum for each text file under FOLDER

Needs scripts/golden-requirements.txt. The results are committed; run it again only to follow a new tokenizers.
"""
import argparse
import json
import os
import zlib

from tokenizers import AddedToken, Tokenizer, normalizers, pre_tokenizers, processors
from tokenizers.models import WordPiece

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
GOLDEN = os.path.join(ROOT, "tests", "golden", "tokenizer")
SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]


def code_points():
    return (c for c in range(0x110000) if not 0xD800 <= c < 0xE000)


# ---- tables


def ranges_of(values):
    ranges = []
    for value in values:
        if ranges and ranges[-1][1] == value - 1:
            ranges[-1][1] = value
        else:
            ranges.append([value, value])
    return ranges


def classes():
    """Determines each class by how tokenizers processes a text that contains the character."""
    clean = normalizers.BertNormalizer(True, False, False, False)
    strip = normalizers.BertNormalizer(False, False, True, False)
    nfd = normalizers.NFD()
    marks = normalizers.StripAccents()
    split = pre_tokenizers.BertPreTokenizer()
    runs = pre_tokenizers.ByteLevel(add_prefix_space=False)
    found = {"control": [], "punctuation": [], "nonspacing_mark": [], "reordered": [], "letter": [], "number": [], "combining_mark": []}
    last, first = "\u0345", "\u0334"  # the highest combining class (240) and the lowest (1)
    for value in code_points():
        c = chr(value)
        if value not in (0, 0xFFFD) and clean.normalize_str("a" + c + "b") == "ab":
            found["control"].append(value)
        if len(split.pre_tokenize_str("a" + c + "b")) == 3:
            found["punctuation"].append(value)
        if len(runs.pre_tokenize_str("a" + c)) == 1:
            found["letter"].append(value)
        if len(runs.pre_tokenize_str("1" + c)) == 1:
            found["number"].append(value)
        if marks.normalize_str(c) == "":
            found["combining_mark"].append(value)
        if nfd.normalize_str(c) == c:
            if strip.normalize_str(c) == "":
                found["nonspacing_mark"].append(value)
            moves = lambda text: nfd.normalize_str(text) != text
            if moves("a" + last + c) or moves("a" + c + first):
                found["reordered"].append(value)
    # Cleaning keeps these three although they are control characters, and removes NUL separately.
    found["control"] = sorted(set(found["control"]) | {0, 9, 10, 13})
    return found


def write_tables():
    lines = [
        "// Written by scripts/make_golden_tokenizer.py tables; not edited by hand.",
        '#include "stretto/text/unicode_tables.h"',
        "",
        "namespace stretto::text {",
        "namespace {",
    ]
    for name, values in classes().items():
        items = ["{0x%X, 0x%X}" % tuple(r) for r in ranges_of(values)]
        lines += ["", "constexpr CodePointRange %s_table[] = {" % name]
        for i in range(0, len(items), 5):
            lines.append("    " + ", ".join(items[i : i + 5]) + ",")
        lines.append("};")
    lines += ["", "}  // namespace", ""]
    for name in ("control", "punctuation", "nonspacing_mark", "reordered", "letter", "number", "combining_mark"):
        lines.append("const std::span<const CodePointRange> %s_ranges = %s_table;" % (name, name))
    lines += ["", "}  // namespace stretto::text", ""]
    with open(os.path.join(ROOT, "stretto", "text", "unicode_tables.cpp"), "w") as out:
        out.write("\n".join(lines))


# ---- tokenizers


def bert_tokenizer(vocabulary, lowercase):
    """The tokenizer that transformers makes from a vocab.txt."""
    ids = {token: i for i, token in enumerate(vocabulary)}
    tokenizer = Tokenizer(WordPiece(ids, unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=lowercase)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS]:0 $A:0 [SEP]:0",
        pair="[CLS]:0 $A:0 [SEP]:0 $B:1 [SEP]:1",
        special_tokens=[("[CLS]", ids["[CLS]"]), ("[SEP]", ids["[SEP]"])],
    )
    tokenizer.add_special_tokens(SPECIAL)
    return tokenizer


def read_vocabulary(path):
    with open(path, encoding="utf-8", newline="\n") as lines:
        return [line.rstrip("\n") for line in lines]


def line_of(encoding):
    """One line for the sums: ids, then offsets."""
    ids = " ".join(map(str, encoding.ids))
    offsets = " ".join("%d:%d" % offset for offset in encoding.offsets)
    return ids + "\t" + offsets + "\n"


# ---- golden: tokenizers of our own


def small_vocabulary(lowercase):
    """A vocabulary that distinguishes characters: letters of several scripts, some syllables, marks, symbols."""
    words = "the a is in where world map not good bad film movie hello new york istanbul naive cafe strasse".split()
    pieces = "ing ed s er tion ly un re able ment al est ive hood".split()
    letters = [chr(c) for r in ((0x21, 0x7F), (0xA1, 0x180), (0x391, 0x3CA), (0x410, 0x460)) for c in range(*r)]
    letters += [chr(c) for c in range(0x1100, 0x1113)] + [chr(c) for c in range(0x1161, 0x1176)]
    letters += [chr(c) for c in range(0x300, 0x330)] + list("\u3042\u30a2\u4e2d\u56fd\u8c48\U00020000\U0001f600\u200d\u2019\ufb01")
    if lowercase:
        letters = [c for c in letters if c.lower() == c]
    else:
        words += [w.capitalize() for w in words]
    tokens = SPECIAL + ["[unused%d]" % i for i in range(4)]
    tokens += letters + words + pieces + ["##" + t for t in letters + pieces + words if len(t) < 6]
    return list(dict.fromkeys(tokens))


def added(content, **options):
    return AddedToken(content, **options)


def own_tokenizers():
    """By name: (tokenizer, file name, content of the file)."""
    made = {}
    for name, lowercase in (("cased", False), ("uncased", True)):
        vocabulary = small_vocabulary(lowercase)
        made[name] = (bert_tokenizer(vocabulary, lowercase), name + ".txt", "\n".join(vocabulary) + "\n")

    tokenizer = bert_tokenizer(small_vocabulary(True), True)
    tokenizer.add_tokens([
        added("<both>", lstrip=True, rstrip=True, normalized=False),
        added("<word>", single_word=True, normalized=False),
        added("<left>", lstrip=True, normalized=False),
        added("New York", normalized=True),
        added("new", normalized=True, single_word=True),
        added("caf\u00e9", normalized=True, rstrip=True),
        added("<bot", normalized=False),
        added(" end", normalized=False),
        added("\u4e2d\u56fd", normalized=True),
    ])
    tokenizer.add_special_tokens([added("<S>", special=True)])
    made["added"] = (tokenizer, "added.json", tokenizer.to_str())

    ids = {t.replace("##", "@@"): i for i, t in enumerate(small_vocabulary(False)[:700])}
    model = WordPiece(ids, unk_token="[UNK]", continuing_subword_prefix="@@", max_input_chars_per_word=12)
    tokenizer = Tokenizer(model)
    tokenizer.normalizer = normalizers.BertNormalizer(
        clean_text=False, handle_chinese_chars=False, strip_accents=True, lowercase=False)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.post_processor = processors.BertProcessing(("[SEP]", ids["[SEP]"]), ("[CLS]", ids["[CLS]"]))
    made["options"] = (tokenizer, "options.json", tokenizer.to_str())
    return made


# ---- golden: texts

HARD_TEXTS = [
    "", " ", "\t\r", "where is Himalayas in the world map?", "Hello, World!", "unhappily re-read: un-able",
    "na\u00efve caf\u00e9 Stra\u00dfe \u0130stanbul I\u0307stanbul \u0131", "nai\u0308ve cafe\u0301", "\u0301", "\u0301a", "a\u0301\u0323b a\u0323\u0301b",
    "\u1ec7 \u1e69 \u0344 \u212b \u2126 \uf900 \ufb01 \u01c4 \u01c5", "\u00e0\u0323x \u00e0\u0f71\u0323y", "\u1d15e \U0001d15e\u0323 \U0001d165\u0334",
    "\uac00\uac01\ud55c\uae00 \u1112\u1161\u11ab", "\u4e2d\u56fd\u4eba abc\u4e2ddef \u3042\u30a2 \U00020000x \U0002b820\U0002b920 \uf900z",
    "\U0001f600 \U0001f468\u200d\U0001f469\u200d\U0001f467 \U0001f1e9\U0001f1ea \u2764\ufe0f a\ufe0fb", "a\u0000b\u0001c\u007fd\u0085e\u00a0f\u00adg\ufeffh\u200bi\ufffdj",
    "a\u2028b\u2029c\u3000d\u1680e\u180ef\u000bg\u000ch", "x" * 99, "x" * 100, "x" * 101, "x" * 250, "the" * 40, "\u00e9" * 100, "\u00e9" * 101,
    "e\u0301" * 100, "e\u0301" * 101, "a" * 12 + " " + "a" * 13, "[CLS] [SEP][MASK]x[UNK] [PAD] [cls] [ MASK ] [unused1] [[MASK]]", "[MASK",
    "don't \u2018quote\u2019 \u201cquote\u201d \u2026 \u2013 \u2014 $5.00 100% a_b ^ ` ~ | < > = + \u20ac \u00a7 \u00b6 \u00b7 \u00bf",
    "a <both> b<both>  <both>c <word> x<word> <word>y <word>, <left>  <left>", "New York new york NEW YORK newer new, caf\u00e9  CAFE\u0301 x",
    "\u4e2d\u56fd \u4e2d\u56fd\u4e2d <bot <both <both> <both> end end <S><S> x", "\U0001f170<word> \u0301<word> \u203f<word> \u200d<word> \u2160<word> -<word>",
    "\u0661\u0662 \u0915\u094d\u0937 \u0e01\u0e33 \u05d0\u05b0 \u0627\u064e \u0b94 \u1b06", "\u0390 \u03b0 \u1fb7 \u03a3\u03a3 \u0391\u0399 \u1c89 \ua7cb \u10d50 \U00010d50 \U00016ea0 \u1e9e",
    "\u0897a \u1abf\u0301 \u1df6 \u08d4 \u11938 \U00011938 \U000105c9 \U00016121", "\U0010ffff\U000e0001\ue000 \ufdd0 \uffff",
]
HARD_BYTES = [
    b"\xff", b"a\xffb", b"\xc3", b"\xc3\xa9\xc3", b"\xe4\xb8", b"\xe4\xb8a", b"\xf0\x9f\x98", b"\xf0\x9f\x98\x80\x80", b"\xc0\x80 \xc1\xbf",
    b"\xed\xa0\x80x \xed\x9f\xbf", b"\xf4\x90\x80\x80", b"\xf4\x8f\xbf\xbf", b"\xe0\x80\x80\xe0\xa0\x80", b"\xf0\x80\x80\x80", b"the \x80\x80 map\xfe",
    b"\xf5\x80", b"\xe1\x80\xe2\xf0\x91\x92\xf1\xbf A",
]


def case_of(name, tokenizer, first, second=None, special=True, max_length=None):
    text = first.decode(errors="replace")
    pair = None if second is None else second.decode(errors="replace")
    if max_length is not None:
        tokenizer.enable_truncation(max_length)
    encoding = tokenizer.encode(text, pair, add_special_tokens=special)
    tokenizer.no_truncation()
    case = {"tokenizer": name, "first": first.hex()}
    if second is not None:
        case["second"] = second.hex()
    if not special:
        case["special"] = False
    if max_length is not None:
        case["max_length"] = max_length
    case["ids"] = encoding.ids
    case["type_ids"] = encoding.type_ids
    case["mask"] = encoding.special_tokens_mask
    case["offsets"] = [n for offset in encoding.offsets for n in offset]
    return case


def cases(tokenizers):
    texts = [text.encode() for text in HARD_TEXTS] + HARD_BYTES
    for name, (tokenizer, _, _) in tokenizers.items():
        for text in texts:
            yield case_of(name, tokenizer, text)
    short, long = b"hello the map", b"the world is not a good film, hello [MASK] new york"
    for name in ("uncased", "options"):
        tokenizer = tokenizers[name][0]
        for first, second in ((short, long), (long, short), (b"", long), (short, b""), (long, long), (short, short)):
            yield case_of(name, tokenizer, first, second)
            yield case_of(name, tokenizer, first, second, special=False)
            for length in (3, 4, 5, 8, 9, 12, 13, 16, 17, 40):
                yield case_of(name, tokenizer, first, second, max_length=length)
            for length in (1, 2, 7):
                yield case_of(name, tokenizer, first, second, special=False, max_length=length)
        for length in (2, 3, 5, 40):
            yield case_of(name, tokenizer, long, max_length=length)


class Random:
    """Knuth's MMIX generator: the C++ test draws the same numbers."""

    def __init__(self, seed):
        self.state = seed

    def below(self, limit):
        self.state = (self.state * 6364136223846793005 + 1442695040888963407) % 2**64
        return (self.state >> 33) % limit


FRAGMENTS = ["[MASK]", "<both>", "<word>", "<left>", "New York", "caf\u00e9", "\u4e2d\u56fd", " end", "the", " ", "\u0301", "\u0323"]


def random_text(random):
    text = ""
    for _ in range(random.below(24)):
        kind = random.below(8)
        if kind == 0:
            text += FRAGMENTS[random.below(len(FRAGMENTS))]
            continue
        low, high = [(0x61, 0x7B), (0x20, 0x7F), (0, 0x100), (0xC0, 0x250), (0x300, 0x370), (0, 0x3000), (0, 0x1E000)][kind - 1]
        text += chr(low + random.below(high - low))
    # One in four jumps to a random position; surrogates are not characters.
    if text and random.below(4) == 0:
        value = random.below(0x110000)
        text += chr(value - 0x800 if 0xD800 <= value < 0xE000 else value)
    return "".join(c for c in text if not "\ud800" <= c <= "\udfff")


def add_line(sum_, line):
    return zlib.crc32(line.encode(), sum_)


def write_sums(path, rows):
    with open(path, "w") as out:
        for name, sums in rows:
            out.write(name + "".join(" %08x" % s for s in sums) + "\n")


def code_point_text(value):
    """The character alone, between letters, between marks that are reordered, and next to a token that must be a single word."""
    if 0xD800 <= value < 0xE000:
        return ""
    c = chr(value)
    if value >= 0x30000:  # unassigned, tags, private use: less will do
        return "a" + c + "b "
    return c + " a" + c + "b a\u0315" + c + "\u0323 " + c + "<word> "


def code_point_rows(tokenizers):
    """One row for 1024 code points, 16 per text: normal form, ids and offsets."""
    columns = [tokenizers[name][0] for name in ("cased", "added", "options")]
    for block in range(0, 0x110000, 1024):
        texts = ["".join(map(code_point_text, range(start, start + 16))) for start in range(block, block + 1024, 16)]
        sums = [0] * len(columns)
        for i, tokenizer in enumerate(columns):
            for text, encoding in zip(texts, tokenizer.encode_batch(texts)):
                sums[i] = add_line(sums[i], tokenizer.normalizer.normalize_str(text) + "\n" + line_of(encoding))
        yield "%x" % block, sums


def random_rows(tokenizers):
    columns = [tokenizer for tokenizer, _, _ in tokenizers.values()]
    for row in range(20):
        random_, sums = Random(row), [0] * len(columns)
        for _ in range(500):
            text = random_text(random_)
            for i, tokenizer in enumerate(columns):
                sums[i] = add_line(sums[i], line_of(tokenizer.encode(text)))
        yield str(row), sums


def write_golden():
    tokenizers = own_tokenizers()
    for _, file, content in tokenizers.values():
        with open(os.path.join(GOLDEN, file), "w", encoding="utf-8", newline="\n") as out:
            out.write(content)
    with open(os.path.join(GOLDEN, "cases.jsonl"), "w") as out:
        for case in cases(tokenizers):
            out.write(json.dumps(case, separators=(",", ":")) + "\n")
    write_sums(os.path.join(GOLDEN, "random_sums.txt"), random_rows(tokenizers))
    write_sums(os.path.join(GOLDEN, "code_point_sums.txt"), code_point_rows(tokenizers))


# ---- real data

TEXT_ENDINGS = (".txt", ".tsv", ".json", ".conll", ".de", ".en")


def data_tokenizers(folder):
    vocabularies = os.path.join(folder, "tokenizers")
    return [
        bert_tokenizer(read_vocabulary(os.path.join(vocabularies, "bert-base-%s" % name, "vocab.txt")), lowercase)
        for name, lowercase in (("uncased", True), ("cased", False))
    ]


def data_rows(folder, columns):
    paths = [os.path.join(where, file) for where, _, files in os.walk(folder) for file in files]
    for path in sorted(p for p in paths if p.endswith(TEXT_ENDINGS)):
        with open(path, "rb") as file:
            content = file.read()
        lines = content.split(b"\n")
        if lines[-1] == b"":
            lines.pop()
        lines = [line.decode(errors="replace") for line in lines]
        sums = [0] * len(columns)
        for i, tokenizer in enumerate(columns):
            for start in range(0, len(lines), 1000):
                for encoding in tokenizer.encode_batch(lines[start : start + 1000]):
                    sums[i] = add_line(sums[i], line_of(encoding))
        yield os.path.relpath(path, folder), sums


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["tables", "golden", "data"])
    parser.add_argument("folder", nargs="?", help="folder of the real data")
    arguments = parser.parse_args()
    os.makedirs(GOLDEN, exist_ok=True)
    if arguments.what == "tables":
        write_tables()
    elif arguments.what == "golden":
        write_golden()
    elif arguments.folder is None:
        parser.error("data needs the folder of the real data")
    else:
        write_sums(os.path.join(GOLDEN, "data_sums.txt"), data_rows(arguments.folder, data_tokenizers(arguments.folder)))


if __name__ == "__main__":
    main()
