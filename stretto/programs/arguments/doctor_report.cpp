#include "stretto/programs/arguments/doctor_report.h"

#include "stretto/base/error.h"
#include "stretto/base/files.h"
#include "stretto/base/json.h"

namespace stretto::arguments {

void require_place_for_report(const std::filesystem::path& file) {
  const std::filesystem::path folder = std::filesystem::absolute(file).parent_path();
  if (!std::filesystem::is_directory(folder))
    throw ConfigError("doctor: --report {}: there is no folder {}", file.string(), folder.string());
  if (!std::filesystem::exists(file)) return;
  try {
    read_doctor_report(file);
  } catch (const Error&) {
    throw ConfigError("doctor: --report {}: this file is no report of stretto doctor; give another name",
                      file.string());
  }
}

void write_doctor_report(const DoctorReport& report, const std::filesystem::path& file) {
  const nlohmann::ordered_json json = {{"cores", report.cores},
                                       {"ranks", report.ranks},
                                       {"memory_bytes", report.memory},
                                       {"fp32_gflops", report.fp32_gflops},
                                       {"bf16_gflops", report.bf16_gflops},
                                       {"copy_gb_per_s", report.copy_gb_per_s}};
  write_file_atomic(file, json.dump(2) + "\n");
}

DoctorReport read_doctor_report(const std::filesystem::path& file) {
  nlohmann::json json;
  try {
    json = read_json(file);
  } catch (const DataError& error) {
    throw DataError("{}; expected the figures of `stretto doctor --report FILE` on a host of the job",
                    error.what());
  }
  const auto number = [&](const char* key, double least) {
    const auto value = number_in(json, key);
    if (value && *value >= least) return *value;
    throw DataError(
        "{}: it has no {}; expected the figures of `stretto doctor --report {}` on a host of the job",
        file.string(), key, file.filename().string());
  };
  return {.cores = static_cast<int>(number("cores", 1)),
          .ranks = static_cast<int>(number("ranks", 1)),
          .memory = number("memory_bytes", 1),
          .fp32_gflops = number("fp32_gflops", 0.001),
          .bf16_gflops = number("bf16_gflops", 0),
          .copy_gb_per_s = number("copy_gb_per_s", 0.001)};
}

}  // namespace stretto::arguments
