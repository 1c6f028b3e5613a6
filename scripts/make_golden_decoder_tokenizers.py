#!/usr/bin/env python3
"""Writes the expected encodings of decoders' tokenizers for the tests of stretto/text, with Hugging Face's tokenizers.

  golden         tests/golden/tokenizer/: small tokenizers (a folder each), decoder_encodings.jsonl, decoder_code_points.txt
  data FOLDER    tests/golden/tokenizer/decoder_data_sums.txt: a sum for each text file under FOLDER

Needs scripts/golden-requirements.txt. The results are committed; run it again only to follow a new tokenizers. Rows are those of make_golden_encodings.py.
"""
import argparse
import io
import json
import os
import zlib

import golden_families
import make_golden_encodings as encodings
import make_golden_tokenizer as golden
from tokenizers import AddedToken, Regex, Tokenizer, decoders, normalizers, pre_tokenizers, processors, trainers
from tokenizers.models import BPE

CL100K = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|%s| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+")
# Contractions in any case, ends of lines in white space, numbers, what leads a run of letters, tokens of
# bytes.
TEXTS = [
    "I'LL don'T we'Ve 'Re 'M 'D 'S x'\u017f '\u017fa 'le 'rE", "a\n\n  b \n\tc\r\n \r\n  d\n", "\n", " \n ", "  \n\n  ", "\t\tx\u00a0y \u3000z\u2028\n",
    "1 12 123 1234 12345 \u0661\u0662\u0663\u0664 \u00b2\u00b3\u00bd\u2160 1a 23b", "!!\n\n?? a!b !a\n!\r\n \n! .\n\n.", "\u00a0word !word \u2028word -word\n-word", "<0x41> <0xe4><0xE4> <s> </s> <unk>",
    "\u2581a \u2581 a\u2581", "ab\u0000c", "\U0001f600\U0001f600 \u4e2d\u56fd\u4eba", "x" * 200, " " * 40, "\n" * 40, "a b " * 60, "hello world hello world",
]


def train(normalizer, expression, size, special):
    tokenizer = Tokenizer(BPE())
    if normalizer:
        tokenizer.normalizer = normalizer
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([
        pre_tokenizers.Split(Regex(expression), "isolated"), pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.train_from_iterator(golden_families.SENTENCES + golden.HARD_TEXTS + TEXTS, trainers.BpeTrainer(
        vocab_size=size, initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), special_tokens=special, show_progress=False))
    return tokenizer


def begins(tokenizer, token):
    return processors.TemplateProcessing(single=f"{token} $A", pair=f"{token} $A {token}:1 $B:1", special_tokens=[(token, tokenizer.token_to_id(token))])


def llama3():
    """Words that are tokens need no rules: some of the vocabulary's are made by none."""
    tokenizer = train(None, CL100K % r"\p{N}{1,3}", 480, ["<|begin_of_text|>", "<|end_of_text|>"])
    model = json.loads(tokenizer.to_str())["model"]
    tokenizer.model = BPE(model["vocab"], [tuple(rule) for rule in model["merges"][:-30]], ignore_merges=True)
    tokenizer.post_processor = processors.Sequence([processors.ByteLevel(trim_offsets=False), begins(tokenizer, "<|begin_of_text|>")])
    return tokenizer


def qwen2():
    tokenizer = train(normalizers.NFC(), CL100K % r"\p{N}", 460, [])
    tokenizer.add_special_tokens([AddedToken(token, normalized=False, special=True) for token in ("<|endoftext|>", "<|im_start|>")])
    tokenizer.post_processor = processors.ByteLevel(trim_offsets=False, add_prefix_space=False, use_regex=False)
    return tokenizer


def sentencepiece_file():
    import sentencepiece

    model = io.BytesIO()
    sentences = [text for text in golden_families.SENTENCES + golden.HARD_TEXTS + TEXTS if "\0" not in text]
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(sentences), model_writer=model, model_type="bpe", vocab_size=440, byte_fallback=True, num_threads=1,
        normalization_rule_name="identity", remove_extra_whitespaces=False, character_coverage=0.98, minloglevel=2)
    return model.getvalue()


def llama2_tokenizer(file):
    """Of the pieces and the rules that transformers reads in the file."""
    from transformers.convert_slow_tokenizer import import_protobuf
    from transformers.tokenization_utils_base import generate_merges

    proto = import_protobuf().ModelProto()
    proto.ParseFromString(file)
    vocabulary = {piece.piece: i for i, piece in enumerate(proto.pieces)}
    return Tokenizer(BPE(vocabulary, generate_merges(vocabulary), unk_token="<unk>", fuse_unk=True, byte_fallback=True))


def finish_llama2(tokenizer):
    tokenizer.decoder = decoders.Sequence([decoders.Replace("\u2581", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)])
    tokenizer.add_special_tokens([AddedToken(token, normalized=False, special=True) for token in ("<unk>", "<s>", "</s>")])
    tokenizer.post_processor = begins(tokenizer, "<s>")
    return tokenizer


def families():
    """By name: (tokenizer, {file: bytes})."""
    made = {}
    for name, make in (("llama3", llama3), ("qwen2", qwen2)):
        tokenizer = make()
        made[name] = (tokenizer, {"tokenizer.json": tokenizer.to_str().encode()})
    file = sentencepiece_file()
    # As the files of Llama 2 are, and as transformers makes it from tokenizer.model.
    legacy = llama2_tokenizer(file)
    legacy.normalizer = normalizers.Sequence([normalizers.Prepend("\u2581"), normalizers.Replace(" ", "\u2581")])
    finish_llama2(legacy)
    made["llama2"] = (legacy, {"tokenizer.json": legacy.to_str().encode()})
    current = llama2_tokenizer(file)
    current.pre_tokenizer = pre_tokenizers.Metaspace(replacement="\u2581", prepend_scheme="first", split=False)
    made["llama2_model"] = (finish_llama2(current), {"tokenizer.model": file})
    return made


def code_point_text(value):
    if 0xD800 <= value < 0xE000:
        return ""
    c = chr(value)
    return "a" + c + "b " if value >= 0x33000 else " a" + c + "b '" + c + "x 12" + c + "\n" + c + " \n" + c + "' " + c + "!" + c + c + "\n"


def code_point_rows(tokenizers):
    for block in range(0, 0x110000, 1024):
        texts = ["".join(map(code_point_text, range(start, start + 16))) for start in range(block, block + 1024, 16)]
        sums = [0] * len(tokenizers)
        for i, tokenizer in enumerate(tokenizers):
            for encoding in tokenizer.encode_batch(texts):
                sums[i] = golden.add_line(sums[i], golden.line_of(encoding))
        yield "%x" % block, sums


def write_golden():
    made = families()
    for name, (_, files) in made.items():
        os.makedirs(os.path.join(golden.GOLDEN, name), exist_ok=True)
        for file, content in files.items():
            with open(os.path.join(golden.GOLDEN, name, file), "wb") as out:
                out.write(content)
    golden_families.TEXTS += TEXTS
    with open(os.path.join(golden.GOLDEN, "decoder_encodings.jsonl"), "w") as out:
        for case in encodings.all_cases({name: tokenizer for name, (tokenizer, _) in made.items()}):
            lines = encodings.lines_of_case(case, made[case["tokenizer"]][0])
            case["sums"] = ["%08x" % zlib.crc32(line.encode()) for line in lines]
            out.write(json.dumps(case, separators=(",", ":")) + "\n")
    golden.write_sums(os.path.join(golden.GOLDEN, "decoder_code_points.txt"), code_point_rows([tokenizer for tokenizer, _ in made.values()]))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["golden", "data"])
    parser.add_argument("folder", nargs="?", help="the folder of the real data")
    arguments = parser.parse_args()
    if arguments.what == "golden":
        return write_golden()
    if arguments.folder is None:
        parser.error("data needs a folder")
    # Those that were written: a trainer's results vary.
    load = lambda name: Tokenizer.from_file(os.path.join(golden.GOLDEN, name, "tokenizer.json"))
    rows = golden.data_rows(arguments.folder, [load(name) for name in ("llama3", "qwen2", "llama2")])
    golden.write_sums(os.path.join(golden.GOLDEN, "decoder_data_sums.txt"), rows)


if __name__ == "__main__":
    main()
