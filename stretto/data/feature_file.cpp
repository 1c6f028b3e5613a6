#include "stretto/data/feature_file.h"

#include <algorithm>
#include <chrono>
#include <cstring>

#include "stretto/base/clock.h"
#include "stretto/base/error.h"
#include "stretto/base/hash.h"
#include "stretto/base/log.h"
#include "stretto/base/parallel.h"
#include "stretto/base/progress_bar.h"
#include "stretto/base/strings.h"

namespace stretto::data {
namespace {

struct FeatureFileHeader {
  char magic[8];
  uint64_t samples;
  uint64_t rows;
  uint64_t values;
  uint64_t checksum;  // of everything after it
};
constexpr char feature_file_magic[8] = {'S', 'T', 'R', 'F', 'E', 'A', '0', '1'};
constexpr int64_t items_per_block = 64;

// Encodes blocks of items on all processors. The first block that fails determines the exception.
std::vector<FeatureRows> encode_blocks(int64_t items, const FeatureFile::Encode& encode) {
  std::vector<FeatureRows> blocks(static_cast<size_t>((items + items_per_block - 1) / items_per_block));
  run_in_parts(blocks.size(), /*threads=*/0, [&](size_t begin, size_t end) {
    for (size_t block = begin; block < end; ++block) {
      const int64_t first = static_cast<int64_t>(block) * items_per_block;
      const int64_t last = std::min(items, first + items_per_block);
      for (int64_t item = first; item < last; ++item) encode(item, blocks[block]);
    }
  });
  return blocks;
}

template <class T>
std::string_view bytes_of_values(const std::vector<T>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T)};
}

}  // namespace

void FeatureRows::add(std::initializer_list<std::span<const int32_t>> rows) {
  for (const auto row : rows) {
    lengths_.push_back(std::ssize(row));
    values_.insert(values_.end(), row.begin(), row.end());
  }
}

FeatureFile::FeatureFile(const std::filesystem::path& path, int64_t rows) : file_(path), rows_(rows) {
  const auto damaged = [&](const char* what) -> DataError {
    return DataError("{}: {}; delete the file, the next run writes it again", path.string(), what);
  };
  FeatureFileHeader header{};
  if (file_.size() < sizeof header) throw damaged("too short for a feature file");
  std::memcpy(&header, file_.data(), sizeof header);
  if (std::memcmp(header.magic, feature_file_magic, sizeof header.magic) != 0)
    throw damaged("not a feature file");
  constexpr uint64_t most = uint64_t{1} << 40;
  if (header.rows != static_cast<uint64_t>(rows) || header.samples > most || header.values > most ||
      file_.size() != sizeof header + (header.samples * header.rows + 1) * sizeof(int64_t) +
                          header.values * sizeof(int32_t)) {
    throw damaged("its size does not match its header");
  }
  if (hash64(file_.text().substr(sizeof header)) != header.checksum)
    throw damaged("its checksum does not match");
  checksum_ = header.checksum;
  samples_ = static_cast<int64_t>(header.samples);
  const std::byte* place = file_.data() + sizeof header;
  begins_ = {reinterpret_cast<const int64_t*>(place), header.samples * header.rows + 1};
  values_ = {reinterpret_cast<const int32_t*>(place + begins_.size_bytes()), header.values};
  const bool ordered = begins_.front() == 0 && std::ranges::is_sorted(begins_) &&
                       begins_.back() == static_cast<int64_t>(header.values);
  if (!ordered) throw damaged("its rows are not consecutive");
}

FeatureFile FeatureFile::cached(const std::filesystem::path& path, int64_t rows, int64_t items,
                                const Source& source, const Encode& encode) {
  std::error_code unreadable;  // the reason is reported when the file is opened
  if (!std::filesystem::exists(path, unreadable) && !unreadable) {
    make_folders(path.parent_path());
    const auto start = std::chrono::steady_clock::now();
    {
      ProgressBar bar("tokenising " + source.name, items, source.items);
      write(path, rows, items, [&](int64_t item, FeatureRows& samples) {
        bar.add();
        encode(item, samples);
      });
    }
    log::info("tokenised {} ({} {}) in {}", source.name, items, source.items,
              human_duration(seconds_since(start)));
  }
  return FeatureFile(path, rows);
}

void FeatureFile::write(const std::filesystem::path& path, int64_t rows, int64_t items,
                        const Encode& encode) {
  const auto blocks = encode_blocks(items, encode);
  std::vector<int64_t> begins = {0};
  std::vector<int32_t> values;
  for (const FeatureRows& block : blocks) {
    for (const int64_t length : block.lengths_) begins.push_back(begins.back() + length);
    values.insert(values.end(), block.values_.begin(), block.values_.end());
  }
  if ((begins.size() - 1) % static_cast<size_t>(rows) != 0)
    throw Error("{}: {} rows are not samples of {} rows", path.string(), begins.size() - 1, rows);
  FeatureFileHeader header{};
  std::memcpy(header.magic, feature_file_magic, sizeof header.magic);
  header.samples = (begins.size() - 1) / static_cast<size_t>(rows);
  header.rows = static_cast<uint64_t>(rows);
  header.values = values.size();
  std::string body(bytes_of_values(begins));
  body.append(bytes_of_values(values));
  header.checksum = hash64(body);
  write_file_atomic(path, [&](const WritePiece& write) {
    write({reinterpret_cast<const char*>(&header), sizeof header});
    write(body);
  });
}

}  // namespace stretto::data
