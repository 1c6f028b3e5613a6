"""Small tokenizers of the families beside BERT's, trained by Hugging Face's tokenizers on the texts of the golden scripts."""
import functools
import json
import unicodedata

import make_golden_tokenizer as golden
import sentencepiece_model
from tokenizers import AddedToken, Tokenizer, decoders, normalizers, pre_tokenizers, processors, trainers
from tokenizers.models import BPE, Unigram, WordLevel

SENTENCES = [
    "Where is the film that we've seen in Istanbul?", "It's not a good movie, but they'll like it; I'd say 1998 was better.",
    "The naive caf\u00e9 owner re-read his 12 letters.", "Stra\u00dfe, \u4e2d\u56fd and \u65e5\u672c are words \u2013 in other languages.",
    "hello hello world, the map of the world was on the wall", "unhappily she's there  with   many    spaces",
    "Emoji \U0001f600\U0001f600 and \u2764\ufe0f are tokens too", "\u041f\u0440\u0438\u0432\u0435\u0442, \u043c\u0438\u0440!  \u0645\u0631\u062d\u0628\u0627",
] * 3
# Spaces, contractions, digits of several scripts, white space that is no space, special tokens, long words.
TEXTS = [
    "  a  b ", "   ", " ", "\t\t x", "a\u00a0\u00a0b \u3000 c", "it's we've I'LL i'll don't 're'", "'s", "' s", "x'tt", "12 3a4 \u0661\u0662\u00b2",
    "<|end|> x<|end|>y", "<s>a</s><mask> b  <mask>", "a <mask>", "\U0001f468\u200d\U0001f469\u200d\U0001f467", " \U0001f600", "\u05d0\u05d1 \u0627\u0628", "\u2028 a",
    "a \u2029b", "\u000b\u000c x", "\u1680\u180e x", "a\r\r b", "a\r\n\n b", "\u0000 a\u0000", "a" * 300, "\u4e2d" * 70, " " * 90 + "a", " " * 90, "ab" * 150,
    "\uff28\uff45\uff4c\uff4c\uff4f \ufb01lm \u2460\u00bd \u212b \u01c4", "e\u0301 e\u0301\u0323 \ufb01\u0301 o\u0308\u0308", "\u0001\u0002abc\u0003 d\u0004", "\u0001abc", "x\u0085\u00ady\u200bz\ufeff",
    "\u2581a \u2581\u2581b\u2581", "\u1100\u1161\u11a8 \uac00\u11a8", "g\u1ad9 g\u0897", "unk: \U0001f9ff\U0001f9ff \ua4d0 \u4e2d\ua4d0x",
]


def charsmap():
    """Compatibility forms of a part of Unicode, combining pairs, white space to ' ', control characters to nothing."""
    mapping = {chr(c): "" for c in (*range(1, 9), 0xE, 0x7F, 0xAD, 0x200B, 0xFEFF)}
    mapping.update({chr(c): " " for c in (9, 10, 11, 12, 13, 0x85, 0xA0, 0x2003, 0x2028, 0x3000)})
    for block in ((0xA1, 0x180), (0x1C4, 0x1CD), (0x2070, 0x2090), (0x2120, 0x2130), (0x2460, 0x2474), (0xFB00, 0xFB07), (0xFF01, 0xFF5F)):
        for c in map(chr, range(*block)):
            if unicodedata.normalize("NFKC", c) != c:
                mapping[c] = unicodedata.normalize("NFKC", c)
    for letter in "aeiouAEIOUng":
        for mark in "\u0300\u0301\u0302\u0303\u0308\u0323":
            pair = letter + mark
            if len(unicodedata.normalize("NFC", pair)) == 1:
                mapping[pair] = unicodedata.normalize("NFC", pair)
    return sentencepiece_model.build_charsmap(mapping)


def byte_level(size, special, add_prefix_space):
    tokenizer = Tokenizer(BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=add_prefix_space)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(vocab_size=size, initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), special_tokens=special,
                                  show_progress=False)
    tokenizer.train_from_iterator(SENTENCES + golden.HARD_TEXTS, trainer)
    return tokenizer


def gpt2():
    """With a prefix space and trimmed offsets, as BART's older files have it; a token that is searched in normalised text."""
    tokenizer = byte_level(420, ["<|end|>"], True)
    tokenizer.add_tokens([AddedToken("<mask>", lstrip=True, special=True), AddedToken("hello world", normalized=True)])
    tokenizer.post_processor = processors.ByteLevel(trim_offsets=True, add_prefix_space=True)
    return tokenizer


def roberta():
    """What transformers makes of a vocab.json and a merges.txt."""
    special = ["<s>", "<pad>", "</s>", "<unk>", "<mask>"]
    tokenizer = byte_level(450, special, False)
    tokenizer.post_processor = processors.RobertaProcessing(("</s>", 2), ("<s>", 0), trim_offsets=True, add_prefix_space=False)
    return tokenizer


def unigram_pieces():
    tokenizer = Tokenizer(Unigram())
    tokenizer.normalizer = normalizers.NFKC()
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    tokenizer.train_from_iterator(
        SENTENCES * 3, trainers.UnigramTrainer(vocab_size=220, special_tokens=["<unk>"], unk_token="<unk>", show_progress=False))
    return json.loads(tokenizer.to_str())["model"]["vocab"]


def unigram_tokenizer(pieces, unk_id, charsmap_, split_white_space, **metaspace):
    tokenizer = Tokenizer(Unigram([(text, score) for text, score in pieces], unk_id=unk_id))
    tokenizer.normalizer = normalizers.Precompiled(charsmap_)
    spaces = pre_tokenizers.Metaspace(**metaspace)
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.WhitespaceSplit(), spaces]) if split_white_space else spaces
    tokenizer.decoder = decoders.Metaspace(**metaspace)
    return tokenizer


def unigram(pieces):
    """T5's template; the prefix only where the text begins; a token of its own."""
    tokenizer = unigram_tokenizer([*pieces, ("</s>", 0.0)], 0, charsmap(), False, prepend_scheme="first")
    tokenizer.add_special_tokens(["</s>"])
    tokenizer.add_tokens([AddedToken("<mask>", normalized=False), AddedToken("film", normalized=True)])
    tokenizer.post_processor = processors.TemplateProcessing(
        single="$A </s>", pair="$A </s> $B:1 </s>:1", special_tokens=[("</s>", len(pieces))])
    return tokenizer


def xlm_roberta(pieces):
    """(tokenizer, model file): what transformers makes of a sentencepiece.bpe.model."""
    pieces = [tuple(piece) for piece in pieces if piece[0] != "<unk>"]
    file = sentencepiece_model.write_model(
        [("<unk>", 0, 2), ("<s>", 0, 3), ("</s>", 0, 3), *((text, score, 1) for text, score in pieces)], charsmap())
    # The scores in the file are 32-bit numbers.
    pieces = [(text, score) for text, score, _ in sentencepiece_model.read_model(file)["pieces"][3:]]
    special = [("<s>", 0.0), ("<pad>", 0.0), ("</s>", 0.0), ("<unk>", 0.0)]
    tokenizer = unigram_tokenizer([*special, *pieces, ("<mask>", 0.0)], 3, charsmap(), True)
    tokenizer.add_special_tokens(["<s>", "<pad>", "</s>", "<unk>", "<mask>"])
    tokenizer.post_processor = processors.TemplateProcessing(
        single="<s> $A </s>", pair="<s> $A </s> </s> $B </s>", special_tokens=[("<s>", 0), ("</s>", 2)])
    return tokenizer, file


def word_level():
    """The tokenizer of a sequence tagger: white space separates words, in lower case."""
    words = sorted({word.lower() for sentence in SENTENCES for word in sentence.split()})
    tokenizer = Tokenizer(WordLevel({word: i for i, word in enumerate(["<unk>", *words])}, unk_token="<unk>"))
    tokenizer.normalizer = normalizers.Lowercase()
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    return tokenizer


@functools.lru_cache
def families():
    """By name: (tokenizer, {file: bytes}). Trained once per process: the trainers' results vary."""
    made = {}
    tokenizer = gpt2()
    made["gpt2"] = (tokenizer, {"tokenizer.json": tokenizer.to_str().encode()})
    tokenizer = roberta()
    model = json.loads(tokenizer.to_str())["model"]
    merges = "#version: 0.2\n" + "".join(" ".join(rule) + "\n" for rule in model["merges"])
    made["roberta"] = (tokenizer, {"vocab.json": json.dumps(model["vocab"]).encode(), "merges.txt": merges.encode()})
    pieces = unigram_pieces()
    tokenizer = unigram(pieces)
    made["unigram"] = (tokenizer, {"tokenizer.json": tokenizer.to_str().encode()})
    tokenizer, file = xlm_roberta(pieces)
    made["xlm_roberta"] = (tokenizer, {"sentencepiece.bpe.model": file})
    tokenizer = word_level()
    made["word_level"] = (tokenizer, {"tokenizer.json": tokenizer.to_str().encode()})
    return made
