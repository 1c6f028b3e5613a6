"""Trains the BiLSTM-CRF of recipes/tagger.yaml with Flair, in one process on one core.

Needs Flair 0.15 and a transformers before 5. Flair's SequenceTagger (hidden size 256, random vectors of 100 dimensions of the training
file's words, CharacterEmbeddings, BIOES, word dropout 0.05, locked dropout 0.5).

Without --dev: some steps of SGD with batches of 32 sentences in the order of the file; prints words/s. With --dev and --test: whole runs
of Flair's ModelTrainer (SGD, rate 0.1 for the loss summed over a batch, gradients clipped to 5, plateau annealing, the best model on dev),
one for each seed; prints the span F1 of each on both files.
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
from flair.trainers import ModelTrainer


def read_corpus(folder, files):
    """Column files whose first column is the word and whose last one is the tag."""
    for name, file in files.items():
        lines = pathlib.Path(file).read_text(encoding="utf-8").splitlines()
        kept = (line.split() for line in lines if not line.startswith("-DOCSTART-"))
        text = "\n".join(" ".join(columns[:1] + columns[-1:]) if columns else "" for columns in kept) + "\n"
        pathlib.Path(folder, f"{name}.txt").write_text(text, encoding="utf-8")
    return ColumnCorpus(folder, {0: "text", 1: "ner"}, train_file="train.txt", dev_file="dev.txt", test_file="test.txt",
                        column_delimiter=" ")


def make_tagger(corpus):
    labels = corpus.make_label_dictionary("ner", add_unk=False)
    characters = Dictionary(add_unk=True)
    for sentence in corpus.train:
        for token in sentence:
            for c in token.text:
                characters.add_item(c)
    vectors = [OneHotEmbeddings.from_corpus(corpus, min_freq=1, embedding_length=100), CharacterEmbeddings(characters, 25, 25)]
    return SequenceTagger(StackedEmbeddings(vectors), labels, "ner", hidden_size=256, use_crf=True, tag_format="BIOES")


def words_per_second(corpus, batches):
    tagger = make_tagger(corpus)
    sentences = list(corpus.train)[:32 * (batches + 1)]
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
    return words / (time.time() - start)


def scores_of_run(corpus, seed, options, folder):
    flair.set_seed(seed)
    tagger = make_tagger(corpus)
    ModelTrainer(tagger, corpus).train(folder, learning_rate=0.1, mini_batch_size=options.batch_size, max_epochs=options.epochs,
                                       anneal_factor=0.5, patience=3, min_learning_rate=0.0001, save_final_model=False,
                                       embeddings_storage_mode="none")  # others keep the vectors of dev from before training
    # train() has left the best model's weights in `tagger`; SequenceTagger.load gives it another dictionary
    # of characters.
    results = {name: tagger.evaluate(part, "ner") for name, part in (("dev", corpus.dev), ("test", corpus.test))}
    epochs = len(pathlib.Path(folder, "loss.tsv").read_text().splitlines()) - 1
    return {"seed": seed, "epochs": epochs} | {
        f"{name}_f1": round(result.main_score, 4) for name, result in results.items()} | {
        "test_gold": int(results["test"].classification_report["micro avg"]["support"])}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--train", required=True, help="a CoNLL file: word first, tag last")
    parser.add_argument("--batches", type=int, default=20, help="words/s: how many are measured, after one that is not")
    parser.add_argument("--dev", help="a CoNLL file, by which the best model and the rate are chosen")
    parser.add_argument("--test", help="a CoNLL file")
    parser.add_argument("--epochs", type=int, default=12)
    parser.add_argument("--batch-size", type=int, default=16)
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3])
    options = parser.parse_args()
    flair.device = torch.device("cpu")
    torch.set_num_threads(1)
    flair.set_seed(1)
    with tempfile.TemporaryDirectory() as temporary:
        files = {"train": options.train, "dev": options.dev or options.train, "test": options.test or options.train}
        corpus = read_corpus(temporary, files)
        if not options.dev:
            print(json.dumps({"words_per_second": round(words_per_second(corpus, options.batches), 1)}))
            return
        for seed in options.seeds:
            print(json.dumps(scores_of_run(corpus, seed, options, f"{temporary}/run-{seed}")), flush=True)


if __name__ == "__main__":
    main()
