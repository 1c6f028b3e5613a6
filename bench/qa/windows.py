"""Questions of a file in SQuAD's layout as windows of tokens, as transformers' run_qa.py builds them."""
import json


def read_questions(path):
    """(id, question, context, answers) in the order of the file."""
    with open(path, encoding="utf-8") as file:
        return [(qa["id"], qa["question"].lstrip(), paragraph["context"], qa["answers"]) for article in json.load(file)["data"]
                for paragraph in article["paragraphs"] for qa in paragraph["qas"]]


def answer_tokens(encoding, sample, answers):
    """The first and last token of the answer, or those of [CLS] if this window does not contain it."""
    if not answers:
        return 0, 0
    offsets, sequences = encoding["offset_mapping"][sample], encoding.sequence_ids(sample)
    begin = answers[0]["answer_start"]
    end = begin + len(answers[0]["text"])
    first, last = 0, len(sequences) - 1
    while sequences[first] != 1:
        first += 1
    while sequences[last] != 1:
        last -= 1
    if offsets[first][0] > begin or offsets[last][1] < end:
        return 0, 0
    while first < len(offsets) and offsets[first][0] <= begin:
        first += 1
    while offsets[last][1] >= end:
        last -= 1
    return first - 1, last + 1


def windows_of(questions, tokenizer, max_length, doc_stride, train=True, evaluate=True):
    """One dictionary per window: input_ids, token_type_ids, the index of its question; for training the tokens `start` and `end` of the
    answer, and for evaluation the part of the context that each token covers (None for tokens outside of the context)."""
    windows = []
    for at in range(0, len(questions), 1000):  # the batches of datasets.map
        part = questions[at:at + 1000]
        encoding = tokenizer([q for _, q, _, _ in part], [c for _, _, c, _ in part], truncation="only_second", max_length=max_length,
                             stride=doc_stride, return_overflowing_tokens=True, return_offsets_mapping=True)
        for sample, question in enumerate(encoding["overflow_to_sample_mapping"]):
            window = {"input_ids": encoding["input_ids"][sample], "token_type_ids": encoding["token_type_ids"][sample],
                      "question": at + question}
            if train:
                window["start"], window["end"] = answer_tokens(encoding, sample, part[question][3])
            if evaluate:
                window["offsets"] = [offset if sequence == 1 else None
                                     for offset, sequence in zip(encoding["offset_mapping"][sample], encoding.sequence_ids(sample))]
            windows.append(window)
    return windows


def batch_of(windows):
    """Tensors of the model's arguments, padded to the longest window."""
    import torch
    longest = max(len(window["input_ids"]) for window in windows)
    pad = lambda row: row + [0] * (longest - len(row))
    return {"input_ids": torch.tensor([pad(window["input_ids"]) for window in windows]),
            "token_type_ids": torch.tensor([pad(window["token_type_ids"]) for window in windows]),
            "attention_mask": torch.tensor([pad([1] * len(window["input_ids"])) for window in windows])}
