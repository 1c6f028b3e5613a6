#include <cstddef>

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "stretto/base/error.h"
#include "stretto/base/fd.h"
#include "stretto/base/files.h"
#include "stretto/base/hash.h"
#include "stretto/base/temp_folder.h"
#include "stretto/checkpoint_format/folder.h"
#include "stretto/weights/safetensors_header.h"

// Every byte of a checkpoint is covered by a checksum: each bit of each file is flipped once.
namespace stretto::checkpoint {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

constexpr const char* file_names[] = {"manifest.json", "rank-00000.safetensors", "rank-00001.safetensors"};

// Two ranks' files with a replicated tensor, a tensor in two flat shards, a scalar and an empty tensor.
void write_checkpoint(const std::filesystem::path& folder, int64_t step) {
  struct Held {
    std::string name, dtype;
    std::vector<int64_t> shape;
    Region region;
  };
  const std::vector<std::vector<Held>> ranks = {{{"model.weight", "F32", {3, 2}, flat_region({3, 2}, 0, 4)},
                                                 {"model.bias", "BF16", {3}, whole_region({3})}},
                                                {{"model.weight", "F32", {3, 2}, flat_region({3, 2}, 4, 6)},
                                                 {"optimizer.steps", "I64", {}, whole_region({})},
                                                 {"optimizer.empty", "F32", {0, 2}, whole_region({0, 2})}}};
  const auto path = checkpoint_format::checkpoint_path(folder, step);
  make_folders(path);
  checkpoint_format::Manifest manifest;
  manifest.step = step;
  manifest.world_size = 2;
  manifest.score = {"accuracy", 0.5, true};
  manifest.scalars["place"] = {{"samples", 3}};
  for (size_t rank = 0; rank < ranks.size(); ++rank) {
    std::vector<weights::SafetensorsTensor> tensors;
    for (const Held& held : ranks[rank]) {
      const int64_t elements = held.region.elements();
      tensors.push_back(
          {held.name, held.dtype, {elements}, elements * checkpoint_format::element_bytes(held.dtype)});
    }
    const std::string header = weights::safetensors_header(tensors);
    std::string content = header;
    for (size_t i = 0; i < tensors.size(); ++i) {
      const std::string data(static_cast<size_t>(tensors[i].bytes), static_cast<char>('a' + i));
      auto& entry = manifest.tensors[tensors[i].name];
      entry.dtype = tensors[i].dtype;
      entry.shape = ranks[rank][i].shape;
      entry.pieces.push_back(
          {ranks[rank][i].region, file_names[rank + 1], std::ssize(content), std::ssize(data), hash64(data)});
      content += data;
    }
    manifest.files[file_names[rank + 1]] = {std::ssize(content), std::ssize(header), hash64(header)};
    write_file_atomic(path / file_names[rank + 1], content);
  }
  write_file_atomic(path / checkpoint_format::manifest_name, checkpoint_format::to_text(manifest));
}

// Returns the error for a checkpoint; "" for a valid one.
std::string complaint(const std::filesystem::path& checkpoint) {
  try {
    checkpoint_format::verify(checkpoint);
    return "";
  } catch (const DataError& error) {
    return error.what();
  }
}

TEST(FlippedBits, AreFoundInEveryByteOfEveryFileAndNamed) {
  const TempFolder folder;
  write_checkpoint(folder.path(), 1);
  const auto checkpoint = checkpoint_format::checkpoint_path(folder.path(), 1);
  ASSERT_EQ(complaint(checkpoint), "");
  ASSERT_EQ(std::distance(std::filesystem::directory_iterator(checkpoint), {}), std::ssize(file_names));
  const checkpoint_format::Manifest manifest = checkpoint_format::read_manifest(checkpoint);
  for (const std::string name : file_names) {
    const std::string content = read_file(checkpoint / name);
    const Fd file(::open((checkpoint / name).c_str(), O_WRONLY | O_CLOEXEC));
    const auto put = [&](size_t at, char byte) {
      ASSERT_EQ(::pwrite(file.get(), &byte, 1, static_cast<off_t>(at)), 1);
    };
    for (size_t at = 0; at < content.size(); ++at) {
      std::string what = name == checkpoint_format::manifest_name ? "" : ": the header is damaged";
      for (const auto& [tensor, entry] : manifest.tensors) {
        for (const checkpoint_format::StoredPiece& piece : entry.pieces) {
          const auto begin = static_cast<size_t>(piece.begin),
                     end = begin + static_cast<size_t>(piece.length);
          if (piece.file == name && at >= begin && at < end) what = ": tensor " + tensor + " is damaged";
        }
      }
      for (int bit = 0; bit < 8; ++bit) {
        put(at, static_cast<char>(content[at] ^ 1 << bit));
        const std::string found = complaint(checkpoint);
        ASSERT_THAT(found, StartsWith((checkpoint / name).string() + what))
            << "byte " << at << ", bit " << bit;
      }
      put(at, content[at]);
    }
  }
  EXPECT_EQ(complaint(checkpoint), "");
}

// `resume: auto` uses the previous checkpoint, and the log names the damage.
TEST(FlippedBits, LetARunResumeFromThePreviousCheckpoint) {
  const TempFolder folder;
  write_checkpoint(folder.path(), 1);
  write_checkpoint(folder.path(), 2);
  for (const std::string name : file_names) {
    const auto path = checkpoint_format::checkpoint_path(folder.path(), 2) / name;
    const std::string content = read_file(path);
    for (size_t at = 0; at < content.size(); at += 97) {
      std::string damaged = content;
      damaged[at] = static_cast<char>(damaged[at] ^ 1);
      write_file_atomic(path, damaged);
      testing::internal::CaptureStderr();
      const auto found = checkpoint_format::newest_good(folder.path());
      EXPECT_THAT(testing::internal::GetCapturedStderr(),
                  HasSubstr("the checkpoint of step 2 cannot be used: " + path.string()));
      ASSERT_TRUE(found);
      EXPECT_EQ(found->step, 1);
    }
    write_file_atomic(path, content);
  }
  EXPECT_EQ(checkpoint_format::newest_good(folder.path())->step, 2);
}

}  // namespace
}  // namespace stretto::checkpoint
