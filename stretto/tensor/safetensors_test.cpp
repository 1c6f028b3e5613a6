#include "stretto/tensor/safetensors.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "stretto/base/error.h"
#include "stretto/base/files.h"
#include "stretto/base/message_support.h"
#include "stretto/base/temp_folder.h"
#include "stretto/tensor/hf_folder.h"

namespace stretto {
namespace {

using ::testing::HasSubstr;

std::string file_with_header(const std::string& header, size_t data_bytes) {
  const uint64_t length = header.size();
  return std::string(reinterpret_cast<const char*>(&length), 8) + header + std::string(data_bytes, '\1');
}

TEST(Safetensors, KeepsEveryDtypeBitForBit) {
  const TempFolder folder;
  NamedTensors tensors;
  for (const auto dtype : {at::kDouble, at::kFloat, at::kHalf, at::kBFloat16, at::kLong, at::kInt, at::kShort,
                           at::kChar, at::kByte, at::kBool}) {
    tensors[c10::toString(dtype)] = at::arange(0, 6).reshape({2, 3}).to(dtype);
  }
  tensors["transposed"] = at::randn({3, 5}).t();
  tensors["scalar"] = at::tensor(2.5);
  tensors["empty"] = at::empty({0, 4});
  save_safetensors(folder.path() / "x.safetensors", tensors);
  const auto loaded = SafetensorsFile(folder.path() / "x.safetensors").load_all();
  ASSERT_EQ(loaded.size(), tensors.size());
  for (const auto& [name, tensor] : tensors) EXPECT_TRUE(at::equal(loaded.at(name), tensor)) << name;
}

TEST(Safetensors, BadFilesAreNamed) {
  const TempFolder folder;
  const auto path = folder.path() / "x.safetensors";
  const auto error_of = [&](const std::string& content) {
    write_file_atomic(path, content);
    return message_of<DataError>([&] { SafetensorsFile{path}; });
  };
  EXPECT_THAT(error_of("abc"), HasSubstr("x.safetensors: 3 bytes is too short"));
  EXPECT_THAT(error_of(std::string(8, '\xff')),
              HasSubstr("header claims 18446744073709551615 bytes, the file has 8"));
  EXPECT_THAT(error_of(file_with_header("[]", 0)), HasSubstr("not a JSON object"));
  EXPECT_THAT(error_of(file_with_header(R"({"w":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})", 4)),
              has_all("tensor w lies at bytes 0 to 8", "the file holds 4"));
  EXPECT_THAT(error_of(file_with_header(R"({"w":{"dtype":"F32","shape":[3],"data_offsets":[0,8]}})", 8)),
              has_all("tensor w has shape [3] of F32", "not match its 8 bytes"));
  EXPECT_THAT(error_of(file_with_header(R"({"w":{"dtype":"F32","shape":[-1],"data_offsets":[0,8]}})", 8)),
              HasSubstr("tensor w: -1 is not a size or an offset"));
  // Torch cannot compute the strides of such an empty tensor.
  EXPECT_THAT(error_of(file_with_header(
                  R"({"w":{"dtype":"U8","shape":[0,9223372036854775807,3],"data_offsets":[8,8]}})", 8)),
              has_all("tensor w has shape [0, 9223372036854775807, 3] of U8", "not match its 0 bytes"));
  for (const char* offset : {"1e300", "8.0", "-8", "18446744073709551608", "\"8\""}) {
    const std::string header =
        fmt::format(R"({{"w":{{"dtype":"F32","shape":[2],"data_offsets":[0,{}]}}}})", offset);
    EXPECT_THAT(error_of(file_with_header(header, 8)), HasSubstr("is not a size or an offset"));
  }
  EXPECT_THAT(error_of(file_with_header(R"({"w":{"dtype":"Q4","shape":[2],"data_offsets":[0,8]}})", 8)),
              HasSubstr("unknown type \"Q4\""));
  EXPECT_THAT(error_of(file_with_header(R"({"w":{"shape":[2]}})", 8)), HasSubstr("entry of the wrong form"));
}

TEST(HfFolder, ReadsShardsAndRefusesPathsOutside) {
  const TempFolder folder;
  save_safetensors(folder.path() / "a.safetensors", {{"x", at::ones({2})}});
  save_safetensors(folder.path() / "b.safetensors", {{"y", at::zeros({3})}});
  const auto index = folder.path() / "model.safetensors.index.json";
  write_file_atomic(index, R"({"weight_map": {"x": "a.safetensors", "y": "b.safetensors"}})");
  EXPECT_EQ(load_hf_weights(folder.path()).size(), 2u);
  write_file_atomic(index, R"({"weight_map": {"x": "../a.safetensors"}})");
  EXPECT_THAT(message_of([&] { load_hf_weights(folder.path()); }), HasSubstr("outside the model's folder"));
}

TEST(Safetensors, WritingToALoadedTensorDoesNotChangeTheFile) {
  const TempFolder folder;
  const auto path = folder.path() / "a.safetensors";
  save_safetensors(path, {{"b", at::zeros({3}, at::kByte)}, {"w", at::ones({1000})}});
  const std::string before = read_file(path);
  Tensor weight, bytes;
  {
    const SafetensorsFile file(path);
    weight = file.load("w");
    bytes = file.load("b");
  }
  weight.fill_(2);
  bytes.fill_(1);
  EXPECT_EQ(weight.sum().item<float>(), 2000);
  EXPECT_EQ(read_file(path), before);
}

TEST(HfFolder, WithoutWeightsIsNamed) {
  const TempFolder folder;
  EXPECT_THAT(message_of([&] { load_hf_weights(folder.path()); }),
              HasSubstr("neither model.safetensors nor"));
}

}  // namespace
}  // namespace stretto
