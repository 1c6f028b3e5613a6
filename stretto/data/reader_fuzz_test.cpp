#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "stretto/base/error.h"
#include "stretto/data/reader.h"

namespace stretto::data {
namespace {

const std::vector<std::string> kSeeds{
    "sentence\tlabel\ngood film\t1\nbad film\t0\n",
    "\xEF\xBB\xBFindex\tsentence1\tsentence2\tlabel\r\n0\ta\tb\tyes\r\n1\tc\td\tno\r\n",
    "text,label\n\"one, \"\"two\"\"\nthree\",pos\nplain,neg\n",
    "{\"text\": \"a\\u00e9\", \"label\": 1}\n{\"text\": \"b\", \"label\": 0, \"x\": [1, {\"y\": null}]}\n",
};

std::string mutated(std::string text, std::mt19937_64& random) {
  static const std::string kSpecial("\"\t\n\r,\\{}[]:-0.e\0\xEF\xFF", 18);
  const auto below = [&](size_t limit) { return static_cast<size_t>(random() % limit); };
  for (size_t edits = 1 + below(8); edits > 0; --edits) {
    const size_t at = text.empty() ? 0 : below(text.size());
    switch (below(5)) {
      case 0:
        text.insert(at, 1, kSpecial[below(kSpecial.size())]);
        break;
      case 1:
        text.insert(at, 1, static_cast<char>(random()));
        break;
      case 2:
        text.erase(at, 1 + below(6));
        break;
      case 3:
        text.insert(at, text.substr(below(text.size() + 1), below(40)));
        break;
      default:
        text.resize(at);
    }
  }
  return text;
}

std::string random_bytes(std::mt19937_64& random) {
  std::string bytes(random() % 200, '\0');
  for (char& c : bytes) c = static_cast<char>(random());
  return bytes;
}

// Whatever the bytes, a reader returns consistent rows or throws one of stretto's own errors.
TEST(ReaderFuzz, OnlyStrettoErrors) {
  const LabelSet labels({"neg", "pos"});
  std::mt19937_64 random(1);
  const std::vector<std::string> extensions{".tsv", ".csv", ".jsonl"};
  int accepted = 0;
  int refused = 0;
  for (int round = 0; round < 40'000; ++round) {
    const std::string text =
        random() % 8 == 0 ? random_bytes(random) : mutated(kSeeds[random() % kSeeds.size()], random);
    const std::string name = "fuzz" + extensions[random() % extensions.size()];
    ReadOptions options;
    if (random() % 4 == 0) options.columns = {.text = "text", .label = "label"};
    if (random() % 4 == 0) options.labels = &labels;
    options.require_labels = random() % 2 == 0;
    try {
      const Table table = parse_rows(text, name, options);
      ++accepted;
      ASSERT_FALSE(table.rows.empty());
      for (const TextRow& row : table.rows) {
        ASSERT_EQ(row.label >= 0, table.has_labels);
        ASSERT_LT(row.label, std::max<int64_t>(table.labels.size(), 0));
        ASSERT_GT(row.line, 0);
      }
    } catch (const Error&) {
      ++refused;
    }
  }
  EXPECT_GT(accepted, 1000);
  EXPECT_GT(refused, 1000);
}

}  // namespace
}  // namespace stretto::data
