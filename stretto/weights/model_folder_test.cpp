#include "stretto/weights/model_folder.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <functional>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "stretto/base/error.h"
#include "stretto/base/file_faults.h"
#include "stretto/base/files.h"
#include "stretto/base/message_support.h"
#include "stretto/base/temp_folder.h"
#include "stretto/weights/weight_files.h"
#include "stretto/weights/weight_source.h"

namespace stretto::weights {
namespace {

using ::testing::HasSubstr;

const std::filesystem::path golden_folders = std::filesystem::path(STRETTO_SOURCE_DIR) / "tests/golden";

std::vector<std::string> files_in(const std::filesystem::path& folder) {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(folder))
    names.push_back(entry.path().filename());
  std::ranges::sort(names);
  return names;
}

// Files that torch.save wrote: scripts/make_golden_pickled.py.
class ConvertPickled : public ::testing::Test {
 protected:
  // The model folder `name` with these weights.
  std::filesystem::path folder_with(const std::string& name) const {
    const auto folder = path("folder-" + name);
    std::filesystem::copy(pickled_ / name, folder);
    write_file_atomic(folder / "config.json", R"({"model_type": "bert"})");
    write_file_atomic(folder / "vocab.txt", "[PAD]\n");
    write_file_atomic(folder / "flax_model.msgpack", "of another framework");
    return folder;
  }
  std::filesystem::path path(const std::string& name) const { return temp_.path() / name; }
  void write(const std::filesystem::path& folder, const std::string& target,
             int64_t max_shard_bytes = 1'000'000, const std::optional<std::string>& dtype = {}) const {
    ModelFolder(folder).write(path(target), max_shard_bytes, dtype, [](int64_t) {});
  }

  TempFolder temp_;
  const std::filesystem::path pickled_ = golden_folders / "pickled";
};

std::string bytes_of_weight(WeightSource& source, const std::string& name) {
  const weights::SafetensorsEntry& entry = source.weights().at(name);
  std::string bytes(static_cast<size_t>(entry.end - entry.begin), '\0');
  source.read(name, 0, entry.dtype, bytes);
  return bytes;
}

TEST_F(ConvertPickled, WeightsEqualThoseOfTheSafetensors) {
  WeightSource wanted(golden_folders / "bert/old_names");
  write(folder_with("whole"), "one");
  write(folder_with("sharded"), "several", 6000);
  EXPECT_THAT(files_in(path("one")), ::testing::ElementsAre("config.json", "model.safetensors", "vocab.txt"));
  EXPECT_GT(weights::weight_files(path("several")).size(), 1u);
  for (const char* folder : {"one", "several"}) {
    WeightSource found(path(folder));
    ASSERT_EQ(found.weights().size(), wanted.weights().size());
    for (const auto& [name, entry] : wanted.weights()) {
      EXPECT_EQ(found.weights().at(name).shape, entry.shape) << name;
      EXPECT_EQ(bytes_of_weight(found, name), bytes_of_weight(wanted, name)) << folder << " " << name;
    }
  }
}

TEST_F(ConvertPickled, EveryTypeAndViewsAreConverted) {
  const auto folder = folder_with("small");
  EXPECT_EQ(ModelFolder(folder).bytes({}) - ModelFolder(folder).bytes("float32"),
            3 * 8 - 3 * 4 + 2 * 3 * (2 - 4));
  write(folder, "small");
  WeightSource found(path("small"));
  EXPECT_EQ(found.weights().size(), 14u);
  const auto floats_of = [&](const std::string& name) {
    const std::string bytes = bytes_of_weight(found, name);
    std::vector<float> values(bytes.size() / sizeof(float));
    std::memcpy(values.data(), bytes.data(), bytes.size());
    return values;
  };
  EXPECT_THAT(floats_of("transposed"), ::testing::ElementsAre(0, 3, 1, 4, 2, 5));
  EXPECT_EQ(found.weights().at("transposed").shape, (std::vector<int64_t>{3, 2}));
  EXPECT_THAT(floats_of("view"), ::testing::ElementsAre(2, 3));
  EXPECT_THAT(floats_of("scalar"), ::testing::ElementsAre(2.5));
  EXPECT_EQ(found.weights().at("bool").dtype, "BOOL");
  EXPECT_EQ(found.weights().at("empty").shape, (std::vector<int64_t>{0, 4}));
  write(folder, "narrow", 1'000'000, "bfloat16");
  EXPECT_EQ(WeightSource(path("narrow")).weights().at("float64").dtype, "BF16");
  EXPECT_THAT(read_file(path("narrow/config.json")), HasSubstr("\"torch_dtype\": \"bfloat16\""));
}

TEST(ConvertSafetensors, AnotherTypeIsWrittenWithAllFilesOfTheFolder) {
  const TempFolder temporary;
  const auto path = [&](const std::string& name) { return temporary.path() / name; };
  std::filesystem::copy(golden_folders / "bert/old_names", path("model"));
  write_file_atomic(path("model/vocab.txt"), "[PAD]\n");
  make_folders(path("model/words"));
  write_file_atomic(path("model/words/tokenizer.json"), "{}");
  const ModelFolder model(path("model"));
  EXPECT_LT(model.bytes("bfloat16"), model.bytes({}) * 6 / 10);
  model.write(path("narrow"), 6000, "bfloat16", [](int64_t) {});
  EXPECT_GT(weight_files(path("narrow")).size(), 1u);
  EXPECT_EQ(read_file(path("narrow/words/tokenizer.json")), "{}");
  EXPECT_EQ(read_file(path("narrow/vocab.txt")), "[PAD]\n");
  EXPECT_THAT(read_file(path("narrow/config.json")), HasSubstr("\"torch_dtype\": \"bfloat16\""));
  WeightSource wide(path("model")), narrow(path("narrow"));
  ASSERT_EQ(narrow.weights().size(), wide.weights().size());
  for (const auto& [name, entry] : wide.weights()) {
    const std::string bytes = bytes_of_weight(wide, name), half = bytes_of_weight(narrow, name);
    EXPECT_EQ(narrow.weights().at(name).dtype, entry.dtype == "F32" ? "BF16" : entry.dtype);
    if (entry.dtype != "F32") {
      EXPECT_EQ(half, bytes) << name;
      continue;
    }
    ASSERT_EQ(half.size() * 2, bytes.size());
    for (size_t i = 0; i < half.size() / 2; ++i) {
      float value = 0;
      std::memcpy(&value, bytes.data() + 4 * i, sizeof value);
      uint16_t bits = 0;
      std::memcpy(&bits, half.data() + 2 * i, sizeof bits);
      const float rounded = std::bit_cast<float>(static_cast<uint32_t>(bits) << 16);
      EXPECT_LE(std::abs(rounded - value), std::abs(value) / 256) << name << " " << i;
    }
  }
}

TEST_F(ConvertPickled, FailedConversionsLeaveNoFiles) {
  const auto refusal = [&](const std::filesystem::path& folder) {
    const std::string message = message_of([&] { write(folder, "refused"); });
    EXPECT_FALSE(std::filesystem::exists(path("refused")));
    EXPECT_FALSE(std::filesystem::exists(path("refused.partial")));
    return message;
  };
  EXPECT_THAT(refusal(folder_with("code")), has_all("\"posix.system\"", "could run code"));
  const auto folder = folder_with("whole");
  const auto file = folder / "pytorch_model.bin";
  const std::string whole = read_file(file);
  for (const size_t size : {whole.size() - 1, whole.size() / 2, size_t{5}}) {
    write_file_atomic(file, whole.substr(0, size));
    EXPECT_THAT(refusal(folder), has_all("cut short or is damaged", "copy it again"));
  }
  write_file_atomic(file, whole);
  std::filesystem::remove(folder / "config.json");
  EXPECT_THAT(refusal(folder), HasSubstr("there is no config.json"));
  const auto sharded = folder_with("sharded");
  std::filesystem::copy_file(sharded / "pytorch_model-00001-of-00002.bin",
                             sharded / "pytorch_model-00002-of-00002.bin",
                             std::filesystem::copy_options::overwrite_existing);
  EXPECT_THAT(refusal(sharded), HasSubstr("pytorch_model-00002-of-00002.bin: lacks the tensor"));
  write_file_atomic(folder / "config.json", "{}");
  std::filesystem::create_directory(path("there"));
  EXPECT_THAT(message_of([&] { write(folder, "there"); }), HasSubstr("there exists already"));
}

TEST_F(ConvertPickled, ANameThatIsNotUtf8IsRefused) {
  const auto folder = folder_with("whole");
  const auto file = folder / "pytorch_model.bin";
  std::string content = read_file(file);
  content[content.find("encoder.layer.0")] = '\xff';
  write_file_atomic(file, content);
  EXPECT_THAT(message_of([&] { write(folder, "refused"); }), HasSubstr("pytorch_model.bin: data.pkl, byte "));
  EXPECT_THAT(message_of([&] { write(folder, "refused"); }), HasSubstr("a text that is not UTF-8"));
  EXPECT_FALSE(std::filesystem::exists(path("refused")));
}

TEST_F(ConvertPickled, ConfigIsRead) {
  const auto folder = folder_with("whole");
  for (const auto& [text, message] :
       {std::pair("{\n\"model_type\": bert}", "config.json:2:15: not valid JSON"),
        {"{\"model_type\": \"b\xff\"}", "config.json:1:18: not valid JSON"},
        {"[]", "config.json: a JSON array; expected an object"}}) {
    write_file_atomic(folder / "config.json", text);
    EXPECT_THAT(message_of([&] { write(folder, "refused", 1'000'000, "bfloat16"); }), HasSubstr(message));
    EXPECT_FALSE(std::filesystem::exists(path("refused")));
  }
}

TEST_F(ConvertPickled, AFullDiskLeavesNoFiles) {
  const auto folder = folder_with("whole");
  for (int64_t call = 1;; ++call) {
    file_faults::Injection injection({.call = call, .error = ENOSPC});
    const std::string message = message_of([&] { write(folder, "full"); });
    if (injection.hit().empty()) break;
    SCOPED_TRACE(injection.hit());
    EXPECT_THAT(message, HasSubstr("No space left on device"));
    EXPECT_TRUE(!std::filesystem::exists(path("full")) ||
                injection.hit() == "fsync " + temp_.path().string());
    EXPECT_FALSE(std::filesystem::exists(path("full.partial")));
    std::filesystem::remove_all(path("full"));
  }
}

}  // namespace
}  // namespace stretto::weights
