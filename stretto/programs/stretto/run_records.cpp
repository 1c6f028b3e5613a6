#include "stretto/programs/stretto/run_records.h"

#include "stretto/base/files.h"
#include "stretto/base/json.h"
#include "stretto/base/strings.h"

namespace stretto::cli {

using Record = nlohmann::ordered_json;

std::vector<Record> read_records(const std::filesystem::path& file) {
  std::vector<Record> records;
  const std::string text = read_file(file);
  for (const std::string_view line : split(text, '\n'))
    if (!trim(line).empty()) records.emplace_back(parse_json(line, file.string()));
  return records;
}

bool is_training_record(const Record& record) {
  return record.contains("loss") && record["loss"].is_number() && !record.contains("eval_loss");
}

void MeanLoss::add(const Record& record) {
  const double step = record.value("step", 0.0);
  mean_.add(record["loss"], step - last_step_);
  last_step_ = step;
}

}  // namespace stretto::cli
