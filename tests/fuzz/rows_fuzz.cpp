#include <algorithm>

#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/mutate.h"

#include "stretto/data/reader.h"

// Input: a file for text classification (TSV, CSV or JSON Lines). The first byte selects the format and the
// options.
namespace stretto::fuzz {

std::vector<std::string> seeds() {
  return {
      std::string(1, '\0') + "sentence\tlabel\ngood film\t1\nbad film\t0\n",
      std::string(1, '\x03') +
          "\xEF\xBB\xBFindex\tsentence1\tsentence2\tlabel\r\n0\ta\tb\tyes\r\n1\tc\td\tno\r\n",
      std::string(1, '\x01') + "text,label\n\"one, \"\"two\"\"\nthree\",pos\nplain,neg\n",
      std::string(1, '\x02') +
          "{\"text\": \"a\\u00e9\", \"label\": 1}\n{\"text\": \"b\", \"label\": 0, \"x\": [1, {\"y\": null}]}\n"};
}

// Redraws the first byte, since mutations rarely change it. Each option is set in a quarter of the inputs.
std::string mutate_fields(const std::string& input, std::mt19937_64& random) {
  const std::string content = input.empty() ? "" : input.substr(1);
  const auto choice = static_cast<char>((random() & random() & 0x70) + random() % 3);
  return choice + mutate(content, content, content.size() + 64, random);
}

void run(const std::string& input) {
  if (input.empty()) return;
  const auto choice = static_cast<unsigned char>(input[0]);
  constexpr const char* names[] = {"a.tsv", "a.csv", "a.jsonl"};
  static const data::LabelSet labels({"neg", "pos"});
  data::ReadOptions options;
  if ((choice & 16) != 0) options.columns = {.text = "text", .label = "label"};
  if ((choice & 32) != 0) options.labels = &labels;
  options.require_labels = (choice & 64) != 0;
  const data::Table table =
      data::parse_rows(std::string_view(input).substr(1), names[(choice & 15) % 3], options);
  require(!table.rows.empty(), "a table has rows");
  for (const data::TextRow& row : table.rows) {
    require((row.label >= 0) == table.has_labels, "each row has a label, or none has");
    require(row.label < std::max<int64_t>(table.labels.size(), 0), "a label is one of the set");
    require(row.line > 0, "lines are counted from 1");
  }
}

}  // namespace stretto::fuzz
