#include "stretto/programs/stretto/slurm_script.h"

#include <fmt/format.h>

#include "stretto/base/strings.h"

namespace stretto::cli {
namespace {

// Since version 22.05, srun does not inherit --cpus-per-task from sbatch. A signal interrupts wait. srun
// itself ends its step on SIGTERM; scancel without --batch signals the processes of the step. Slurm also
// requeues cancelled jobs, hence the check of the state.
constexpr const char* text = R"script(#!/bin/sh
# Submit this with: sbatch FILE
#SBATCH --job-name={name}
#SBATCH --nodes={nodes}
# One launcher per node, which starts a rank per core, or per GPU (two # disable a line).
#SBATCH --ntasks-per-node=1
#SBATCH --cpus-per-task={ranks}
##SBATCH --gpus-per-node={ranks}
##SBATCH --time=24:00:00
#SBATCH --output=%x-%j.out
#SBATCH --open-mode=append
# 120 s before the time limit Slurm sends SIGTERM to this shell: the run is saved, and the job is queued again.
#SBATCH --signal=B:TERM@120
#SBATCH --requeue

STRETTO_SECRET=$(od -An -N32 -tx1 /dev/urandom | tr -d ' \n')
export STRETTO_SECRET

requeue=
trap 'requeue=1; scancel --signal=TERM "$SLURM_JOB_ID"' TERM
srun ${{SLURM_CPUS_PER_TASK:+--cpus-per-task="$SLURM_CPUS_PER_TASK"}} \
  {command} &
step=$!
wait "$step"
status=$?
while kill -0 "$step" 2> /dev/null; do
  wait "$step"
  status=$?
done
if [ "$requeue" ] && [ "$status" = 0 ] && [ "$(squeue -h -j "$SLURM_JOB_ID" -o %T)" = RUNNING ]; then
  scontrol requeue "$SLURM_JOB_ID"
fi
exit "$status"
)script";

// Replaces blanks, at which Slurm's options end.
std::string without_blanks(const std::string& name) {
  std::string safe;
  for (const char c : name) safe += c > ' ' && c < 127 ? c : '_';
  return safe.empty() ? "stretto" : safe;
}

}  // namespace

std::string slurm_script(const SlurmScript& job) {
  std::string command;
  for (const std::string& word : job.command) command += (command.empty() ? "" : " ") + shell_word(word);
  return fmt::format(text, fmt::arg("name", without_blanks(job.name)), fmt::arg("nodes", job.nodes),
                     fmt::arg("ranks", job.ranks > 0 ? job.ranks : 1), fmt::arg("command", command));
}

}  // namespace stretto::cli
