#!/usr/bin/env python3
"""Writes tests/golden/sequence_tagger/{parity,transformer}/: a tiny sequence tagger by Flair, 20 steps of its training, and one with
transformer embeddings.

Needs torch, safetensors, and Flair with a transformers that it works with (the files in the repository: torch 2.13, flair 0.15.1):
    python3 scripts/make_golden_flair.py

config.json, model.safetensors     where training starts, with stretto's names of the weights
golden.safetensors:
    batch_<k>.{ids, cu_seqlens, labels, characters, character_cu_seqlens}     k = 0..19, 6 sentences each
    <prec>.loss [20] (mean over words, before the step), <prec>.grad_norm [20] (before clipping), lr [20], <prec>.final.<name>

transformer/encoder                a BERT with random weights and its vocabulary
transformer/tagger                 config.json, model.safetensors: a tagger on words, characters and the BERT, stretto's names
transformer/golden.safetensors:
    ids, cu_seqlens, words, token_words, word_ids, labels, characters, character_cu_seqlens     one batch, see data/word_rows.h
    loss (mean over words) and fp32.grad.<name> of each weight of the tagger
    vectors.<layers>.<mean or cat>.<pooling> [words, width]     of TransformerWordEmbeddings
transformer/context.conll          sentences of three documents
transformer/context.safetensors:
    document.<n>, all.<n> [words, width]    their vectors with a context of n words on each side, of their document or of all sentences
transformer/separator.safetensors           the same with use_context_separator; the vector of [FLERT] is the mean of all others

The tagger is Flair's SequenceTagger (BiLSTM-CRF, no dropout) on OneHotEmbeddings, which are trained vectors of words, and
CharacterEmbeddings; SGD, gradients clipped to norm 5. Flair's tags <START> and <STOP> are stretto's scores of first and last tags.

CharacterEmbeddings is given another way to read its LSTM's output. Flair's own takes the backward direction at a word's last character,
its first step, and gives a word that occurs twice in a sentence the vector of another word; stretto takes both directions' final states,
as Lample et al. 2016.
"""
import json
import pathlib

import flair
import torch
from flair.data import Dictionary, Sentence
from flair.embeddings import CharacterEmbeddings, OneHotEmbeddings, StackedEmbeddings, TransformerWordEmbeddings
from flair.models import SequenceTagger
from safetensors.torch import save_file
from transformers import BertConfig, BertModel, BertTokenizerFast

ROOT = pathlib.Path(__file__).resolve().parent.parent / "tests/golden/sequence_tagger/parity"
STEPS, SENTENCES, RATE = 20, 6, 0.5
CHARACTERS = "abcdefgh"
TYPES = ["LOC", "PER"]
VECTORS = [("-1", True, "first"), ("-1", True, "last"), ("-1", True, "first_last"), ("-1", True, "mean"), ("-1,-2", True, "mean"),
           ("0,-1", False, "first"), ("all", True, "first"), ("all", False, "first_last"), ("1", True, "last")]
CONTEXTS = [1, 2, 4]
SIZES = dict(word_dimensions=6, character_dimensions=4, character_hidden_size=5, hidden_size=8)


class FinalStates(CharacterEmbeddings):
    def _add_embeddings_internal(self, sentences):
        for sentence in sentences:
            for token in sentence:
                ids = torch.tensor([self.char_dictionary.get_idx_for_item(c) for c in token.text])
                _, (states, _) = self.char_rnn(self.char_embedding(ids).unsqueeze(1))
                token.set_embedding(self.name, torch.cat([states[0, 0], states[1, 0]]))


def dictionary(items):
    made = Dictionary(add_unk=True)  # id 0
    for item in items:
        made.add_item(item)
    return made


def make_tagger(words, *more):
    types = Dictionary(add_unk=False)
    for name in TYPES:
        types.add_item(name)
    types.span_labels = True
    stacked = StackedEmbeddings([OneHotEmbeddings(dictionary(words), embedding_length=SIZES["word_dimensions"]),
                                 FinalStates(dictionary(CHARACTERS), SIZES["character_dimensions"], SIZES["character_hidden_size"]),
                                 *more])
    return SequenceTagger(stacked, types, "ner", hidden_size=SIZES["hidden_size"], use_crf=True, tag_format="BIOES", dropout=0.0,
                          word_dropout=0.0, locked_dropout=0.0)


def random_batches(words, generator):
    draw = lambda low, high: int(torch.randint(low, high, (), generator=generator))
    for _ in range(STEPS):
        sentences = []
        for _ in range(SENTENCES):
            sentence = Sentence([words[draw(0, len(words))] if draw(0, 8) else "hhhx" for _ in range(draw(1, 9))])
            at = draw(0, 3)
            while at < len(sentence):
                end = min(at + draw(1, 4), len(sentence))
                sentence[at:end].add_label("ner", TYPES[draw(0, len(TYPES))])
                at = end + draw(0, 4)
            sentences.append(sentence)
        yield sentences


def tags_of(tagger):
    return [tag for tag in tagger.label_dictionary.get_items() if tag not in ("<START>", "<STOP>")]


def named_as_in_stretto(tagger, of=lambda weight: weight):
    """The weights, or `of` them, without those of <START> and <STOP>, which nothing trains."""
    kept = [tagger.label_dictionary.get_idx_for_item(tag) for tag in tags_of(tagger)]
    start, stop = (tagger.label_dictionary.get_idx_for_item(name) for name in ("<START>", "<STOP>"))
    words, characters = tagger.embeddings.embeddings[:2]
    transitions = of(tagger.crf.transitions)
    made = {"words.weight": of(words.embedding_layer.weight), "characters.weight": of(characters.char_embedding.weight),
            "reproject.weight": of(tagger.embedding2nn.weight), "reproject.bias": of(tagger.embedding2nn.bias),
            "linear.weight": of(tagger.linear.weight)[kept], "linear.bias": of(tagger.linear.bias)[kept],
            "crf.transitions": transitions[kept][:, kept].T, "crf.start": transitions[kept, start],
            "crf.end": transitions[stop, kept]}
    made |= {f"character_rnn.{name}": of(weight) for name, weight in characters.char_rnn.named_parameters()}
    made |= {f"rnn.{name}": of(weight) for name, weight in tagger.rnn.named_parameters()}
    for transformer in tagger.embeddings.embeddings[2:]:
        made |= {f"transformer.bert.{name}": of(weight) for name, weight in transformer.model.named_parameters()
                 if not name.startswith("pooler.")}
    return {name: weight.detach().clone().contiguous() for name, weight in made.items()}


def packed(tagger, sentences):
    words, characters = tagger.embeddings.embeddings[:2]
    tokens = [token.text for sentence in sentences for token in sentence]
    tags = tags_of(tagger)
    labels = [tags.index(tag) for sentence in sentences for tag in tagger._get_gold_labels([sentence])]
    return {"ids": torch.tensor([words.vocab_dictionary.get_idx_for_item(text) for text in tokens]),
            "cu_seqlens": torch.tensor([0, *map(len, sentences)]).cumsum(0), "labels": torch.tensor(labels),
            "characters": torch.tensor([characters.char_dictionary.get_idx_for_item(c) for text in tokens for c in text]),
            "character_cu_seqlens": torch.tensor([0, *map(len, tokens)]).cumsum(0)}


def train(tagger, batches):
    optimizer = torch.optim.SGD(tagger.parameters(), lr=RATE)
    losses, norms = [], []
    for sentences in batches:
        optimizer.zero_grad()
        for sentence in sentences:
            sentence.clear_embeddings()
        loss, count = tagger.forward_loss(sentences)
        loss = loss / count
        loss.backward()
        norms.append(torch.nn.utils.clip_grad_norm_(tagger.parameters(), 5.0))
        losses.append(loss.detach())
        optimizer.step()
    return torch.stack(losses), torch.stack(norms)


def config_of(words, tags, **more):
    return dict(model_type="sequence-tagger", architectures=["SequenceTaggerForTokenClassification"], vocab_size=1 + len(words),
                characters=CHARACTERS, rnn_type="LSTM", rnn_layers=1, bidirectional=True, reproject_embeddings=True, use_crf=True, **SIZES,
                id2label={str(i): tag for i, tag in enumerate(tags)}, label2id={tag: i for i, tag in enumerate(tags)}, **more)


def make_encoder(folder):
    """Words of the characters are split into pieces of one or two of them."""
    pieces = [*CHARACTERS, *(a + b for a in CHARACTERS[:4] for b in CHARACTERS[:4]), "x"]
    vocabulary = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *pieces, *("##" + piece for piece in pieces)]
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "vocab.txt").write_text("\n".join(vocabulary) + "\n")
    tokenizer = BertTokenizerFast(str(folder / "vocab.txt"))
    config = BertConfig(vocab_size=len(vocabulary), hidden_size=12, num_hidden_layers=3, num_attention_heads=2, intermediate_size=20,
                        max_position_embeddings=48, hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0, initializer_range=0.3)
    model = BertModel(config)
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return tokenizer


def pieces_of(tokenizer, sentences):
    """The batch as the tokens of the BERT."""
    ids, bounds, words, token_words, first = [], [0], [], [], []
    count = 0
    for sentence in sentences:
        encoded = tokenizer([token.text for token in sentence], is_split_into_words=True)
        before = None
        for k, word in zip(encoded["input_ids"], encoded.word_ids()):
            is_first = word is not None and word != before
            words.append(word if is_first else -1)
            token_words.append(-1 if word is None else count + word)
            first.append(is_first)
            before = word
            ids.append(k)
        count += len(sentence)
        bounds.append(len(ids))
    return {"ids": ids, "cu_seqlens": bounds, "words": words, "token_words": token_words}, torch.tensor(first)


def spread(values, first, otherwise):
    made = torch.full((len(first),), otherwise)
    made[first] = values
    return made


def make_transformer(words, sentences):
    folder = ROOT.parent / "transformer"
    tokenizer = make_encoder(folder / "encoder")
    embeddings = lambda layers, mean, pooling: TransformerWordEmbeddings(
        str(folder / "encoder"), layers=layers, layer_mean=mean, subtoken_pooling=pooling, fine_tune=True,
        use_context_separator=False)  # which would be a token of its own
    tagger = make_tagger(words, embeddings("-1,-2", True, "mean"))
    # Layers of TransformerWordEmbeddings are set to training mode with the tagger; the BERT has no dropout.
    tagger.train()
    loss, count = tagger.forward_loss(sentences)
    (loss / count).backward()
    pieces, first = pieces_of(tokenizer, sentences)
    batch = packed(tagger, sentences)
    golden = {name: torch.tensor(values) for name, values in pieces.items()}
    lengths = torch.zeros(len(first), dtype=torch.long)
    lengths[first] = batch["character_cu_seqlens"].diff()
    golden |= {"word_ids": spread(batch["ids"], first, 0), "labels": spread(batch["labels"], first, -100),
               "characters": batch["characters"], "character_cu_seqlens": torch.cat([torch.zeros(1, dtype=torch.long), lengths.cumsum(0)]),
               "loss": (loss / count).detach()}
    gradient = lambda weight: torch.zeros_like(weight) if weight.grad is None else weight.grad
    golden |= {f"fp32.grad.{name}": value for name, value in named_as_in_stretto(tagger, gradient).items()}
    for layers, mean, pooling in VECTORS:
        embedded = embeddings(layers, mean, pooling)
        embedded.eval()
        for sentence in sentences:
            sentence.clear_embeddings()
        embedded.embed(sentences)
        name = f"vectors.{layers}.{'mean' if mean else 'cat'}.{pooling}"
        golden[name] = torch.stack([token.embedding for sentence in sentences for token in sentence]).detach()
    save_file({name: tensor.contiguous() for name, tensor in golden.items()}, folder / "golden.safetensors")
    (folder / "tagger").mkdir(exist_ok=True)
    encoder = json.loads((folder / "encoder/config.json").read_text())
    config = config_of(words, tags_of(tagger), transformer=encoder, layers="-1,-2", layer_mean=True, subtoken_pooling="mean", fine_tune=True)
    (folder / "tagger/config.json").write_text(json.dumps(config, indent=2) + "\n")
    save_file(named_as_in_stretto(tagger), folder / "tagger/model.safetensors", {"format": "pt"})


def make_context(separator):
    """Vectors with a context, which Flair takes from the sentences before and behind. Without respect_document_boundaries it reads the
    marker of a document as a word too; here those sentences have none between them."""
    folder = ROOT.parent / "transformer"
    documents = [[[line.split()[0] for line in sentence.splitlines()] for sentence in document.strip().split("\n\n")]
                 for document in (folder / "context.conll").read_text().split("-DOCSTART- O\n\n")[1:]]
    golden = {}
    for name, bounded in (("document", True), ("all", False)):
        for size in CONTEXTS:
            embedded = TransformerWordEmbeddings(str(folder / "encoder"), layers="-1", subtoken_pooling="first", fine_tune=True,
                                                 use_context=size, respect_document_boundaries=bounded, use_context_separator=separator)
            embedded.eval()
            if separator:
                table = embedded.model.get_input_embeddings().weight.data
                table[-1] = table[:-1].mean(0)
            sentences = []
            for document in documents:
                marker = Sentence(["-DOCSTART-"])
                marker.is_document_boundary = True
                sentences += [marker] * bounded + [Sentence(sentence) for sentence in document]
            Sentence.set_context_for_sentences(sentences)
            embedded.embed(sentences)
            golden[f"{name}.{size}"] = torch.stack([token.embedding for sentence in sentences if not sentence.is_document_boundary
                                                    for token in sentence]).detach().contiguous()
    save_file(golden, folder / ("separator.safetensors" if separator else "context.safetensors"))


def write_documents(words):
    generator = torch.Generator().manual_seed(2)
    draw = lambda low, high: int(torch.randint(low, high, (), generator=generator))
    documents = [[[words[draw(0, len(words))] for _ in range(draw(1, 6))] for _ in range(count)] for count in (4, 1, 3)]
    (ROOT.parent / "transformer/context.conll").write_text("\n".join(
        "-DOCSTART- O\n\n" + "\n".join("".join(f"{word} O\n" for word in sentence) for sentence in document) for document in documents))


def main():
    flair.device = torch.device("cpu")
    torch.set_num_threads(1)
    flair.set_seed(1)
    generator = torch.Generator().manual_seed(1)
    words = sorted({"".join(CHARACTERS[i] for i in torch.randint(0, len(CHARACTERS), (1 + n % 6,), generator=generator)) for n in range(24)})
    tagger = make_tagger(words)
    start = tagger.state_dict()
    start = {name: value.clone() for name, value in start.items()}
    batches = list(random_batches(words, generator))
    tags = tags_of(tagger)
    ROOT.mkdir(parents=True, exist_ok=True)
    save_file(named_as_in_stretto(tagger), ROOT / "model.safetensors", {"format": "pt"})
    config = config_of(words, tags)
    (ROOT / "config.json").write_text(json.dumps(config, indent=2) + "\n")
    golden = {f"batch_{k}.{name}": tensor for k, batch in enumerate(batches) for name, tensor in packed(tagger, batch).items()}
    golden["lr"] = torch.full((STEPS,), RATE, dtype=torch.float64)
    for precision, dtype in (("fp64", torch.float64), ("fp32", torch.float32)):
        tagger.float()
        tagger.load_state_dict(start)
        tagger.to(dtype)
        golden[f"{precision}.loss"], golden[f"{precision}.grad_norm"] = train(tagger, batches)
        golden |= {f"{precision}.final.{name}": weight for name, weight in named_as_in_stretto(tagger).items()}
    save_file({name: tensor.contiguous() for name, tensor in golden.items()}, ROOT / "golden.safetensors")
    make_transformer(words, next(iter(random_batches(words, generator))))
    write_documents(words)
    for separator in False, True:
        make_context(separator)


if __name__ == "__main__":
    main()
