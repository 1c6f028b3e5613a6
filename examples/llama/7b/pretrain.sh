#!/bin/bash
# A job script in the shape of NeuronxDistributed's for a Llama with 7 billion parameters: tp 8, ZeRO-1,
# 1,024 sequences of 4,096 tokens per step. `stretto plan pretrain.sh` reads it.

HERE=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")" && pwd)
export NEURON_CC_FLAGS="--model-type transformer"
export MALLOC_ARENA_MAX=64

RANKS=32 # per host
TP=8
: ${GLOBAL_BATCH:=1024}
MICRO_BATCH=1
STEPS=10000
SEQ_LEN=4096
DATA="$HOME/data/wikicorpus_tokenized_4k"

HOSTS=1
ARGUMENTS="--nproc_per_node $RANKS"
if [ ! -z "$SLURM_NTASKS" ]; then
  HOSTS=$SLURM_NTASKS
  MASTER=(`scontrol show hostnames $SLURM_JOB_NODELIST`)
  ARGUMENTS="$ARGUMENTS --nnodes $HOSTS --node_rank $SLURM_NODEID --master_addr $MASTER --master_port 44000"
fi

DP=$(($RANKS * $HOSTS / $TP))
ACCUMULATION=$(($GLOBAL_BATCH / $MICRO_BATCH / $DP))

if [ $NEURON_EXTRACT_GRAPHS_ONLY -gt 0 ]; then
  STEPS_THIS_RUN=2
  LOG=compile.log
else
  STEPS_THIS_RUN=-1
  LOG=train.log
fi

torchrun $ARGUMENTS \
  run_llama_nxd_ptl.py \
  --model_path $HERE \
  --data_dir $DATA \
  --tensor_parallel_size $TP \
  --train_batch_size $MICRO_BATCH \
  --grad_accum_usteps $ACCUMULATION \
  --steps_this_run $STEPS_THIS_RUN\
  --max_steps $STEPS \
  --warmup_steps 100 \
  --lr 3.0e-4 \
  --seq_len $SEQ_LEN \
  --use_sequence_parallel 1 \
  --use_selective_checkpoint 1 \
  --use_fp32_optimizer 1 \
  --use_zero1_optimizer 1 \
  --scheduler_type 'linear' \
  --use_flash_attention 1 |& tee $LOG
exit ${PIPESTATUS[0]}
