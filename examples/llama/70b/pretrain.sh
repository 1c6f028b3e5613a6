#!/bin/bash
# A job script in the shape of NeuronxDistributed's for a Llama with 70 billion parameters: tp 32 and 4 stages
# of a pipeline, ZeRO-1. `stretto plan pretrain.sh --nodes 32` reads it.
set -e

HERE=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")" && pwd)
[[ ${SLURM_NODEID-0} == 0 ]] && set -x
export XLA_DOWNCAST_BF16=1

RANKS=32 # per host
HOSTS=1
HOST_NAME=`hostname`
if [ -v SLURM_NTASKS ]; then
  ADDRESSES=""
  for host in $(scontrol show hostname); do
    ADDRESSES="$ADDRESSES $(nslookup $host | awk '/^Address: / { print $2 }')"
  done
  ALL=(${ADDRESSES//\\ / })
  HOSTS=$SLURM_NTASKS
  ARGUMENTS="--nproc_per_node $RANKS --nnodes $HOSTS --node_rank $SLURM_NODEID --master_addr ${ALL[0]} --master_port 44000"
  LOGS=logs/$SLURM_JOB_ID/$SLURM_NODEID
else
  ARGUMENTS="--nproc_per_node $RANKS"
  LOGS=logs
fi
mkdir -p $LOGS

GLOBAL_BATCH=1024
SEQ_LEN=4096
PP=4
TP=32
DP=$(($RANKS * $HOSTS / $TP / $PP))
BATCH=$(($GLOBAL_BATCH / $DP)) # of a copy of the model, one sequence per micro-batch

if [ "$NEURON_EXTRACT_GRAPHS_ONLY" = "1" ]; then
  STEPS=10
elif [ -v PERF_TEST ] && [ $PERF_TEST -gt 0 ]; then
  STEPS=400
else
  STEPS=30000
fi

torchrun $ARGUMENTS run_llama_nxd_ptl.py \
  --train_batch_size $BATCH \
  --num_microbatches $BATCH \
  --use_meta_device_init 1 \
  --data_dir "$HOME/data/wikicorpus_tokenized_4k" \
  --model_path $HERE \
  --max_steps $STEPS \
  --seq_len $SEQ_LEN \
  --pipeline_parallel_size $PP \
  --tensor_parallel_size $TP \
  --lr 0.00015 \
  --min_lr 1e-05 \
  --beta1 0.9 \
  --beta2 0.95 \
  --weight_decay 0.1 \
  --warmup_steps 2000 \
  --constant_steps 0 \
  --use_zero1_optimizer 1 \
  --use_sequence_parallel 1 \
  --use_selective_checkpoint 1 \
  --qkv_linear 1 \
  --kv_replicator 4 \
  --scheduler_type 'cosine' |& tee $LOGS/log
exit ${PIPESTATUS[0]}
