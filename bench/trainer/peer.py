#!/usr/bin/env python3
"""The overhead of a training loop by Accelerate, and of Lightning's Trainer: microseconds per step of a model with one parameter,
compared with a bare loop of forward, backward and optimizer step. Prints a JSON object."""

import argparse
import json
import logging
import statistics
import time
import warnings

import torch


class Scale(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.factor = torch.nn.Parameter(torch.ones(1))

    def forward(self, x):
        return (x * self.factor).sum()


def samples(steps):
    return torch.utils.data.DataLoader(torch.utils.data.TensorDataset(torch.ones(steps, 1)), batch_size=1, shuffle=True)


def bare(steps):
    model, x = Scale(), torch.ones(1)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-6)
    start = time.perf_counter()
    for _ in range(steps):
        optimizer.zero_grad()
        model(x).backward()
        optimizer.step()
    return (time.perf_counter() - start) / steps * 1e6


def accelerate(steps):
    from accelerate import Accelerator
    library = Accelerator(cpu=True, gradient_accumulation_steps=1)
    model = Scale()
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-6)
    schedule = torch.optim.lr_scheduler.ConstantLR(optimizer, factor=1.0)
    model, optimizer, schedule, loader = library.prepare(model, optimizer, schedule, samples(steps))
    start = time.perf_counter()
    for (x,) in loader:
        with library.accumulate(model):
            loss = model(x)
            library.backward(loss)
            if library.sync_gradients:
                library.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            schedule.step()
            optimizer.zero_grad()
    return (time.perf_counter() - start) / steps * 1e6


def lightning(steps):
    import pytorch_lightning

    class Task(pytorch_lightning.LightningModule):
        def __init__(self):
            super().__init__()
            self.net = Scale()

        def training_step(self, batch, _):
            return self.net(batch[0])

        def configure_optimizers(self):
            return torch.optim.SGD(self.parameters(), lr=1e-6)

    trainer = pytorch_lightning.Trainer(
        accelerator="cpu", devices=1, max_epochs=1, logger=False, enable_checkpointing=False, enable_progress_bar=False,
        enable_model_summary=False, gradient_clip_val=1.0)
    start = None

    class Clock(pytorch_lightning.Callback):
        def on_train_batch_start(self, *_):
            nonlocal start
            start = start or time.perf_counter()

    trainer.callbacks.append(Clock())
    trainer.fit(Task(), samples(steps))
    return (time.perf_counter() - start) / steps * 1e6


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("library", choices=["accelerate", "lightning"])
    parser.add_argument("--steps", type=int, default=2000)
    options = parser.parse_args()
    warnings.filterwarnings("ignore")
    logging.getLogger("pytorch_lightning").setLevel(logging.ERROR)
    torch.set_num_threads(1)
    theirs = {"accelerate": accelerate, "lightning": lightning}[options.library]
    turns = [(theirs(options.steps), bare(options.steps)) for _ in range(4)][1:]
    with_library, without = (statistics.median(times) for times in zip(*turns))
    print(json.dumps({"library": options.library, "us": with_library, "bare_us": without,
                      "overhead_us": with_library - without}))


if __name__ == "__main__":
    main()
