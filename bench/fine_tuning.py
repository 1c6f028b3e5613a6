"""Shared by the Python peers that fine-tune with transformers and torch.optim in one process."""

import random
import time

import torch
from transformers import get_linear_schedule_with_warmup


def batches_of(lengths, size, alike=True, window=50):
    """Batches of indices in random order: of samples of similar lengths, or of any."""
    order = random.sample(range(len(lengths)), len(lengths))
    for begin in range(0, len(order), size * window):
        part = order[begin:begin + size * window]
        if alike:
            part.sort(key=lambda index: lengths[index])
        cut = [part[at:at + size] for at in range(0, len(part), size)]
        random.shuffle(cut)
        yield from cut


def evaluation_batches(lengths, size, alike=True):
    """Batches of indices: sorted by length, or 8 in the given order, as the example scripts of transformers evaluate."""
    order = sorted(range(len(lengths)), key=lambda index: lengths[index]) if alike else list(range(len(lengths)))
    size = size if alike else 8
    return [order[at:at + size] for at in range(0, len(order), size)]


def padded(rows, value=0):
    """A tensor of rows that are filled up to the longest one."""
    longest = max(len(row) for row in rows)
    return torch.tensor([row + [value] * (longest - len(row)) for row in rows])


class Stepper:
    """Steps of AdamW as the recipes set it: weight decay 0.01 except for biases and norms, warm-up and then linear decay, gradients
    clipped to norm 1."""

    def __init__(self, model, lr, steps, warmup_ratio, precision="fp32"):
        self.model, self.precision = model, precision
        plain = [p for name, p in model.named_parameters() if name.endswith("bias") or "LayerNorm" in name]
        kept = {id(p) for p in plain}
        decayed = [p for p in model.parameters() if id(p) not in kept]
        self.optimizer = torch.optim.AdamW([{"params": decayed, "weight_decay": 0.01}, {"params": plain, "weight_decay": 0.0}],
                                           lr=lr, fused=True)
        self.schedule = get_linear_schedule_with_warmup(self.optimizer, int(warmup_ratio * steps), steps)

    def step(self, loss_of):
        with torch.autocast("cpu", torch.bfloat16, enabled=self.precision == "bf16"):
            loss = loss_of()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        self.optimizer.step()
        self.schedule.step()
        self.optimizer.zero_grad()


class Speed:
    """Samples per second of steps. The first one, and the first one after rest(), is not counted."""

    def __init__(self):
        self.samples, self.seconds, self.last = 0, 0.0, None

    def count(self, samples):
        now = time.perf_counter()
        if self.last is not None:
            self.samples += samples
            self.seconds += now - self.last
        self.last = now

    def rest(self):
        self.last = None

    def per_second(self):
        return round(self.samples / self.seconds, 2)
