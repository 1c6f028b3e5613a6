"""What the golden scripts of decoders share: random models, packed batches, and what transformers computes with them."""

import math
import os

import torch
import transformers

import make_golden_bert as common

LENGTHS = [5, 11, 1, 24]


def set_up():
    os.environ["HF_HUB_OFFLINE"] = "1"
    torch.set_num_threads(1)
    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()


def randomise(model, seed, fan_in):
    """No parameter is all zeros or all ones, so that an error in any of them shows. fan_in(name): the axis of the inputs."""
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for name, parameter in sorted(model.named_parameters()):
            noise = torch.randn(parameter.shape, generator=generator)
            if name.endswith("bias"):
                parameter.copy_(0.2 * noise)
            elif parameter.dim() == 1:
                parameter.copy_(1 + 0.2 * noise)
            elif parameter.shape[0] == model.config.vocab_size or "wpe" in name:
                parameter.copy_(0.5 * noise)
            else:
                parameter.copy_(1.2 * noise / math.sqrt(parameter.shape[fan_in(name)]))


def random_batch(config, generator, lengths):
    """A packed batch; the label of a token is the next one of its sequence, and -100 for the last one."""
    bounds = torch.tensor([0] + lengths).cumsum(0)
    ids = torch.randint(0, config.vocab_size, (int(bounds[-1]),), generator=generator)
    labels = ids.roll(-1)
    labels[bounds[1:] - 1] = -100
    return {"ids": ids, "cu_seqlens": bounds, "labels": labels}


def forward(load, batch):
    """Logits [T, V] and the sum of the losses, from each sequence alone in a model of its own; the models share gradients' sum."""
    bounds = batch["cu_seqlens"].tolist()
    logits, loss, gradients = [], 0.0, {}
    for begin, end in zip(bounds, bounds[1:]):
        model = load()
        ids = batch["ids"][None, begin:end]
        output = model(input_ids=ids, labels=ids)
        logits.append(output.logits[0])
        if end - begin == 1:
            continue
        # transformers computes the loss in fp32 whatever the logits' type.
        of_sequence = torch.nn.functional.cross_entropy(output.logits[0, :-1], ids[0, 1:], reduction="sum")
        assert abs(of_sequence / (end - begin - 1) - output.loss) < 1e-5
        of_sequence.backward()
        loss += of_sequence.detach()
        for name, parameter in model.named_parameters():
            gradients[name] = gradients.get(name, 0) + parameter.grad
    return torch.cat(logits), loss, gradients


def make_case(root, kind, name, config, seed, fan_in, precisions=("fp64", "fp32"), attention="eager"):
    """config.json, model.safetensors (fp32) and golden.safetensors: the batch, <prec>.logits [T, V], <prec>.loss_sum [] and
    <prec>.grad.<name>."""
    folder = root / name
    model = kind(config)
    randomise(model, seed, fan_in)
    common.save_model(model, folder)
    (folder / "generation_config.json").unlink(missing_ok=True)
    batch = random_batch(config, torch.Generator().manual_seed(4000 + seed), LENGTHS)
    golden = dict(batch)
    for prec in precisions:
        def load():
            loaded = kind.from_pretrained(folder, attn_implementation=attention, dtype=torch.float32)
            return loaded.to(common.PRECISIONS[prec]).train()  # dropout is 0
        logits, loss, gradients = forward(load, batch)
        golden |= {f"{prec}.logits": logits, f"{prec}.loss_sum": loss}
        golden |= {f"{prec}.grad.{n}": g for n, g in gradients.items()}
    common.save_golden(golden, folder)
    return folder


def mean_loss(model, batch):
    bounds = batch["cu_seqlens"].tolist()
    sums = [torch.nn.functional.cross_entropy(model(input_ids=batch["ids"][None, begin:end]).logits[0, :-1], batch["ids"][begin + 1:end],
                                              reduction="sum") for begin, end in zip(bounds, bounds[1:])]
    return sum(sums) / (batch["labels"] != -100).sum()


def make_parity(root, kind, name, config, seed, fan_in, attention="eager"):
    """config.json, model.safetensors and golden.safetensors of 20 steps, see make_golden_bert.parity_golden."""
    folder = root / name
    model = kind(config)
    randomise(model, seed, fan_in)
    common.save_model(model, folder)
    (folder / "generation_config.json").unlink(missing_ok=True)
    generator = torch.Generator().manual_seed(5000 + seed)
    batches = [random_batch(config, generator, torch.randint(2, 25, (6,), generator=generator).tolist()) for _ in range(20)]

    def load(folder, dtype):
        return kind.from_pretrained(folder, attn_implementation=attention, dtype=torch.float32).to(dtype).train()
    common.parity_golden(folder, load, batches, mean_loss)
