#include "stretto/checkpoint_format/tensor_reader.h"

#include <cstring>
#include <numeric>
#include <random>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "stretto/base/error.h"
#include "stretto/base/files.h"
#include "stretto/base/hash.h"
#include "stretto/base/message_support.h"
#include "stretto/base/temp_folder.h"

namespace stretto::checkpoint_format {
namespace {

using ::testing::HasSubstr;

// A file with the elements of these regions of a tensor whose elements are their row-major indices.
struct Stored {
  explicit Stored(const std::vector<int64_t>& shape, const std::vector<Region>& regions) {
    std::string bytes = "head";
    StoredEntry entry = {"I32", shape, {}};
    for (const Region& region : regions) {
      const std::string data = values(shape, region);
      entry.pieces.push_back({region, "a", std::ssize(bytes), std::ssize(data), hash64(data)});
      bytes += data;
    }
    manifest.tensors["w"] = entry;
    manifest.files["a"] = {std::ssize(bytes), 4, hash64("head")};
    write_file_atomic(folder.path() / "a", bytes);
  }

  static std::string values(const std::vector<int64_t>& shape, const Region& region) {
    std::string data;
    for (int64_t inner = region.flat_begin; inner < region.flat_end; ++inner) {
      int64_t rest = inner, stride = 1;
      int32_t value = 0;
      for (size_t axis = shape.size(); axis-- > 0;) {
        value += static_cast<int32_t>((region.offset[axis] + rest % region.extent[axis]) * stride);
        rest /= region.extent[axis];
        stride *= shape[axis];
      }
      data.append(reinterpret_cast<const char*>(&value), sizeof value);
    }
    return data;
  }

  std::vector<int32_t> read() {
    TensorReader reader(folder.path(), manifest);
    std::string all;
    reader.read("w", [&](std::string_view bytes) { all += bytes; });
    std::vector<int32_t> elements(all.size() / sizeof(int32_t));
    if (!all.empty()) std::memcpy(elements.data(), all.data(), all.size());
    return elements;
  }

  TempFolder folder;
  Manifest manifest;
};

std::vector<int32_t> counted_up(int64_t count) {
  std::vector<int32_t> all(static_cast<size_t>(count));
  std::iota(all.begin(), all.end(), 0);
  return all;
}

TEST(TensorReader, AssemblesFlatShardsRowsAndColumns) {
  EXPECT_EQ(Stored({}, {{{}, {}, 0, 1}}).read(), counted_up(1));
  EXPECT_EQ(Stored({0, 3}, {}).read(), counted_up(0));
  EXPECT_EQ(Stored({3, 4}, {{{0, 0}, {3, 4}, 7, 12}, {{0, 0}, {3, 4}, 0, 7}}).read(), counted_up(12));
  EXPECT_EQ(
      Stored({4, 3, 2},
             {{{0, 0, 0}, {4, 1, 2}, 0, 8}, {{0, 1, 0}, {4, 2, 2}, 0, 5}, {{0, 1, 0}, {4, 2, 2}, 5, 16}})
          .read(),
      counted_up(24));
}

// A tensor that is read in several parts, divided into column pieces that are split inside a row.
TEST(TensorReader, ReadsTensorsThatAreLargerThanItsMemory) {
  const int64_t rows = 5003, columns = 777, left = 300, right = columns - left;
  Stored stored({rows, columns}, {{{0, 0}, {rows, left}, 0, rows * left / 2},
                                  {{0, 0}, {rows, left}, rows * left / 2, rows * left},
                                  {{0, left}, {rows, right}, 0, rows * right}});
  EXPECT_TRUE(stored.read() == counted_up(rows * columns));
}

TEST(TensorReader, NamesDamagedFileAndTensor) {
  Stored stored({6}, {{{0}, {6}, 0, 4}, {{0}, {6}, 4, 6}});
  std::string bytes = read_file(stored.folder.path() / "a");
  bytes[21] ^= 4;
  write_file_atomic(stored.folder.path() / "a", bytes);
  EXPECT_THAT(message_of<DataError>([&] { stored.read(); }),
              HasSubstr("/a: tensor w is damaged (bytes 20 to 28 differ"));
  write_file_atomic(stored.folder.path() / "a", bytes.substr(0, 12));
  EXPECT_THROW(stored.read(), IoError);
}

}  // namespace
}  // namespace stretto::checkpoint_format
