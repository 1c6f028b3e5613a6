#include "stretto/programs/stretto/flair_results.h"

#include <cmath>
#include <map>

#include "stretto/base/clock.h"
#include "stretto/base/files.h"
#include "stretto/base/strings.h"
#include "stretto/corpus/tags.h"
#include "stretto/programs/stretto/run_records.h"

namespace stretto::cli {
namespace {

using Record = nlohmann::ordered_json;
const std::string rule(100, '-');

// The times of the begin, the steps and the evaluations of epochs in the run's log, as "2026-11-23
// 08:01:21,505".
struct LoggedTimes {
  std::string begin = {};
  std::map<int64_t, std::string> steps = {}, epochs = {};  // by number
};

LoggedTimes read_times(const std::filesystem::path& log) {
  constexpr size_t time_length = 23;  // of "2026-11-23 08:01:21.505"
  LoggedTimes times;
  if (!std::filesystem::exists(log)) return times;
  const std::string text = read_file(log);
  for (const std::string_view line : split(text, '\n')) {
    if (line.size() < time_length + 2) continue;
    std::string time(line.substr(0, time_length));
    time[time_length - 4] = ',';
    const auto words = split(line.substr(time_length + 1), ' ');
    if (words[0] == "run" && times.begin.empty()) times.begin = time;
    if (words.size() < 2) continue;
    const auto number = parse_int(words[1].substr(0, words[1].find('/')));
    if (number && words[0] == "step") times.steps[*number] = time;
    if (number && words[0] == "epoch") times.epochs[*number] = time;
  }
  return times;
}

std::string time_of(const std::map<int64_t, std::string>& times, int64_t number) {
  const auto found = times.find(number);
  if (found != times.end()) return found->second;
  return local_time(seconds_since_1970()) + ",000";
}

// Seconds between two such local times, which are at most a day apart.
double seconds_between(const std::string& begin, const std::string& end) {
  const auto seconds = [](const std::string& time) {
    const auto number = [&](size_t at, size_t digits) {
      return static_cast<double>(parse_int(time.substr(std::min(at, time.size()), digits)).value_or(0));
    };
    return number(11, 2) * 3600 + number(14, 2) * 60 + number(17, 2) + number(20, 3) / 1000;
  };
  constexpr double day = 86400;
  return std::fmod(seconds(end) - seconds(begin) + day, day);
}

// Builds the files from the records of a run.
class TrainingFiles {
 public:
  explicit TrainingFiles(LoggedTimes times, int64_t steps_per_epoch)
      : times_(std::move(times)), steps_per_epoch_(steps_per_epoch), begin_(times_.begin) {}

  void add_steps(const Record& record) {
    loss_.add(record);
    const int64_t step = record.at("step"), done = step - (epoch_ - 1) * steps_per_epoch_;
    rate_ = record.value("lr", rate_);
    // The log of a run on a terminal has no lines for steps.
    const bool logged = times_.steps.contains(step);
    const std::string time = logged ? times_.steps.at(step) : time_of(times_.epochs, epoch_);
    if (begin_.empty()) begin_ = time;
    log(time,
        fmt::format(
            "epoch {} - iter {}/{} - loss {:.8f} - time (sec): {:.2f} - samples/sec: {:.2f} - lr: {:.6f} - momentum: 0.000000",
            epoch_, done, steps_per_epoch_, loss_.value(), seconds_between(begin_, time),
            record.value("samples_per_second", 0.0), rate_));
  }

  void end_epoch(const Record& record) {
    const auto value = [&](const char* name) { return record.value(std::string("eval_") + name, 0.0); };
    const bool improved = !best_ || value("f1") > *best_;
    bad_epochs_ = improved ? 0 : bad_epochs_ + 1;
    if (improved) best_ = value("f1");
    const std::string time = time_of(times_.epochs, epoch_);
    rows += fmt::format("{}\t{}\t{}\t{:.6f}\t{:.4f}\t{:.4f}\t{:.4f}\t{:.4f}\t{:.4f}\t{:.4f}\n", epoch_,
                        time.substr(11, 8), bad_epochs_, rate_, loss_.value(), value("loss"),
                        value("precision"), value("recall"), value("f1"), value("accuracy"));
    log(time, rule);
    log(time, fmt::format("EPOCH {} done: loss {:.4f} - lr: {:.6f}", epoch_, loss_.value(), rate_));
    log(time, fmt::format("DEV : loss {} - f1-score (micro avg)  {:.4f}", value("loss"), value("f1")));
    log(time, fmt::format(" - {} epochs without improvement", bad_epochs_));
    if (improved) log(time, "saving best model");
    log(time, rule);
    loss_.restart();
    begin_ = time;
    ++epoch_;
  }

  std::string rows =
      "EPOCH\tTIMESTAMP\tBAD_EPOCHS\tLEARNING_RATE\tTRAIN_LOSS\tDEV_LOSS\tDEV_PRECISION\tDEV_RECALL\tDEV_F1\tDEV_ACCURACY\n";
  std::string lines;

 private:
  void log(const std::string& time, const std::string& line) { lines += time + " " + line + "\n"; }

  LoggedTimes times_;
  int64_t steps_per_epoch_;
  std::string begin_;  // of the epoch
  MeanLoss loss_;
  int64_t epoch_ = 1, bad_epochs_ = 0;
  double rate_ = 0;
  std::optional<double> best_;
};

}  // namespace

void FlairResults::write_training() const {
  const std::vector<Record> records = read_records(run_ / "metrics.jsonl");
  const double epochs = records.empty() ? 0 : records.back().value("epoch", 0.0);
  const double steps = records.empty() ? 0 : records.back().value("step", 0.0);
  TrainingFiles files(read_times(run_ / "logger_logs/training_0.log"),
                      epochs > 0 ? std::llround(steps / epochs) : 0);
  for (const Record& record : records) {
    if (is_training_record(record)) files.add_steps(record);
    if (record.contains("eval_f1")) files.end_epoch(record);
  }
  write_file_atomic(output_ / "loss.tsv", files.rows);
  write_file_atomic(output_ / "training.log", files.lines);
}

void FlairResults::log_test(const nlohmann::json& results) const {
  const auto row = [&](const std::string& name, const char* f1, const char* support) {
    const auto& scores = results.at(name);
    const auto number = [&](const char* score) { return scores.at(score).get<double>(); };
    return fmt::format("{:>14}{:>12.4f}{:>10.4f}{:>10.4f}{:>10}\n", name, number("precision"),
                       number("recall"), number(f1), scores.at(support).get<int64_t>());
  };
  std::string types, averages;
  for (const auto& [name, scores] : results.items())
    if (scores.is_object() && !name.ends_with(" avg")) types += row(name, "f1", "number");
  for (const char* name : {"micro avg", "macro avg", "weighted avg"})
    averages += row(name, "f1-score", "support");
  const std::string text = fmt::format(
      "{} \nResults:\n- F-score (micro) {:.4f}\n- F-score (macro) {:.4f}\n- Accuracy {:.4f}\n\nBy class:\n{:>26}{:>10}{:>10}{:>10}\n\n{}\n{}\n",
      time_of({}, 0), results.at("overall_f1").get<double>(),
      results.at("macro avg").at("f1-score").get<double>(), results.at("overall_accuracy").get<double>(),
      "precision", "recall", "f1-score", "support", types, averages);
  const std::filesystem::path file = output_ / "training.log";
  write_file_atomic(file, (std::filesystem::exists(file) ? read_file(file) : "") + text);
}

void FlairResults::write_predictions(const std::string& stage) const {
  std::string lines;
  const auto in_bio = [](const Record& tags) {
    const auto names = tags.get<std::vector<std::string>>();
    return corpus::write_tags(corpus::lenient_spans(names), names.size(), corpus::TagScheme::iob2);
  };
  for (const Record& record : read_records(run_ / "predictions.jsonl")) {
    const auto predicted = in_bio(record.at("tags"));
    const auto gold = record.contains("gold") ? in_bio(record["gold"]) : predicted;
    size_t i = 0;
    for (const Record& token : record.at("tokens")) {
      lines += fmt::format("{} {} {}\n", token.get<std::string>(), gold[i], predicted[i]);
      ++i;
    }
    lines += '\n';
  }
  write_file_atomic(output_ / (stage == "eval" ? "dev.tsv" : "test.tsv"), lines);
}

}  // namespace stretto::cli
