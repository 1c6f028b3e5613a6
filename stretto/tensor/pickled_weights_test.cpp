#include "stretto/tensor/pickled_weights.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "stretto/base/error.h"
#include "stretto/base/files.h"
#include "stretto/base/message_support.h"
#include "stretto/base/temp_folder.h"
#include "stretto/tensor/hf_folder.h"

// The files were written by torch.save: scripts/make_golden_pickled.py.
namespace stretto {
namespace {

using ::testing::HasSubstr;

const std::filesystem::path golden_folder = std::filesystem::path(STRETTO_SOURCE_DIR) / "tests/golden";

void expect_weights_of_old_names(const NamedTensors& weights) {
  const NamedTensors expected = load_hf_weights(golden_folder / "bert/old_names");
  ASSERT_EQ(weights.size(), expected.size());
  for (const auto& [name, tensor] : expected) EXPECT_TRUE(at::equal(weights.at(name), tensor)) << name;
}

std::string pickled_error(const std::filesystem::path& file) {
  return message_of([&] { load_pickled_weights(file); });
}

TEST(PickledWeights, FoldersWithoutSafetensors) {
  const std::string name = load_hf_weights(golden_folder / "bert/old_names").begin()->first;
  for (const char* folder : {"whole", "sharded"}) {
    SCOPED_TRACE(folder);
    const auto path = golden_folder / "pickled" / folder;
    expect_weights_of_old_names(load_hf_weights(path));
    EXPECT_TRUE(hf_folder_has(path, name));
    EXPECT_FALSE(hf_folder_has(path, "qa_outputs.weight"));
  }
}

TEST(PickledWeights, EveryTypeAndViewsAreConverted) {
  const NamedTensors weights = load_pickled_weights(golden_folder / "pickled/small/pytorch_model.bin");
  const Tensor numbers = at::arange(6.0);
  EXPECT_EQ(weights.size(), 14U);
  for (const auto& [name, type] : std::map<std::string, at::ScalarType>{{"float64", at::kDouble},
                                                                        {"float32", at::kFloat},
                                                                        {"float16", at::kHalf},
                                                                        {"bfloat16", at::kBFloat16},
                                                                        {"int64", at::kLong},
                                                                        {"int32", at::kInt},
                                                                        {"int16", at::kShort},
                                                                        {"int8", at::kChar},
                                                                        {"uint8", at::kByte},
                                                                        {"bool", at::kBool}}) {
    EXPECT_TRUE(at::equal(weights.at(name), at::arange(3).to(type))) << name;
  }
  EXPECT_TRUE(at::equal(weights.at("transposed"), numbers.reshape({2, 3}).t()));
  EXPECT_TRUE(at::equal(weights.at("view"), numbers.slice(0, 2, 4)));
  EXPECT_EQ(weights.at("scalar").item<double>(), 2.5);
  EXPECT_EQ(weights.at("empty").sizes(), at::IntArrayRef({0, 4}));
}

TEST(PickledWeights, TruncatedFilesAreRefused) {
  const TempFolder folder;
  const std::string whole = read_file(golden_folder / "pickled/small/pytorch_model.bin");
  const auto file = folder.path() / "pytorch_model.bin";
  for (const size_t size : {whole.size() - 1, whole.size() / 2, size_t{4}}) {
    write_file_atomic(file, whole.substr(0, size));
    EXPECT_THAT(pickled_error(file), HasSubstr("pytorch_model.bin: the file was cut short or is damaged"))
        << size;
  }
  write_file_atomic(file, "");
  EXPECT_THAT(pickled_error(file), HasSubstr("not a file of torch.save of PyTorch 1.6 or later"));
  write_file_atomic(file, "\x80\x02}q\x01.");
  EXPECT_THAT(pickled_error(file), HasSubstr("not a file of torch.save of PyTorch 1.6 or later"));
  EXPECT_THAT(pickled_error(folder.path() / "none.bin"), HasSubstr("none.bin: cannot be read"));
}

TEST(PickledWeights, CodeIsRefused) {
  EXPECT_THAT(pickled_error(golden_folder / "pickled/code/pytorch_model.bin"),
              has_all("\"posix.system\"", "could run code"));
  EXPECT_FALSE(std::filesystem::exists("executed"));
}

}  // namespace
}  // namespace stretto
