#include <array>
#include <cstring>
#include <fstream>

#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/mutate.h"
#include "tests/fuzz/mutate_json.h"
#include <fmt/format.h>

#include "stretto/base/hash.h"
#include "stretto/base/temp_folder.h"
#include "stretto/tensor/safetensors.h"

// Input: a .safetensors file, whose header determines which memory is read.
namespace stretto::fuzz {
namespace {

constexpr size_t length_bytes = 8;

std::string file_of(const std::string& header, size_t data_bytes) {
  std::string text;
  for (size_t i = 0; i < length_bytes; ++i) text.push_back(static_cast<char>(header.size() >> (8 * i)));
  return text + header + std::string(data_bytes, '\1');
}

// Adds a tensor after the existing data.
void add_tensor(nlohmann::ordered_json& header, size_t& data_bytes, std::mt19937_64& random) {
  constexpr std::array<std::pair<const char*, size_t>, 10> dtypes = {{{"F64", 8},
                                                                      {"F32", 4},
                                                                      {"F16", 2},
                                                                      {"BF16", 2},
                                                                      {"I64", 8},
                                                                      {"I32", 4},
                                                                      {"I16", 2},
                                                                      {"I8", 1},
                                                                      {"U8", 1},
                                                                      {"BOOL", 1}}};
  const auto& [dtype, element_bytes] = dtypes[random() % dtypes.size()];
  std::vector<uint64_t> shape;
  size_t bytes = element_bytes;
  for (uint64_t axes = random() % 4; axes > 0; --axes) {
    shape.push_back(random() % 5);
    bytes *= shape.back();
  }
  header[fmt::format("t{}", random() % 8)] = {
      {"dtype", dtype}, {"shape", shape}, {"data_offsets", {data_bytes, data_bytes + bytes}}};
  data_bytes += bytes;
}

}  // namespace

std::vector<std::string> seeds() {
  return {
      file_of(R"({"a":{"dtype":"F32","shape":[2,3],"data_offsets":[0,24]}})", 24),
      file_of(
          R"({"__metadata__":{"format":"pt"},"a":{"dtype":"BF16","shape":[4],"data_offsets":[0,8]},"b":{"dtype":"I64","shape":[],"data_offsets":[8,16]}})",
          16),
      file_of("{}", 0)};
}

std::string mutate_fields(const std::string& input, std::mt19937_64& random) {
  uint64_t header_bytes = 0;
  if (input.size() >= length_bytes) std::memcpy(&header_bytes, input.data(), length_bytes);
  const bool has_header = input.size() >= length_bytes && header_bytes <= input.size() - length_bytes;
  auto header = try_parse(has_header ? input.substr(length_bytes, header_bytes) : "");
  if (!header || !header->is_object()) return mutate(input, input, input.size() + 64, random);
  size_t data_bytes = input.size() - length_bytes - header_bytes;
  if (random() % 2 == 0) add_tensor(*header, data_bytes, random);
  if (random() % 2 == 0) change_json(*header, random);
  return file_of(dump(*header), data_bytes);
}

void run(const std::string& input) {
  static const TempFolder folder;
  const auto path = folder.path() / "a.safetensors";
  std::ofstream(path, std::ios::binary | std::ios::trunc)
      .write(input.data(), static_cast<std::streamsize>(input.size()));
  const SafetensorsFile file(path);
  uint64_t hash = 0;
  for (const auto& [name, tensor] : file.load_all()) {
    require(tensor.nbytes() <= input.size(), "a tensor lies inside its file");
    hash ^= hash64({static_cast<const char*>(tensor.const_data_ptr()), tensor.nbytes()});
  }
  [[maybe_unused]] static volatile uint64_t kept;  // makes the compiler keep the reads
  kept = hash;
}

}  // namespace stretto::fuzz
