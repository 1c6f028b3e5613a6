#include <filesystem>
#include <fstream>

#include "tests/fuzz/fuzz.h"

#include "stretto/base/files.h"
#include "stretto/base/temp_folder.h"
#include "stretto/compat/llama_job.h"

// Input: a job script that starts NeuronxDistributed's Llama script.
namespace stretto::fuzz {
namespace {

const std::filesystem::path examples = std::filesystem::path(STRETTO_SOURCE_DIR) / "examples/llama";

// Has the config.json of the scripts.
const TempFolder& folder() {
  static const TempFolder made;
  static const bool copied =
      std::filesystem::copy_file(examples / "7b/config.json", made.path() / "config.json");
  require(copied, "the folder has a config.json");
  return made;
}

}  // namespace

std::vector<std::string> seeds() {
  return {read_file(examples / "7b/pretrain.sh"), read_file(examples / "70b/pretrain.sh"),
          R"script(A=(1 2 "x y")
B=${A[1]:-$((1 + ${A[0]} * 2))}; export C+=" $B"
[[ -n $B && $B -ge 2 ]] && C=`date` || unset C
for i in 1 2; do D=$i; done
case $B in 1) E=1 ;; esac
if (( B > 1 )); then
  torchrun --nproc_per_node=8 run_llama_nxd_ptl.py --model_path "$(dirname "$0")" > log 2>&1
fi
)script"};
}

void run(const std::string& input) {
  const auto script = folder().path() / "job.sh";
  std::ofstream(script, std::ios::binary) << input;
  const compat::LlamaJob job =
      compat::read_llama_job(script, {{"SLURM_NTASKS", "32"}, {"SLURM_NODEID", "0"}});
  require(job.hosts > 0 && job.ranks_per_host > 0 && job.sequences > 0 && job.micro_batches > 0,
          "a job has ranks and sequences");
  require(job.hosts * job.ranks_per_host % (job.tp * job.pp) == 0, "groups divide the ranks evenly");
}

}  // namespace stretto::fuzz
