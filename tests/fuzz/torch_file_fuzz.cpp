#include <fstream>

#include "tests/fuzz/fuzz.h"

#include "stretto/base/files.h"
#include "stretto/base/hash.h"
#include "stretto/base/temp_folder.h"
#include "stretto/tensor/pickled_weights.h"

// Input: a pytorch_model.bin, both the zip archive and its content.
namespace stretto::fuzz {

std::vector<std::string> seeds() {
  return {
      read_file(std::filesystem::path(STRETTO_SOURCE_DIR) / "tests/golden/pickled/small/pytorch_model.bin")};
}

void run(const std::string& input) {
  static const TempFolder folder;
  const auto path = folder.path() / "pytorch_model.bin";
  std::ofstream(path, std::ios::binary | std::ios::trunc)
      .write(input.data(), static_cast<std::streamsize>(input.size()));
  uint64_t hash = 0;
  for (const auto& [name, tensor] : load_pickled_weights(path)) {
    require(tensor.nbytes() <= input.size(), "a tensor lies inside its file");
    const Tensor values = tensor.contiguous();
    hash ^= hash64({static_cast<const char*>(values.const_data_ptr()), values.nbytes()});
  }
  [[maybe_unused]] static volatile uint64_t kept;  // makes the compiler keep the reads
  kept = hash;
}

}  // namespace stretto::fuzz
