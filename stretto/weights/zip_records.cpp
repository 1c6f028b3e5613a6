#include "stretto/weights/zip_records.h"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>

#include "stretto/base/error.h"
#include "stretto/base/utf8.h"

namespace stretto::weights {
namespace {

static_assert(std::endian::native == std::endian::little);

constexpr uint64_t end_bytes = 22, end64_bytes = 56, locator_bytes = 20, entry_bytes = 46, local_bytes = 30;
constexpr uint64_t longest_comment = 0xFFFF;
constexpr uint32_t in_zip64 = 0xFFFFFFFF;  // a value that is in the entry's extra field
constexpr uint16_t zip64_extra = 1;

class Zip {
 public:
  Zip(std::string_view content, const std::string& name) : content_(content), name_(name) {}

  std::map<std::string, std::string_view> records() const {
    const uint64_t end = find_end();
    uint64_t entries = number<uint16_t>(end + 10), at = number<uint32_t>(end + 16);
    if (end >= locator_bytes && has_signature(end - locator_bytes, "PK\6\7")) {
      const uint64_t end64 = number<uint64_t>(end - locator_bytes + 8);
      require(has_signature(end64, "PK\6\6") && fits(end64, end64_bytes));
      entries = number<uint64_t>(end64 + 32);
      at = number<uint64_t>(end64 + 48);
    }
    require(entries <= content_.size() / entry_bytes);
    std::map<std::string, std::string_view> records;
    for (uint64_t i = 0; i < entries; ++i) {
      const auto [name, data] = take_entry(at);
      records.emplace(name, data);
    }
    return records;
  }

 private:
  struct Entry {
    std::string_view name, data;  // the name within the archive's folder
  };

  void require(bool holds) const {
    if (!holds) throw DataError("{}: the file was cut short or is damaged; copy it again", name_);
  }

  bool fits(uint64_t at, uint64_t bytes) const {
    return at <= content_.size() && bytes <= content_.size() - at;
  }

  std::string_view bytes(uint64_t at, uint64_t count) const {
    require(fits(at, count));
    return content_.substr(at, count);
  }

  template <class T>
  T number(uint64_t at) const {
    T value{};
    std::memcpy(&value, bytes(at, sizeof value).data(), sizeof value);
    return value;
  }

  bool has_signature(uint64_t at, std::string_view signature) const {
    return fits(at, 4) && content_.substr(at, 4) == signature;
  }

  // The position of the record at the archive's end, which only a comment follows.
  uint64_t find_end() const {
    require(content_.size() >= end_bytes);
    const uint64_t last = content_.size() - end_bytes;
    const size_t end = content_.rfind("PK\5\6", last);
    require(end != std::string_view::npos && last - end <= longest_comment);
    return end;
  }

  // The entry of the directory at `at`, which is advanced past it.
  Entry take_entry(uint64_t& at) const {
    require(has_signature(at, "PK\1\2") && fits(at, entry_bytes));
    const auto method = number<uint16_t>(at + 10), name_bytes = number<uint16_t>(at + 28),
               extra_bytes = number<uint16_t>(at + 30), comment_bytes = number<uint16_t>(at + 32);
    uint64_t stored = number<uint32_t>(at + 20), size = number<uint32_t>(at + 24),
             local = number<uint32_t>(at + 42);
    std::string_view name = bytes(at + entry_bytes, name_bytes);
    const size_t slash = name.find('/');
    name.remove_prefix(slash == std::string_view::npos ? 0 : slash + 1);
    require(is_utf8(name));
    std::string_view wide = zip64_values(bytes(at + entry_bytes + name_bytes, extra_bytes));
    for (uint64_t* value : {&size, &stored, &local}) {
      if (*value != in_zip64) continue;
      require(wide.size() >= sizeof *value);
      std::memcpy(value, wide.data(), sizeof *value);
      wide.remove_prefix(sizeof *value);
    }
    if (method != 0 || stored != size)
      throw DataError("{}: the record \"{}\" is compressed, which torch.save does not do", name_, name);
    require(has_signature(local, "PK\3\4") && fits(local, local_bytes));
    const uint64_t data = local + local_bytes + number<uint16_t>(local + 26) + number<uint16_t>(local + 28);
    if (!fits(data, size)) {
      throw DataError("{}: the record \"{}\" claims {} bytes, more than the file has; it is damaged", name_,
                      name, size);
    }
    at += entry_bytes + name_bytes + extra_bytes + comment_bytes;
    return {name, content_.substr(data, size)};
  }

  // The values of 64 bits among an entry's extra fields.
  std::string_view zip64_values(std::string_view extra) const {
    while (extra.size() >= 4) {
      uint16_t id = 0, size = 0;
      std::memcpy(&id, extra.data(), sizeof id);
      std::memcpy(&size, extra.data() + 2, sizeof size);
      require(size <= extra.size() - 4);
      if (id == zip64_extra) return extra.substr(4, size);
      extra.remove_prefix(4 + size);
    }
    return {};
  }

  std::string_view content_;
  const std::string& name_;
};

}  // namespace

std::map<std::string, std::string_view> zip_records(std::string_view content, const std::string& name) {
  return Zip(content, name).records();
}

}  // namespace stretto::weights
