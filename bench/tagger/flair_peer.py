"""Trains steps of a BiLSTM-CRF like recipes/tagger.yaml's with Flair, in one process: prints words/s.

Needs Flair 0.15 and a transformers before 5. Flair's SequenceTagger (hidden size 256, random vectors of 100 dimensions of the training
file's words, CharacterEmbeddings, BIOES, word dropout 0.05, locked dropout 0.5), batches of 32 sentences in the order of the file, SGD.
"""
import argparse
import json
import pathlib
import tempfile
import time

import flair
import torch
from flair.data import Dictionary
from flair.datasets import ColumnCorpus
from flair.embeddings import CharacterEmbeddings, OneHotEmbeddings, StackedEmbeddings
from flair.models import SequenceTagger

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--train", required=True, help="a CoNLL file: word first, tag last")
parser.add_argument("--batches", type=int, default=20, help="how many are measured, after one that is not")
arguments = parser.parse_args()

flair.device = torch.device("cpu")
torch.set_num_threads(1)
flair.set_seed(1)
with tempfile.TemporaryDirectory() as temporary:
    lines = pathlib.Path(arguments.train).read_text(encoding="utf-8").splitlines()
    text = "\n".join(" ".join(line.split()) for line in lines if not line.startswith("-DOCSTART-")) + "\n"
    for name in ("train", "dev", "test"):
        pathlib.Path(temporary, f"{name}.txt").write_text(text, encoding="utf-8")
    corpus = ColumnCorpus(temporary, {0: "text", 1: "ner"}, train_file="train.txt", dev_file="dev.txt", test_file="test.txt",
                          column_delimiter=" ")
    labels = corpus.make_label_dictionary("ner", add_unk=False)
    characters = Dictionary(add_unk=True)
    for sentence in corpus.train:
        for token in sentence:
            for c in token.text:
                characters.add_item(c)
    tagger = SequenceTagger(StackedEmbeddings([OneHotEmbeddings.from_corpus(corpus, min_freq=1, embedding_length=100),
                                               CharacterEmbeddings(characters, 25, 25)]),
                            labels, "ner", hidden_size=256, use_crf=True, tag_format="BIOES")
    sentences = list(corpus.train)[:32 * (arguments.batches + 1)]

tagger.train()
optimizer, words, start = torch.optim.SGD(tagger.parameters(), lr=0.1), 0, 0.0
for begin in range(0, len(sentences), 32):
    if begin == 32:
        start = time.time()
    batch = sentences[begin:begin + 32]
    loss, count = tagger.forward_loss(batch)
    optimizer.zero_grad()
    loss.backward()
    torch.nn.utils.clip_grad_norm_(tagger.parameters(), 5.0)
    optimizer.step()
    words += count if begin else 0
    for sentence in batch:
        sentence.clear_embeddings()
print(json.dumps({"words_per_second": round(words / (time.time() - start), 1)}))
