"""A plain torch program that does not use stretto: run it under torchrun or `stretto launch`."""

import torch
import torch.distributed as dist

dist.init_process_group("gloo")
total = torch.tensor([dist.get_rank() + 1.0])
dist.all_reduce(total)
print(f"rank {dist.get_rank()} of {dist.get_world_size()} sums to {total.item()}", flush=True)
dist.destroy_process_group()
