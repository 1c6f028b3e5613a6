#!/usr/bin/env python3
"""Writes tests/golden/sequence_tagger/: tiny random taggers and what PyTorch computes with them.

Needs torch and safetensors (the files in the repository: torch 2.13):
    python3 scripts/make_golden_sequence_tagger.py

lstm_crf/, gru/     config.json, model.safetensors (fp32) and golden.safetensors:
    ids [T], cu_seqlens [B+1], words [T], labels [T] int64                  the packed batch
    characters [C], character_cu_seqlens [T+1] int64                        the characters of each word
    <prec>.logits [T, K], <prec>.loss_sum []                                prec = fp64, fp32
    <prec>.grad.<name>                                                      of loss_sum
    tags [T] int64                                                          by Viterbi's algorithm (lstm_crf)

The reference runs one sentence and one word at a time through torch.nn.LSTM and GRU, and the forward algorithm of the conditional
random field as a loop over logsumexp. No dropout.
"""
import json
import pathlib

import torch
from safetensors.torch import save_file

ROOT = pathlib.Path(__file__).resolve().parent.parent / "tests/golden/sequence_tagger"
LABELS = ["B-A", "B-B", "I-A", "I-B", "O"]
COMMON = dict(model_type="sequence-tagger", architectures=["SequenceTaggerForTokenClassification"], vocab_size=11, characters="abcdé",
              character_dimensions=3, character_hidden_size=4, hidden_size=6,
              id2label={str(i): name for i, name in enumerate(LABELS)}, label2id={name: i for i, name in enumerate(LABELS)})
CONFIGS = {
    "lstm_crf": dict(COMMON, word_dimensions=5, rnn_type="LSTM", rnn_layers=1, bidirectional=True, reproject_embeddings=True, use_crf=True),
    "gru": dict(COMMON, word_dimensions=7, rnn_type="GRU", rnn_layers=2, bidirectional=True, reproject_embeddings=False, use_crf=False),
}


class Tagger(torch.nn.Module):
    def __init__(self, config):
        super().__init__()
        self.words = torch.nn.Embedding(config["vocab_size"], config["word_dimensions"])
        self.characters = torch.nn.Embedding(1 + len(config["characters"]), config["character_dimensions"])
        self.character_rnn = torch.nn.LSTM(config["character_dimensions"], config["character_hidden_size"], bidirectional=True)
        width = config["word_dimensions"] + 2 * config["character_hidden_size"]
        if config["reproject_embeddings"]:
            self.reproject = torch.nn.Linear(width, width)
        self.rnn = getattr(torch.nn, config["rnn_type"])(width, config["hidden_size"], config["rnn_layers"],
                                                         bidirectional=config["bidirectional"])
        self.linear = torch.nn.Linear(2 * config["hidden_size"], len(LABELS))
        if config["use_crf"]:
            self.crf = torch.nn.Module()
            self.crf.transitions = torch.nn.Parameter(torch.randn(len(LABELS), len(LABELS)))
            self.crf.start = torch.nn.Parameter(torch.randn(len(LABELS)))
            self.crf.end = torch.nn.Parameter(torch.randn(len(LABELS)))

    def emissions(self, ids, spellings):
        rows = []
        for word, spelling in zip(ids, spellings):
            _, (states, _) = self.character_rnn(self.characters(spelling).unsqueeze(1))
            rows.append(torch.cat([self.words(word), states[0, 0], states[1, 0]]))
        x = torch.stack(rows)
        if hasattr(self, "reproject"):
            x = self.reproject(x)
        return self.linear(self.rnn(x.unsqueeze(1))[0].squeeze(1))

    def loss(self, emissions, tags):
        if not hasattr(self, "crf"):
            return torch.nn.functional.cross_entropy(emissions, tags, reduction="sum")
        crf = self.crf
        alpha = crf.start + emissions[0]
        own = crf.start[tags[0]] + emissions[0, tags[0]]
        for t in range(1, len(tags)):
            alpha = torch.logsumexp(alpha.unsqueeze(1) + crf.transitions, 0) + emissions[t]
            own = own + crf.transitions[tags[t - 1], tags[t]] + emissions[t, tags[t]]
        return torch.logsumexp(alpha + crf.end, 0) - own - crf.end[tags[-1]]

    def best(self, emissions):
        crf = self.crf
        score, pointers = crf.start + emissions[0], []
        for row in emissions[1:]:
            score, pointer = (score.unsqueeze(1) + crf.transitions).max(0)
            score = score + row
            pointers.append(pointer)
        path = [int((score + crf.end).argmax())]
        for pointer in reversed(pointers):
            path.append(int(pointer[path[-1]]))
        return path[::-1]


def main():
    for seed, (name, config) in enumerate(CONFIGS.items()):
        torch.manual_seed(seed)
        folder = ROOT / name
        folder.mkdir(parents=True, exist_ok=True)
        model = Tagger(config)
        for parameter in model.parameters():
            torch.nn.init.normal_(parameter, 0, 0.6)
        weights = {key: value.detach().clone().contiguous() for key, value in model.named_parameters()}
        save_file(weights, folder / "model.safetensors", {"format": "pt"})
        (folder / "config.json").write_text(json.dumps(config, indent=2, ensure_ascii=False) + "\n")
        lengths = [3, 1, 6]
        tokens = sum(lengths)
        bounds = torch.tensor([0, *lengths]).cumsum(0)
        spelling_lengths = torch.randint(1, 7, (tokens,))
        spelling_bounds = torch.cat([torch.zeros(1, dtype=torch.int64), spelling_lengths.cumsum(0)])
        batch = dict(ids=torch.randint(config["vocab_size"], (tokens,)), cu_seqlens=bounds, labels=torch.randint(len(LABELS), (tokens,)),
                     words=torch.cat([torch.arange(n) for n in lengths]), character_cu_seqlens=spelling_bounds,
                     characters=torch.randint(1 + len(config["characters"]), (int(spelling_bounds[-1]),)))
        golden = dict(batch)
        for precision, dtype in (("fp64", torch.float64), ("fp32", torch.float32)):
            model = Tagger(config)
            model.load_state_dict(weights)
            model.to(dtype)
            logits, losses, tags = [], [], []
            for begin, end in zip(bounds.tolist(), bounds.tolist()[1:]):
                spellings = [batch["characters"][spelling_bounds[t]:spelling_bounds[t + 1]] for t in range(begin, end)]
                logits.append(model.emissions(batch["ids"][begin:end], spellings))
                losses.append(model.loss(logits[-1], batch["labels"][begin:end]))
                if config["use_crf"]:
                    tags += model.best(logits[-1])
            loss = torch.stack(losses).sum()
            loss.backward()
            golden[f"{precision}.logits"] = torch.cat(logits).detach()
            golden[f"{precision}.loss_sum"] = loss.detach()
            golden.update({f"{precision}.grad.{key}": value.grad for key, value in model.named_parameters()})
            if config["use_crf"]:
                golden["tags"] = torch.tensor(tags)
        save_file({key: value.contiguous() for key, value in golden.items()}, folder / "golden.safetensors")


if __name__ == "__main__":
    main()
