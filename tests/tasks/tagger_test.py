#!/usr/bin/env python3
"""A new sequence tagger, from CoNLL files and word vectors to predictions.

    tagger_test.py STRETTO
"""

import json
import math
import pathlib
import re
import shutil
import struct
import sys
import tempfile

from workspace import Stretto, check_ranks_and_resuming, losses_of, require, write_inputs

RECIPE = """
task: token-classification
model: {config: tagger.json}
token_classification: {tag_scheme: IOBES}
data: {train: data/train.conll, validation: data/dev.conll, test: data/test.conll, max_length: 48}
training: {epochs: 4, global_batch_size: 8, max_grad_norm: 5, device: cpu}
optimizer: {type: AdamW, lr: 1.0e-2}
checkpoint: {keep_last: 0}
track: {progress: "off", log_every: 1}
"""
TAGGER = {"word_dimensions": 24, "character_dimensions": 8, "character_hidden_size": 6, "hidden_size": 16}
STEPS = ["training.max_steps=6", "evaluate.every=never"]
DIMENSIONS = 5


def write_tagger(stretto, name, **settings):
    """Returns the setting that selects a tagger with these settings."""
    (stretto.folder / f"{name}.json").write_text(json.dumps({"model_type": "sequence-tagger", **settings}, indent=1))
    return f"model.config={name}.json"


def vectors_of(folder):
    words = sorted({line.split()[0] for line in (folder / "data/train.conll").read_text().splitlines() if line})
    return {word: [((i * 7 + k * 3) % 11 - 5) / 8 for k in range(DIMENSIONS)] for i, word in enumerate(words)}


def check_vectors(stretto):
    """The three formats of vector files give the same model; vectors are unchanged unless they are
    trained."""
    folder, vectors = stretto.folder, vectors_of(stretto.folder)
    lines = "".join(f"{word} {' '.join(map(str, values))}\n" for word, values in vectors.items())
    (folder / "glove.txt").write_text(lines)
    (folder / "word2vec.txt").write_text(f"{len(vectors)} {DIMENSIONS}\n{lines}")
    (folder / "word2vec.bin").write_bytes(f"{len(vectors)} {DIMENSIONS}\n".encode() + b"".join(
        word.encode() + b" " + struct.pack(f"<{DIMENSIONS}f", *values) for word, values in vectors.items()))
    models = []
    for name in ["glove.txt", "word2vec.txt", "word2vec.bin"]:
        tagger = write_tagger(stretto, f"by-{name}", word_vectors=name, hidden_size=8, character_dimensions=0)
        stretto.train("tagger.yaml", f"from-{name}", 1, *STEPS, tagger)
        models.append((folder / f"from-{name}/model/model.safetensors").read_bytes())
    require(models[0] == models[1] == models[2], "the forms of word vectors give different models")
    config = stretto.json("from-glove.txt/model/config.json")
    require(config["vocab_size"] == len(vectors) + 1 and not config["train_words"] and config["characters"] == "", f"{config}")
    header = json.loads(models[0][8:8 + struct.unpack("<Q", models[0][:8])[0]])
    begin, end = header["words.weight"]["data_offsets"]
    begin += 8 + struct.unpack("<Q", models[0][:8])[0]
    wanted = [0.0] * DIMENSIONS + [value for values in vectors.values() for value in values]
    found = struct.unpack(f"<{len(wanted)}f", models[0][begin:begin + 4 * len(wanted)])
    require(list(found) == wanted, "frozen word vectors have changed")
    tokenizer = stretto.json("from-glove.txt/model/tokenizer.json")
    require(tokenizer["normalizer"] == {"type": "Lowercase"}, "vectors without capitals are looked up in lower case")


def check_predictions(stretto, run):
    results = stretto.json(f"{run}/test_results.json")
    require(results["overall_f1"] > 0.6, f"the model has not learned: {results}")
    # `stretto test` reads the folder that `stretto train` wrote, and gives the predictions of `stretto
    # predict`.
    first = json.loads((stretto.folder / run / "predictions.jsonl").read_text().splitlines()[0])
    text, whole = "anna berger works for acme in san marino .", " ".join(first["tokens"])
    texts = ["predict", "--model", f"{run}/model", "--text", text, "--text", "", "--text", whole]
    record, empty, again = [json.loads(line) for line in stretto.run(*texts).splitlines()]
    found = [(entity["entity_group"], text[entity["start"]:entity["end"]]) for entity in record["entities"]]
    require(("LOC", "san marino") in found and ("PER", "anna berger") in found, f"{record}")
    require(empty["entities"] == [], "an empty text")
    spans = [" ".join(first["tokens"][span["begin"]:span["end"]]) for span in first["spans"]]
    require([whole[e["start"]:e["end"]] for e in again["entities"]] == spans, f"{again} of {first}")
    for token in json.loads(stretto.run(*texts, "--output", "scores").splitlines()[0])["tokens"]:
        require(abs(sum(token["scores"].values()) - 1) < 1e-6, f"probabilities of {token}")


def check_variants(stretto, run):
    """Each part can be omitted; a trained folder can be trained further."""
    for name, settings in {
            "gru": {"rnn_type": "GRU", "rnn_layers": 2, "dropout": 0.2, "lowercase": True, "min_word_count": 2},
            "none": {"rnn_type": "none", "use_crf": False, "reproject_embeddings": False},
            "characters": {"word_dimensions": 0, "bidirectional": False}}.items():
        tagger = write_tagger(stretto, name, hidden_size=8, **settings)
        stretto.train("tagger.yaml", name, 2, *STEPS, tagger)
        stretto.run("test", "tagger.yaml", f"output={name}", tagger)
    stretto.train("tagger.yaml", "bf16", 1, *STEPS, "training.precision=bf16")
    stretto.train("tagger.yaml", "plateau", 1, "training.epochs=30", "optimizer={type: SGD, lr: 0.1}",
                  "scheduler={type: AnnealOnPlateau, monitor: loss, mode: max, patience: 0, min_learning_rate: 0.04}", "evaluate.every=1ep", "evaluate.by_class=true")
    log = (stretto.folder / "plateau/logger_logs/training_0.log").read_text()
    require("is below scheduler.min_learning_rate" in log, log)
    evaluations, rows = log.count(" | accuracy "), re.findall(r" LOC +[01]\.\d{4}", log)
    require(evaluations > 1 and len(rows) == evaluations == log.count("precision    recall        f1   support"), log)
    (stretto.folder / "further.yaml").write_text(f"""
task: token-classification
model: {{path: {run}/model}}
token_classification: {{tag_scheme: IOBES}}
data: {{train: data/train.conll, validation: data/dev.conll, max_length: 48}}
training: {{max_steps: 2, global_batch_size: 8}}
output: further
""")
    stretto.run("train", "further.yaml")
    require(stretto.json("further/dev_results.json")["f1"] > 0.6, "a trained folder is not where training starts")


SECTION = "model={config: null, type: sequence-tagger}"


def check_section(stretto):
    """The settings in the recipe equal those of a file."""
    settings = ", ".join(f"{key}: {value}" for key, value in TAGGER.items())
    stretto.train("tagger.yaml", "by-section", 1, *STEPS, SECTION, f"sequence_tagger={{{settings}}}")
    stretto.train("tagger.yaml", "by-file", 1, *STEPS)
    for name in ["config.json", "tokenizer.json", "model.safetensors"]:
        require((stretto.folder / "by-section/model" / name).read_bytes() == (stretto.folder / "by-file/model" / name).read_bytes(),
                f"{name}: a section and a file with the same settings differ")
    log = (stretto.folder / "by-section/logger_logs/training_0.log").read_text()
    require("random weights" in log and "model.config" not in log, log)


def check_losses(stretto):
    """Equal weights for all tags change nothing, weights for some tags do; the mean over sentences is the
    mean over words, scaled."""
    # With the default seed the tags' losses are nearly equal before the first step, and so are all means.
    plain = [SECTION, "sequence_tagger={use_crf: false, hidden_size: 8}", *STEPS, "training.seed=1"]
    stretto.train("tagger.yaml", "plain", 1, *plain)
    labels = stretto.json("plain/model/config.json")["label2id"]
    weights = lambda of: "token_classification.loss_weights=[" + ", ".join(f"{tag}={of(tag)}" for tag in labels) + "]"
    stretto.train("tagger.yaml", "same", 2, *plain, weights(lambda tag: 3))
    stretto.train("tagger.yaml", "weighted", 1, *plain, weights(lambda tag: 1 if tag == "O" else 9))
    for a, b, c in list(zip(losses_of(stretto, "plain"), losses_of(stretto, "same"), losses_of(stretto, "weighted")))[:3]:
        require(math.isclose(a, b, rel_tol=1e-5), f"equal weights change the loss: {a} and {b}")
        require(abs(a - c) > 1e-3, f"weights do not change the loss: {a} and {c}")
    sgd = ["optimizer={type: SGD, weight_decay: 0}", "training.max_grad_norm=1e9", "training.max_steps=1", "evaluate.every=never"]
    stretto.train("tagger.yaml", "words", 1, *sgd, "optimizer.lr=0.5")
    stretto.train("tagger.yaml", "sentences", 2, *sgd, "optimizer.lr=0.05", "token_classification.loss_average=sentences")
    per_word, per_sentence = losses_of(stretto, "words")[0], losses_of(stretto, "sentences")[0]
    require(2 < per_sentence / per_word < 48, f"losses of words and of sentences: {per_word} and {per_sentence}")


def check_transformer(stretto):
    """Tests states of a transformer with words and characters, fine-tuned and frozen: ranks, resuming,
    testing and predicting."""
    stretto.train("encoder.yaml", "encoded", 1)  # its trained weights are the transformer's
    (stretto.folder / "transformer.yaml").write_text(RECIPE.replace("model: {config: tagger.json}", """model: {type: sequence-tagger}
sequence_tagger: {transformer: encoded/model, layers: "-1,-2", subtoken_pooling: mean, character_dimensions: 6, word_dimensions: 8,
  character_hidden_size: 4, hidden_size: 12}"""))
    run = check_ranks_and_resuming(stretto, "transformer.yaml", ["fsdp"], "transformer-")
    config = stretto.json(f"{run}/model/config.json")
    require("transformer_path" not in config and config["transformer"]["model_type"] == "bert", f"{config}")
    stretto.run("test", "transformer.yaml", "-N", 2, "--no-pin", f"output={run}")
    check_predictions(stretto, run)
    # The model folder is complete: the transformer's folder is not read again.
    (stretto.folder / "encoded/model").rename(stretto.folder / "encoded/moved")
    stretto.run("test", "transformer.yaml", f"output={run}", "sequence_tagger.transformer=encoded/moved")
    check_conversion(stretto, run)
    (stretto.folder / "encoded/moved").rename(stretto.folder / "encoded/model")
    stretto.train("transformer.yaml", "pooling", 2, *STEPS, "sequence_tagger.subtoken_pooling=first_last", "sequence_tagger.layers=all",
                  "sequence_tagger.layer_mean=false", "sequence_tagger.word_dimensions=0")
    stretto.train("transformer.yaml", "frozen", 1, *STEPS, "sequence_tagger.fine_tune=false", "sequence_tagger.use_crf=false",
                  "sequence_tagger.rnn_type=none")
    before, after = (tensors_of(stretto.folder / name / "model/model.safetensors") for name in ["encoded", "frozen"])
    encoder = [name for name in before if name.startswith("bert.")]
    require(encoder and all(before[name] == after["transformer." + name] for name in encoder), "a frozen transformer has changed")


def check_conversion(stretto, run):
    """A checkpoint becomes a complete model folder, which predicts without the transformer that training
    started from."""
    require(not (stretto.folder / "encoded/model").exists(), "the transformer is still there")
    stretto.run("convert", run, "converted")
    files = lambda folder: {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    model, converted = files(stretto.folder / run / "model"), files(stretto.folder / "converted")
    require(set(converted) == set(model) and "words/tokenizer.json" in model, f"{sorted(converted)} of {sorted(model)}")
    with tempfile.TemporaryDirectory() as elsewhere:
        shutil.copytree(stretto.folder / "converted", pathlib.Path(elsewhere) / "tagger")
        shutil.move(stretto.folder / "converted", stretto.folder / "gone")
        texts = "anna berger works for acme in san marino .\n\nvienna\n"
        found = stretto.run("predict", "--model", f"{elsewhere}/tagger", stdin=texts)
    # The last checkpoint is not the best model, so scores differ, but all its files match its weights.
    require([set(json.loads(line)) for line in found.splitlines()] == [{"text", "entities"}] * 3, found)
    stretto.run("convert", run, "of-best", "--like", f"{run}/model")
    require(set(files(stretto.folder / "of-best")) == set(model), "--like lacks files")
    (stretto.folder / run / "model").rename(stretto.folder / run / "moved")
    stretto.run("convert", run, "alone")
    require(set(files(stretto.folder / "alone")) == set(model), "the checkpoint alone lacks files")
    (stretto.folder / run / "moved").rename(stretto.folder / run / "model")


FROZEN = """model: {type: sequence-tagger}
sequence_tagger: {transformer: encoded/model, fine_tune: false, character_dimensions: 6, word_dimensions: 0, hidden_size: 12, word_dropout: 0.2}"""


def check_frozen(stretto):
    """Cached states of a frozen transformer change no bit of the result of a run with context that is resumed.
    tests/train/kept_states_test.cpp tests whole runs, other numbers of ranks, strategies and precisions."""
    (stretto.folder / "frozen.yaml").write_text(RECIPE.replace("model: {config: tagger.json}", FROZEN).replace(
        "tag_scheme: IOBES", "tag_scheme: IOBES, context_size: 5").replace("epochs: 4", "epochs: 2").replace(
            "max_length: 48", "max_length: 48, max_train_samples: 64"))
    stretto.train("frozen.yaml", "frozen-2-none", 2, "checkpoint.every=5", "token_classification.embeddings_storage_mode=none")
    first = min((stretto.folder / "frozen-2-none/checkpoints").iterdir(), key=lambda path: int(path.name.split("-")[1]))
    stretto.train("frozen.yaml", "frozen-2-cpu", 2, f"resume={first}", "token_classification.embeddings_storage_mode=cpu")
    log = (stretto.folder / "frozen-2-cpu/logger_logs/training_0.log").read_text()
    require("states     of the frozen transformer are kept, at most" in log, log)
    for file in ["model.safetensors", "config.json"]:
        require((stretto.folder / "frozen-2-cpu/model" / file).read_bytes() == (stretto.folder / "frozen-2-none/model" / file).read_bytes(),
                f"{file} of a resumed run with kept states differs")
    stretto.run("test", "frozen.yaml", "-N", 2, "--no-pin", "output=frozen-2-cpu")
    stretto.train("frozen.yaml", "without-context", 1, *STEPS, "token_classification.context_size=0")
    require(losses_of(stretto, "without-context")[:3] != losses_of(stretto, "frozen-2-none")[:3], "the context changes nothing")
    # A context that is always dropped is not trained with; half of it is the same on any number of ranks.
    context = "token_classification.context_dropout="
    stretto.train("frozen.yaml", "all-dropped", 1, *STEPS, context + "1")
    alike = lambda found, wanted, tolerance: all(math.isclose(*pair, rel_tol=tolerance) for pair in zip(found, wanted, strict=True))
    without = losses_of(stretto, "without-context")
    require(alike(losses_of(stretto, "all-dropped"), without, 1e-5), f"dropped context changes the losses {without}")
    halves = []
    for ranks in 1, 2:
        stretto.train("frozen.yaml", f"half-dropped-{ranks}", ranks, *STEPS, context + "0.5", "training.precision=fp64")
        halves.append(losses_of(stretto, f"half-dropped-{ranks}"))
    require(alike(*halves, 1e-9) and not alike(halves[0], without, 1e-3), f"losses of one and two ranks with context dropout: {halves}")
    # A trained folder records that its transformer is frozen.
    (stretto.folder / "further-frozen.yaml").write_text(RECIPE.replace("config: tagger.json", "path: frozen-2-cpu/model"))
    stretto.train("further-frozen.yaml", "further-frozen", 1, *STEPS, "token_classification.embeddings_storage_mode=cpu")
    # A model with a head on each token reads the context too.
    stretto.train("encoder.yaml", "encoder-context", 2, *STEPS, "token_classification.context_size=3",
                  "token_classification.respect_document_boundaries=false")


def check_separator(stretto):
    """A tagger with Flair's separator: training, test and prediction read it, and the model's folder has it."""
    separated = ["sequence_tagger.context_separator=true"]
    stretto.train("frozen.yaml", "separated", 2, "training.epochs=3", *separated)
    config, plain = (stretto.json(f"{run}/model/config.json") for run in ("separated", "frozen-2-cpu"))
    require(config["context_separator"] and not plain["context_separator"], "config.json records the separator")
    require(config["transformer"]["vocab_size"] == plain["transformer"]["vocab_size"] + 1, "the separator has a vector")
    tokens = (stretto.folder / "separated/model/vocab.txt").read_text().splitlines()
    require(tokens.index("[FLERT]") == plain["transformer"]["vocab_size"], f"the last token is {tokens[-1]}")
    require(losses_of(stretto, "separated")[:3] != losses_of(stretto, "frozen-2-none")[:3], "the separator changes nothing")
    # Without context, test and prediction read the same: the sentence between two separators.
    (stretto.folder / "further-separated.yaml").write_text(RECIPE.replace("config: tagger.json", "path: separated/model"))
    stretto.run("test", "further-separated.yaml", "output=separated")
    records = [json.loads(line) for line in (stretto.folder / "separated/predictions.jsonl").read_text().splitlines()]
    texts = [" ".join(record["tokens"]) for record in records[:12]]
    predict = ["predict", "--model", "separated/model"] + [word for text in texts for word in ("--text", text)]
    for record, line in zip(records, stretto.run(*predict).splitlines()):
        found = [entity["word"] for entity in json.loads(line)["entities"]]
        wanted = [" ".join(record["tokens"][span["begin"]:span["end"]]) for span in record["spans"]]
        require(found == wanted, f"predict found {found}, test {wanted} in {record['tokens']}")
    # A trained folder is trained further with its separator.
    stretto.train("further-separated.yaml", "further-separated", 1, *STEPS)
    require(stretto.json("further-separated/model/config.json")["context_separator"], "the separator is lost")


def tensors_of(file):
    content = file.read_bytes()
    size = struct.unpack("<Q", content[:8])[0]
    header = json.loads(content[8:8 + size])
    return {name: content[8 + size + entry["data_offsets"][0]:8 + size + entry["data_offsets"][1]] for name, entry in header.items()
            if name != "__metadata__"}


def check_flair_script(stretto):
    """run-flair-ner with flags that need a sequence-tagger; interrupted, the same command continues to the same result."""
    (stretto.folder / "columns").mkdir()
    for part in ["train", "dev", "test"]:
        (stretto.folder / f"columns/{part}.txt").write_text((stretto.folder / f"data/{part}.conll").read_text())
    flags = ["run-flair-ner", "--model_name_or_path", "encoded/model", "--dataset_name", "columns", "--num_epochs", 2, "--accelerator", "cpu",
             "--learning_rate", "1e-3", "--use_crf", "--layers", "-1,-2", "--subtoken_pooling", "mean", "--context_size", 4, "--devices", 1]
    stretto.run(*flags, "--output_dir", "flair")
    recipe = stretto.run(*flags, "--output_dir", "stopped", "--print-recipe")
    (stretto.folder / "stopped").mkdir()
    (stretto.folder / "stopped/recipe.yaml").write_text("".join(
        line for line in recipe.splitlines(keepends=True) if not line.startswith("#")))
    stretto.run("train", "stopped/recipe.yaml", "-N", 1, "training.steps_this_run=7", "checkpoint.every=5")
    require(not (stretto.folder / "stopped/test.tsv").exists(), "the run has finished")
    stretto.run(*flags, "--output_dir", "stopped")
    for name in ["run/model/model.safetensors", "test.tsv", "dev.tsv"]:
        require((stretto.folder / "stopped" / name).read_bytes() == (stretto.folder / "flair" / name).read_bytes(),
                f"{name} of a continued run differs")
    log = (stretto.folder / "stopped/run/logger_logs/training_0.log").read_text()
    require("resum" in log, f"the run has not been resumed:\n{log}")
    text = "anna berger works for acme in san marino ."
    require("entities" in json.loads(stretto.run("predict", "--model", "flair", "--text", text)), "a prediction of run-flair-ner's model")


def check_refusals(stretto):
    def refused(part, *settings):
        stretto.require_error(part, "train", "tagger.yaml", "output=x", *settings)

    def refused_tagger(part, **settings):
        refused(part, write_tagger(stretto, "wrong", **settings))

    refused("a model is either loaded from a folder or created from a config.json", "model.path=one/model")
    refused("tokenizer.path: a new sequence-tagger makes its own tokenizer", "tokenizer.path=encoder")
    refused("a sequence-tagger is for the task token-classification", "task=text-classification", "token_classification=null")
    refused("label_all_tokens: a sequence-tagger reads whole words", "token_classification.label_all_tokens=true")
    refused_tagger("words have neither vectors nor characters", word_dimensions=0, character_dimensions=0)
    refused_tagger("wrong.json:4:21: word_dimensions: the vocabulary and its vectors are those of", word_vectors="glove.txt", word_dimensions=3)
    refused_tagger("none.txt is not a file", word_vectors="none.txt")
    refused_tagger('did you mean "hidden_size"?', hiden_size=3)
    refused_tagger("hidden_size: 0 is out of range", hidden_size=0)
    refused_tagger("rnn_type", rnn_type="RNN")
    (stretto.folder / "cut.bin").write_bytes((stretto.folder / "word2vec.bin").read_bytes()[:-3])
    refused_tagger("the file ends", word_vectors="cut.bin")
    refused("is not one of", "data.validation=data/other.conll")
    refused("did you mean", SECTION, "sequence_tagger.use_crf=false", "token_classification.loss_weights=[B-PERS=2]")
    refused("is not TAG=WEIGHT", SECTION, "sequence_tagger.use_crf=false", "token_classification.loss_weights=[O]")
    refused("a conditional random field has a loss per sentence", "token_classification.loss_weights=[O=2]")
    refused("it has no effect without model.type", "sequence_tagger.hidden_size=8")
    refused("sequence-tagger is a new model with random weights", "model.type=sequence-tagger")
    refused("it has no effect without transformer", SECTION, "sequence_tagger.layers=-1")
    refused("there is no config.json in data", SECTION, "sequence_tagger.transformer=data")
    refused('"-9" is not a layer; the model has 2 layers', SECTION, "sequence_tagger={transformer: encoder, layers: -9}")
    refused("only a transformer reads neighbouring sentences", "token_classification.context_size=5")
    refused("sequence_tagger.context_separator: it has no effect without transformer", SECTION, "sequence_tagger.context_separator=true")
    refused("sequence_tagger.context_separator: sentences have no context from which they are separated", SECTION,
            "sequence_tagger={transformer: encoded/model, context_separator: true}")
    refused("sentences have no context to leave out", "token_classification.context_dropout=0.5")
    refused("context_size: -1 is out of range", "token_classification.context_size=-1")
    refused("only states of a frozen transformer are kept", "token_classification.embeddings_storage_mode=cpu")
    refused('"disk"', "token_classification.embeddings_storage_mode=disk")
    frozen = [SECTION, "sequence_tagger={transformer: encoded/model, fine_tune: false}"]
    kept = [f"token_classification.{setting}" for setting in ("embeddings_storage_mode=cpu", "context_size=5", "context_dropout=0.5")]
    refused("so they cannot be kept; set embeddings_storage_mode: none", *frozen, *kept)
    refused("embeddings_storage_mode: this run computes on the CPU; set cpu", *frozen, "token_classification.embeddings_storage_mode=gpu")
    refused("layers", SECTION, "sequence_tagger={transformer: encoder, layers: last}")
    refused('the states of "sequence-tagger" cannot be read', SECTION, "sequence_tagger.transformer=one/model")


def main(program):
    with tempfile.TemporaryDirectory(prefix="stretto-tagger-") as temporary:
        folder = pathlib.Path(temporary)
        write_inputs(folder)
        (folder / "tagger.yaml").write_text(RECIPE)
        (folder / "data/other.conll").write_text("vienna B-CITY\n")
        stretto = Stretto(program, folder)
        write_tagger(stretto, "tagger", **TAGGER)
        (folder / "encoder.yaml").write_text(RECIPE.replace("config: tagger.json", "config: encoder/config.json").replace(
            "task:", "tokenizer: {path: encoder}\ntask:"))
        run = check_ranks_and_resuming(stretto, "tagger.yaml", [])  # TrainingParity of the layer tasks: under all strategies
        stretto.run("test", "tagger.yaml", "-N", 2, "--no-pin", f"output={run}")
        check_predictions(stretto, run)
        check_vectors(stretto)
        check_variants(stretto, run)
        check_section(stretto)
        check_losses(stretto)
        check_transformer(stretto)
        check_frozen(stretto)
        check_separator(stretto)
        check_flair_script(stretto)
        check_refusals(stretto)


if __name__ == "__main__":
    main(sys.argv[1])
