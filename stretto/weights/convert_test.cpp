#include <cmath>
#include <cstring>
#include <fstream>
#include <numeric>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "stretto/base/error.h"
#include "stretto/base/file_faults.h"
#include "stretto/base/file_writer.h"
#include "stretto/base/files.h"
#include "stretto/base/hash.h"
#include "stretto/base/json.h"
#include "stretto/base/message_support.h"
#include "stretto/base/temp_folder.h"
#include "stretto/checkpoint_format/folder.h"
#include "stretto/weights/export.h"
#include "stretto/weights/import.h"
#include "stretto/weights/shards.h"
#include "stretto/weights/weight_files.h"
#include "stretto/weights/weight_source.h"

namespace stretto::weights {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

const std::filesystem::path golden = std::filesystem::path(STRETTO_SOURCE_DIR) / "tests/golden/checkpoints";

std::vector<std::string> names_in(const std::filesystem::path& folder) {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(folder))
    names.push_back(entry.path().filename());
  std::ranges::sort(names);
  return names;
}

class Convert : public ::testing::Test {
 protected:
  std::filesystem::path path(const std::string& name) const { return temp_.path() / name; }
  // Exports the golden checkpoint, whose run folder does not exist: config.json and the tokenizer come from a
  // model folder.
  void export_golden(const std::string& name, int64_t max_shard_bytes = 1'000'000'000) const {
    export_model(checkpoint_, path(name), {.like = golden / "model", .max_shard_bytes = max_shard_bytes});
  }
  std::string refusal_of_import(const std::string& model) const {
    return message_of([&] { import_model(path(model), checkpoint_, path("refused")); });
  }

  TempFolder temp_;
  std::filesystem::path checkpoint_ = golden / "adamw_fp32/step-00000003";
};

TEST_F(Convert, ShardsEqualThoseOfTransformers) {
  const auto of = [](const std::string& name, int64_t bytes) {
    return weights::SafetensorsTensor{name, "U8", {bytes}, bytes};
  };
  const auto files = [](const std::vector<Shard>& shards) {
    std::string text;
    for (const Shard& shard : shards) {
      text += shard.file + ":";
      for (const auto& tensor : shard.tensors) text += " " + tensor.name;
      text += '\n';
    }
    return text;
  };
  const std::vector<weights::SafetensorsTensor> weights = {of("a", 4), of("b", 6), of("c", 20), of("d", 3),
                                                           of("e", 8)};
  EXPECT_EQ(files(plan_shards(weights, 41)), "model.safetensors: a b c d e\n");
  // huggingface_hub.split_torch_state_dict_into_shards: a tensor above the size does not end the open file.
  EXPECT_EQ(files(plan_shards(weights, 13)),
            "model-00001-of-00003.safetensors: c\n"
            "model-00002-of-00003.safetensors: a b d\n"
            "model-00003-of-00003.safetensors: e\n");
  EXPECT_EQ(shard_index(plan_shards(weights, 13)).dump(),
            R"({"metadata":{"total_size":41},"weight_map":{"a":"model-00002-of-00003.safetensors",)"
            R"("b":"model-00002-of-00003.safetensors","c":"model-00001-of-00003.safetensors",)"
            R"("d":"model-00002-of-00003.safetensors","e":"model-00003-of-00003.safetensors"}})");
  EXPECT_EQ(files(plan_shards({}, 13)), "model.safetensors:\n");
}

TEST_F(Convert, SizesHaveUnits) {
  EXPECT_EQ(parse_size("5GB"), 5'000'000'000);
  EXPECT_EQ(parse_size("1.5 GiB"), 1'610'612'736);
  EXPECT_EQ(parse_size("200"), 200);
  for (const char* bad : {"", "GB", "0", "-1MB", "5 Gb", "nan", "1e300TB"})
    EXPECT_THAT(message_of([&] { parse_size(bad); }),
                has_all("\"" + std::string(bad) + "\"", "5GB, 500MB or 2GiB"));
}

TEST_F(Convert, AnExportedModelHasTheWeightsOfTheCheckpoint) {
  export_golden("whole");
  EXPECT_EQ(names_in(path("whole")), (std::vector<std::string>{"config.json", "model.safetensors",
                                                               "tokenizer_config.json", "vocab.txt"}));
  export_golden("parts", 3000);
  const std::string index = read_file(path("parts") / weights::weights_index_name);
  EXPECT_THAT(index, HasSubstr("\"weight_map\": {\n"));
  WeightSource whole(path("whole")), parts(path("parts"));
  ASSERT_EQ(whole.weights().size(), parts.weights().size());
  for (const auto& [name, weight] : whole.weights()) {
    std::string one(static_cast<size_t>(weight.end - weight.begin), 0), other = one;
    whole.read(name, 0, "F32", one);
    parts.read(name, 0, "F32", other);
    EXPECT_TRUE(one == other) << name;
  }
  for (const auto& [file, tensors] : weights::weight_files(path("parts"))) {
    EXPECT_TRUE(tensors.size() == 1 || std::filesystem::file_size(file) < 3000 + 1000) << file;
  }
}

TEST_F(Convert, ExportAndImportGiveTheSameCheckpoint) {
  for (const char* run : {"adamw_fp32/step-00000003", "sgd_bf16/step-00000003"}) {
    checkpoint_ = golden / run;
    const TempFolder folder;
    for (const int64_t shard_bytes : {int64_t{3000}, int64_t{1'000'000}}) {
      const std::string model =
          fmt::format("model-{}-{}", checkpoint_.parent_path().filename().string(), shard_bytes);
      export_golden(model, shard_bytes);
      const auto back = folder.path() / fmt::to_string(shard_bytes) / "step-00000003";
      make_folders(back.parent_path());
      import_model(path(model), checkpoint_, back);
      checkpoint_format::verify(back);
      ASSERT_EQ(names_in(back), names_in(checkpoint_));
      for (const std::string& name : names_in(back))
        EXPECT_TRUE(read_file(back / name) == read_file(checkpoint_ / name)) << name;
    }
  }
}

TEST_F(Convert, TheFirstModelOfALiteProgramIsWritten) {
  const auto checkpoint = path("step-00000001");
  make_folders(checkpoint);
  const std::string content = "headaaaabbbb";
  checkpoint_format::Manifest manifest;
  manifest.step = 1;
  manifest.files["a"] = {12, 4, hash64("head")};
  manifest.tensors["model.w"] = {"F32", {1}, {{whole_region({1}), "a", 4, 4, hash64("aaaa")}}};
  manifest.tensors["model1.w"] = {"F32", {1}, {{whole_region({1}), "a", 8, 4, hash64("bbbb")}}};
  write_file_atomic(checkpoint / "a", content);
  write_file_atomic(checkpoint / checkpoint_format::manifest_name, checkpoint_format::to_text(manifest));
  testing::internal::CaptureStderr();
  export_model(checkpoint, path("model"));
  EXPECT_THAT(testing::internal::GetCapturedStderr(),
              AllOf(HasSubstr("several models; only the first"), HasSubstr("only the weights were written")));
  EXPECT_EQ(names_in(path("model")), std::vector<std::string>{"model.safetensors"});
  EXPECT_TRUE(read_file(path("model/model.safetensors")).ends_with("aaaa"));
}

// Pieces are parts of boxes of a weight. Weights that the index does not name are not the model's.
TEST_F(Convert, PiecesOfAnyRegionGetTheirValues) {
  std::vector<float> values(24);
  std::iota(values.begin(), values.end(), 0.0F);
  const std::string bytes(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float));
  make_folders(path("model"));
  write_file_atomic(
      path("model/a.safetensors"),
      weights::safetensors_header({{"w", "F32", {4, 6}, 96}, {"unnamed", "F32", {1}, 4}}) + bytes + "aaaa");
  write_file_atomic(path("model") / weights::weights_index_name,
                    R"({"metadata": {}, "weight_map": {"w": "a.safetensors"}})");
  const auto checkpoint = path("step-00000001");
  make_folders(checkpoint);
  checkpoint_format::Manifest manifest;
  manifest.step = 1;
  checkpoint_format::StoredEntry& weight = manifest.tensors["model.w"];
  weight = {"F32", {4, 6}, {}};
  std::string content = "head";
  for (const Region& region :
       {Region{{0, 0}, {4, 2}, 0, 8}, {{0, 2}, {4, 4}, 0, 7}, {{0, 2}, {4, 4}, 7, 16}}) {
    const std::string zeros(static_cast<size_t>(region.elements()) * sizeof(float), 0);
    weight.pieces.push_back({region, "a", std::ssize(content), std::ssize(zeros), hash64(zeros)});
    content += zeros;
  }
  manifest.files["a"] = {std::ssize(content), 4, hash64("head")};
  write_file_atomic(checkpoint / "a", content);
  write_file_atomic(checkpoint / checkpoint_format::manifest_name, checkpoint_format::to_text(manifest));
  import_model(path("model"), checkpoint, path("back"));
  checkpoint_format::verify(path("back"));
  export_model(path("back"), path("again"));
  EXPECT_TRUE(read_file(path("again/model.safetensors")).ends_with(bytes));
}

// The first weight as numbers of half the width.
TEST_F(Convert, NarrowerWeightsAreWidened) {
  export_golden("model");
  const checkpoint_format::Manifest manifest = checkpoint_format::read_manifest(checkpoint_);
  std::vector<weights::SafetensorsTensor> tensors;
  for (const auto& [name, entry] : manifest.tensors) {
    if (name.starts_with("model.")) {
      tensors.push_back({name.substr(6), tensors.size() % 2 == 0 ? "BF16" : "F16", entry.shape,
                         2 * count_elements(entry.shape)});
    }
  }
  std::string content = weights::safetensors_header(tensors);
  for (const auto& tensor : tensors) {
    for (int64_t i = 0; i < tensor.bytes / 2; ++i)
      content += tensor.dtype == "F16" ? std::string("\x01\xbc") : std::string("\xc0\xbf");
  }
  write_file_atomic(path("model") / "model.safetensors", content);
  import_model(path("model"), checkpoint_, path("wide"));
  checkpoint_format::verify(path("wide"));
  export_model(path("wide"), path("again"), {.like = golden / "model"});
  WeightSource source(path("again"));
  for (const auto& tensor : tensors) {
    float value = 0;
    source.read(tensor.name, 0, "F32", {reinterpret_cast<char*>(&value), sizeof value});
    EXPECT_EQ(value, tensor.dtype == "F16" ? -1.0009765625f : -1.5f) << tensor.name;
  }
  EXPECT_TRUE(WeightSource::widens("F32", "F64") && WeightSource::widens("I64", "I64"));
  EXPECT_FALSE(WeightSource::widens("F32", "BF16") || WeightSource::widens("F16", "BF16") ||
               WeightSource::widens("I32", "F64"));
}

// Rounded to the nearest value of the type.
TEST_F(Convert, WeightsMayBeWrittenInAnotherType) {
  export_golden("full");
  const checkpoint_format::Manifest manifest = checkpoint_format::read_manifest(checkpoint_);
  for (const auto& [dtype, name] : {std::pair("bfloat16", "BF16"), {"float16", "F16"}}) {
    export_model(checkpoint_, path(dtype), {.like = golden / "model", .dtype = dtype});
    EXPECT_EQ(model_bytes(manifest, dtype) * 2, model_bytes(manifest));
    WeightSource full(path("full")), half(path(dtype));
    for (const auto& [weight, entry] : full.weights()) {
      EXPECT_EQ(half.weights().at(weight).dtype, name);
      const auto count = static_cast<size_t>(count_elements(entry.shape));
      std::vector<float> exact(count), rounded(count);
      full.read(weight, 0, "F32", {reinterpret_cast<char*>(exact.data()), count * sizeof(float)});
      half.read(weight, 0, "F32", {reinterpret_cast<char*>(rounded.data()), count * sizeof(float)});
      const double error = dtype == std::string("float16") ? 0x1p-11 : 0x1p-8;
      for (size_t i = 0; i < count; ++i)
        ASSERT_LE(std::abs(rounded[i] - exact[i]), error * std::abs(exact[i]) + 0x1p-25)
            << weight << " " << i;
    }
  }
  EXPECT_THAT(message_of<ConfigError>([&] { export_model(checkpoint_, path("wrong"), {.dtype = "bf16"}); }),
              HasSubstr("\"bf16\" is not one of float16, bfloat16, float32, float64"));
  EXPECT_FALSE(std::filesystem::exists(path("wrong")));
}

TEST_F(Convert, HalfPrecisionIsExact) {
  const std::vector<std::pair<uint16_t, float>> known = {
      {0x0000, 0.f},      {0x3c00, 1.f},           {0xc000, -2.f},     {0x7bff, 65504.f},
      {0x0001, 0x1p-24f}, {0x83ff, -0x1.ff8p-15f}, {0x0400, 0x1p-14f}, {0x7c00, INFINITY}};
  std::string content =
      weights::safetensors_header({{"w", "F16", {std::ssize(known)}, 2 * std::ssize(known)}});
  for (const auto& [bits, value] : known) content.append(reinterpret_cast<const char*>(&bits), 2);
  make_folders(path("half"));
  write_file_atomic(path("half/model.safetensors"), content);
  WeightSource source(path("half"));
  for (size_t i = 0; i < known.size(); ++i) {
    float value = 0;
    source.read("w", static_cast<int64_t>(i), "F32", {reinterpret_cast<char*>(&value), sizeof value});
    EXPECT_EQ(value, known[i].second);
  }
}

TEST_F(Convert, OtherModelsAreRefusedByName) {
  export_golden("model");
  const checkpoint_format::Manifest manifest = checkpoint_format::read_manifest(checkpoint_);
  const auto write = [&](const std::function<void(std::vector<weights::SafetensorsTensor>&)>& change) {
    std::vector<weights::SafetensorsTensor> tensors;
    for (const auto& [name, entry] : manifest.tensors) {
      if (name.starts_with("model."))
        tensors.push_back({name.substr(6), "F32", entry.shape, 4 * count_elements(entry.shape)});
    }
    change(tensors);
    int64_t bytes = 0;
    for (const auto& tensor : tensors) bytes += tensor.bytes;
    write_file_atomic(path("model") / "model.safetensors",
                      weights::safetensors_header(tensors) + std::string(static_cast<size_t>(bytes), '\0'));
    return refusal_of_import("model");
  };
  EXPECT_THAT(write([](auto& tensors) { tensors[0].name += "s"; }),
              has_all(path("model").string() + ": it lacks the weight ", "did you mean"));
  EXPECT_THAT(write([](auto& tensors) {
                tensors.push_back({"extra", "F32", {}, 4});
              }),
              has_all(path("model").string() + ":", "weight extra "));
  EXPECT_THAT(write([](auto& tensors) {
                tensors[0].shape = {1, 7}, tensors[0].bytes = 28;
              }),
              has_all(path("model").string() + ":", "is [1, 7] there and ["));
  EXPECT_THAT(write([](auto& tensors) { tensors[0].dtype = "F64", tensors[0].bytes *= 2; }),
              has_all(path("model").string() + ":", "F64 there", "F32 in the checkpoint", "as F32"));
  EXPECT_FALSE(std::filesystem::exists(path("refused")));
}

TEST_F(Convert, BadInputsAreNamed) {
  export_golden("model", 3000);
  EXPECT_THAT(message_of([&] { export_golden("model"); }), has_all(path("model").string(), "exists"));
  std::string missing = "none";
  for (const std::string& name : names_in(path("model"))) {
    if (name.starts_with("model-00002-of-")) missing = name;
  }
  std::filesystem::rename(path("model") / missing, path("aside"));
  EXPECT_THAT(refusal_of_import("model"), has_all("model.safetensors.index.json:", missing + " is missing"));
  std::filesystem::rename(path("aside"), path("model") / missing);
  const std::string bytes = read_file(path("model") / missing);
  write_file_atomic(path("model") / missing, bytes.substr(0, bytes.size() - 1));
  EXPECT_THAT(refusal_of_import("model"), HasSubstr(missing + ": tensor "));

  EXPECT_THAT(message_of([&] { export_model(checkpoint_, path("x"), {.like = path("nowhere")}); }),
              has_all("--like " + path("nowhere").string() + ":", "no config.json"));
  std::filesystem::copy(checkpoint_, path("step-00000003"));
  EXPECT_THAT(message_of([&] { export_model(path("step-00000003"), path("x")); }),
              has_all("(tokenizer.path)", "--like FOLDER"));
  EXPECT_THAT(message_of([&] { import_model(path("model"), checkpoint_, path("step-7")); }),
              has_all(path("step-7").string() + ":", "step 3 ", "step-00000003"));
}

// Checkpoints of earlier versions do not carry the tokenizer, which a new tagger has only in its run.
TEST_F(Convert, ATaggersTokenizerIsThatOfTheCheckpoint) {
  std::filesystem::copy(checkpoint_, path("step-00000003"));
  auto manifest = checkpoint_format::read_manifest(checkpoint_);
  manifest.scalars["exported_config"] = {{"model_type", "sequence-tagger"}};
  manifest.scalars["recipe"].erase("tokenizer.path");
  write_file_atomic(path("step-00000003/manifest.json"), checkpoint_format::to_text(manifest));
  EXPECT_THAT(message_of([&] { export_model(path("step-00000003"), path("new")); }),
              has_all("tokenizer of this sequence-tagger", "in the folder model of its run"));
  EXPECT_FALSE(std::filesystem::exists(path("new")));
  std::filesystem::copy(golden / "model/vocab.txt", path("step-00000003/vocab.txt"));
  export_model(path("step-00000003"), path("new"));
  EXPECT_EQ(names_in(path("new")), (std::vector<std::string>{"config.json", "model.safetensors",
                                                             "tokenizer_config.json", "vocab.txt"}));
}

TEST_F(Convert, AFlippedBitIsNamedAndNoFilesRemain) {
  const auto damaged = path("step-00000003");
  std::filesystem::copy(checkpoint_, damaged);
  const checkpoint_format::Manifest manifest = checkpoint_format::read_manifest(damaged);
  const checkpoint_format::StoredPiece& piece = manifest.tensors.at("model.classifier.weight").pieces.at(0);
  std::string bytes = read_file(damaged / piece.file);
  bytes[static_cast<size_t>(piece.begin)] ^= 1;
  write_file_atomic(damaged / piece.file, bytes);
  EXPECT_THAT(message_of([&] { export_model(damaged, path("model"), {.like = golden / "model"}); }),
              has_all((damaged / piece.file).string() + ":", "model.classifier.weight is damaged"));
  export_golden("good");
  const checkpoint_format::StoredPiece& state =
      manifest.tensors.at("optimizer.exp_avg.classifier.weight").pieces.at(0);
  bytes = read_file(checkpoint_ / state.file);
  bytes[static_cast<size_t>(state.begin)] ^= 1;
  std::filesystem::copy_file(checkpoint_ / piece.file, damaged / piece.file,
                             std::filesystem::copy_options::overwrite_existing);
  write_file_atomic(damaged / state.file, bytes);
  EXPECT_THAT(
      message_of([&] { import_model(path("good"), damaged, path("back")); }),
      has_all((damaged / state.file).string() + ":", "optimizer.exp_avg.classifier.weight is damaged"));
  EXPECT_EQ(names_in(temp_.path()), (std::vector<std::string>{"good", "step-00000003"}));
}

TEST_F(Convert, AFullDiskLeavesNoFiles) {
  export_golden("model", 20'000);
  for (int64_t call = 1;; ++call) {
    file_faults::Injection injection({.call = call, .error = ENOSPC});
    const std::string exported = message_of([&] { export_golden("new", 20'000); });
    if (injection.hit().empty()) break;
    SCOPED_TRACE(injection.hit());
    EXPECT_THAT(exported, HasSubstr("No space left on device"));
    // Once the complete folder has its name, only its durability is in doubt.
    EXPECT_TRUE(!std::filesystem::exists(path("new")) || injection.hit() == "fsync " + temp_.path().string());
    EXPECT_FALSE(std::filesystem::exists(path("new.partial")));
    std::filesystem::remove_all(path("new"));
  }
  std::filesystem::remove_all(path("new"));
  for (int64_t call = 1;; ++call) {
    file_faults::Injection injection({.call = call, .error = ENOSPC});
    const std::string imported = message_of([&] { import_model(path("model"), checkpoint_, path("new")); });
    if (injection.hit().empty()) break;
    SCOPED_TRACE(injection.hit());
    EXPECT_THAT(imported, HasSubstr("No space left on device"));
    EXPECT_FALSE(std::filesystem::exists(path("new.partial")));
    std::filesystem::remove_all(path("new"));
  }
}

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)

int64_t status_kib(const std::string& key) {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with(key)) return std::stoll(line.substr(key.size()));
  }
  return 0;
}

// Returns the peak memory during `action` above that before it, in MiB; nullopt if the kernel does not reset
// peaks.
std::optional<double> peak_growth(const std::function<void()>& action) {
  std::ofstream reset("/proc/self/clear_refs");
  reset << "5" << std::flush;
  const int64_t before = status_kib("VmRSS:");
  if (!reset || status_kib("VmHWM:") > before + 1024) return std::nullopt;
  action();
  return static_cast<double>(status_kib("VmHWM:") - before) / 1024;
}

// A checkpoint of 192 MiB in two files, one tensor of which has 128 MiB.
TEST_F(Convert, MemoryStaysBelowAShard) {
  const auto checkpoint = path("step-00000001");
  make_folders(checkpoint);
  checkpoint_format::Manifest manifest;
  manifest.step = 1;
  const std::string block(size_t{1} << 20, '\x3c');
  for (const int64_t file : {0, 1}) {
    const std::string name = fmt::format("rank-0000{}.safetensors", file);
    FileWriter writer(checkpoint / name);
    writer.write("head");
    for (const int64_t mib : {64, 16, 16}) {
      const bool big = mib == 64;
      auto& entry = manifest.tensors[big ? "model.big" : fmt::format("model.w{}{}", file, writer.size())];
      entry.dtype = "F32";
      const int64_t elements = mib << 18, first = big && file == 1 ? elements : 0;
      entry.shape = {big ? 2 * elements : elements};
      std::string all;
      for (int64_t i = 0; i < mib; ++i) all += block;
      entry.pieces.push_back({flat_region(entry.shape, first, first + elements), name, writer.size(),
                              std::ssize(all), hash64(all)});
      writer.write(all);
    }
    writer.finish();
    manifest.files[name] = {writer.size(), 4, hash64("head")};
  }
  write_file_atomic(checkpoint / checkpoint_format::manifest_name, checkpoint_format::to_text(manifest));
  export_model(checkpoint, path("warm"));  // libraries and buffers of the allocator
  constexpr int64_t shard = 40 << 20;
  const auto exported =
      peak_growth([&] { export_model(checkpoint, path("model"), {.max_shard_bytes = shard}); });
  if (!exported) GTEST_SKIP() << "/proc/self/clear_refs does not reset the peak";
  EXPECT_LT(*exported, 24);
  const auto imported = peak_growth([&] { import_model(path("model"), checkpoint, path("back")); });
  EXPECT_LT(*imported, 24);
  checkpoint_format::verify(path("back"));
}

#endif

}  // namespace
}  // namespace stretto::weights
