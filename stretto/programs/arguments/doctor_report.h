#pragma once

#include <filesystem>

#include <CLI/CLI.hpp>

namespace stretto::arguments {

// What `stretto doctor` has measured, for plans of jobs on such hosts. Rates are those of the slowest rank
// while all ranks work; 0: not measured.
struct DoctorReport {
  int cores = 0, ranks = 0;
  double memory = 0;  // bytes that are available
  double fp32_gflops = 0, bf16_gflops = 0, copy_gb_per_s = 0;
};

// --report FILE, of `stretto doctor` and of its ranks.
inline void add_report_option(CLI::App& verb, std::filesystem::path& file) {
  verb.add_option("--report", file, "Also write the figures to a file, as JSON, for `stretto plan --rates`")
      ->type_name("FILE");
}

// Throws ConfigError if the file cannot be written, or is another file that would be lost.
void require_place_for_report(const std::filesystem::path& file);

// Throws IoError.
void write_doctor_report(const DoctorReport& report, const std::filesystem::path& file);

// Throws DataError for a file that write_doctor_report did not write, IoError.
DoctorReport read_doctor_report(const std::filesystem::path& file);

}  // namespace stretto::arguments
