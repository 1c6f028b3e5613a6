#include <cstring>
#include <fstream>
#include <optional>

#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/mutate.h"

#include "stretto/base/files.h"
#include "stretto/base/hash.h"
#include "stretto/base/temp_folder.h"
#include "stretto/data/feature_file.h"

// Input: a file of samples of two rows with a valid checksum, which is recomputed for each input.
namespace stretto::fuzz {
namespace {

constexpr size_t magic_bytes = 8, checksum_at = 32, header_bytes = 40;
constexpr uint64_t rows = 2;

// The file's fields; offsets may be anything.
struct Fields {
  std::string magic;
  std::vector<int64_t> begins;
  std::vector<int32_t> values;
};

template <class T>
void take(std::string_view& rest, size_t count, std::vector<T>& values) {
  values.resize(count);
  if (count > 0) std::memcpy(values.data(), rest.data(), count * sizeof(T));
  rest.remove_prefix(count * sizeof(T));
}

template <class T>
void append(std::string& text, const T* values, size_t count) {
  text.append(reinterpret_cast<const char*>(values), count * sizeof(T));
}

std::optional<Fields> fields_of(const std::string& input) {
  uint64_t counts[3];  // samples, rows, values
  if (input.size() < header_bytes) return std::nullopt;
  std::memcpy(counts, input.data() + magic_bytes, sizeof counts);
  const uint64_t bytes = input.size() - header_bytes;
  if (counts[0] >= bytes || counts[1] != rows || counts[2] > bytes ||
      bytes != (counts[0] * rows + 1) * 8 + counts[2] * 4)
    return std::nullopt;
  Fields fields;
  fields.magic = input.substr(0, magic_bytes);
  std::string_view rest = std::string_view(input).substr(header_bytes);
  take(rest, counts[0] * rows + 1, fields.begins);
  take(rest, counts[2], fields.values);
  return fields;
}

std::string file_of(const Fields& fields) {
  std::string text = fields.magic;
  const uint64_t numbers[] = {(fields.begins.size() - 1) / rows, rows, fields.values.size(),
                              0};  // the checksum
  append(text, numbers, 4);
  append(text, fields.begins.data(), fields.begins.size());
  append(text, fields.values.data(), fields.values.size());
  return text;
}

void add_sample(Fields& fields, std::mt19937_64& random) {
  for (uint64_t row = 0; row < rows; ++row) {
    for (uint64_t values = random() % 8; values > 0; --values)
      fields.values.push_back(static_cast<int32_t>(random()));
    fields.begins.push_back(static_cast<int64_t>(fields.values.size()));
  }
}

void remove_sample(Fields& fields) {
  if (fields.begins.size() > 1) fields.begins.resize(fields.begins.size() - rows);
  const auto values = static_cast<uint64_t>(fields.begins.back());
  if (values < fields.values.size()) fields.values.resize(values);
}

void move_begin(Fields& fields, std::mt19937_64& random) {
  constexpr int64_t edges[] = {-1, 0, 1, INT64_MAX, INT64_MIN, int64_t{1} << 32};
  int64_t& begin = fields.begins[random() % fields.begins.size()];
  begin = random() % 2 == 0 ? edges[random() % std::size(edges)]
                            : static_cast<int64_t>(random() % (fields.values.size() + 2));
}

const TempFolder& folder() {
  static const TempFolder made;
  return made;
}

}  // namespace

std::vector<std::string> seeds() {
  std::vector<std::string> files;
  for (const int64_t count : {0, 1, 5}) {
    const auto path = folder().path() / "seed";
    data::FeatureFile::write(path, rows, count, [](int64_t item, data::FeatureRows& samples) {
      const std::vector<int32_t> values(static_cast<size_t>(item), 7);
      samples.add({values, values});
    });
    files.push_back(read_file(path));
  }
  return files;
}

std::string mutate_fields(const std::string& input, std::mt19937_64& random) {
  std::optional<Fields> fields = fields_of(input);
  if (!fields) return mutate(input, input, input.size() + 64, random);
  for (uint64_t left = 1 + random() % 4; left > 0; --left) {
    switch (random() % 8) {
      case 0:
        remove_sample(*fields);
        break;
      case 1:
        move_begin(*fields, random);
        break;
      default:
        add_sample(*fields, random);
    }
  }
  return file_of(*fields);
}

void run(const std::string& input) {
  std::string forged = input;
  if (forged.size() >= header_bytes) {
    const uint64_t checksum = hash64(std::string_view(forged).substr(header_bytes));
    std::memcpy(forged.data() + checksum_at, &checksum, sizeof checksum);
  }
  const auto path = folder().path() / "forged";
  std::ofstream(path, std::ios::binary | std::ios::trunc)
      .write(forged.data(), static_cast<std::streamsize>(forged.size()));
  const data::FeatureFile file(path, rows);
  int64_t sum = 0;
  size_t values = 0;
  for (int64_t sample = 0; sample < file.size(); ++sample) {
    for (const int64_t row : {0, 1}) {
      values += file.row(sample, row).size();
      for (const int32_t value : file.row(sample, row)) sum += value;
    }
  }
  const uint64_t begins = static_cast<uint64_t>(file.size()) * rows + 1;
  require(values * 4 + begins * 8 + header_bytes == forged.size(), "each value belongs to one row");
  [[maybe_unused]] static volatile int64_t kept;  // makes the compiler keep the reads
  kept = sum;
}

}  // namespace stretto::fuzz
