#include "stretto/parallel/matmul_libraries.h"

#include <algorithm>
#include <chrono>
#include <map>
#include <optional>

#include <matmul_kernels.h>  // written by CMake: a hash of their sources

#include <ATen/Parallel.h>
#include <torch/version.h>

#include "stretto/base/enum_names.h"
#include "stretto/base/error.h"
#include "stretto/base/files.h"
#include "stretto/base/hash.h"
#include "stretto/base/log.h"
#include "stretto/base/strings.h"
#include "stretto/cluster/machine/processor.h"
#include "stretto/nn/layers.h"

namespace stretto::parallel {
namespace {

using kernels::all_matmul_libraries;
using kernels::all_matmul_roles;
using kernels::FewRowsChoice;
using kernels::FewRowsKernel;
using kernels::LinearMaps;
using kernels::MatmulChoice;
using kernels::MatmulLibrary;
using kernels::MatmulRole;
using kernels::MeasuredChoice;

constexpr double enough_operations = 1e8;  // of a forward pass: below, the choice makes no difference
constexpr size_t most_shapes = 3;

void collect_maps(const torch::nn::Module& module, std::vector<LinearMaps>& maps) {
  if (const auto* linear = dynamic_cast<const nn::Linear*>(&module)) {
    const bool transposed = linear->transposed;
    const int64_t out = linear->weight.size(transposed ? 1 : 0), in = linear->weight.size(transposed ? 0 : 1);
    const auto same = std::ranges::find_if(maps, [&](const LinearMaps& known) {
      return known.out == out && known.in == in && known.transposed == transposed;
    });
    same == maps.end() ? maps.push_back({out, in, 1, transposed}) : void(++same->count);
  }
  for (const auto& child : module.children()) collect_maps(*child, maps);
}

double operations_of(const LinearMaps& maps, int64_t rows) {
  const kernels::MatmulShape shape = {.rows = rows, .in = maps.in, .out = maps.out};
  return static_cast<double>(maps.count) * shape.operations();
}

double operations_of(const std::vector<LinearMaps>& all, int64_t rows) {
  double operations = 0;
  for (const LinearMaps& maps : all) operations += operations_of(maps, rows);
  return operations;
}

// Returns the maps with the most operations.
std::vector<LinearMaps> largest(std::vector<LinearMaps> maps) {
  std::ranges::stable_sort(maps, std::greater(), [](const LinearMaps& one) { return operations_of(one, 1); });
  maps.resize(std::min(most_shapes, maps.size()));
  return maps;
}

std::string processor_name() {
  static const std::string name = machine::parse_processor(read_file("/proc/cpuinfo")).name();
  return name;
}

nlohmann::json to_json(const MatmulChoice& choice) {
  nlohmann::json json;
  for (const MatmulRole role : all_matmul_roles) json[name_of(role)] = name_of(choice[role]);
  return json;
}

// Everything that the choice depends on.
nlohmann::json cache_key(const std::vector<LinearMaps>& timed, at::ScalarType dtype, int64_t rows,
                         const std::set<std::string>& usable) {
  nlohmann::json key = {{"stretto", STRETTO_VERSION},
                        {"kernels", STRETTO_MATMUL_KERNELS},
                        {"processor", processor_name()},
                        {"torch", TORCH_VERSION},
                        {"threads", at::get_num_threads()},
                        {"dtype", c10::toString(dtype)},
                        {"rows", rows},
                        {"usable", usable}};
  for (const LinearMaps& maps : timed) key["shapes"].push_back({maps.out, maps.in, maps.count});
  return key;
}

std::filesystem::path cache_file(const std::filesystem::path& folder, const nlohmann::json& key) {
  return folder / ("products-" + hash128_hex(key.dump()).substr(0, 16) + ".json");
}

MeasuredChoice measured_choice(const nlohmann::json& stored) {
  MeasuredChoice measured;
  for (const MatmulRole role : all_matmul_roles) {
    measured.choice.of_role[static_cast<size_t>(role)] =
        kernels::parse_library(stored.at("choice").at(name_of(role)));
  }
  measured.speedup = stored.at("speedup");
  return measured;
}

nlohmann::json to_json(const FewRowsChoice& choice) {
  return {{"few_rows", choice.rows}, {"tiles", choice.kernel == FewRowsKernel::tiles}};
}

FewRowsChoice few_rows_choice(const nlohmann::json& stored) {
  return {.rows = stored.at("few_rows"),
          .kernel = stored.at("tiles") ? FewRowsKernel::tiles : FewRowsKernel::vectors};
}

// Returns nullopt, so that the speed is measured, if there is no such file or it cannot be read.
template <class Choice>
std::optional<Choice> read_cache(const std::filesystem::path& folder, const nlohmann::json& key,
                                 Choice (*parse)(const nlohmann::json&)) {
  if (folder.empty()) return std::nullopt;
  try {
    const auto stored = nlohmann::json::parse(read_file(cache_file(folder, key)));
    if (stored.at("key") != key) return std::nullopt;
    return parse(stored);
  } catch (const std::exception&) {
    return std::nullopt;
  }
}

void write_cache(const std::filesystem::path& folder, const nlohmann::json& key, nlohmann::json stored) {
  if (folder.empty()) return;
  try {
    make_folders(folder);
    stored["key"] = key;
    write_file_atomic(cache_file(folder, key), stored.dump(2) + "\n");
  } catch (const Error& error) {
    log::warning("the measured speed of matmuls was not cached, so the next run measures it again: {}",
                 error.what());
  }
}

std::string usable_name(MatmulLibrary library, MatmulRole role) {
  return fmt::format("{} {}", name_of(role), name_of(library));
}

std::set<std::string> usable_here(at::ScalarType dtype) {
  std::set<std::string> usable;
  for (const MatmulLibrary library : all_matmul_libraries) {
    for (const MatmulRole role : all_matmul_roles) {
      if (kernels::is_usable(library, role, dtype)) usable.insert(usable_name(library, role));
    }
  }
  return usable;
}

// Hosts may have different builds of libtorch.
std::set<std::string> usable_everywhere(at::ScalarType dtype, Group* group) {
  std::set<std::string> common = usable_here(dtype);
  if (group == nullptr) return common;
  for (const std::string& text : group->all_gather_bytes(nlohmann::json(common).dump())) {
    const auto theirs = nlohmann::json::parse(text).get<std::set<std::string>>();
    std::erase_if(common, [&](const std::string& name) { return !theirs.contains(name); });
  }
  return common;
}

std::string dtype_name(at::ScalarType dtype) {
  return dtype == at::kBFloat16 ? "bf16" : dtype == at::kDouble ? "fp64" : "fp32";
}

}  // namespace

at::ScalarType matmul_type(Precision precision) {
  if (precision == Precision::fp64) return at::kDouble;
  return precision == Precision::bf16 && nn::cpu_has_bf16() ? at::kBFloat16 : at::kFloat;
}

MatmulLibraries::MatmulLibraries(const torch::nn::Module& module, const MatmulOptions& options, Group& group)
    : MatmulLibraries(module, options, &group) {}

MatmulLibraries::MatmulLibraries(const torch::nn::Module& module, const MatmulOptions& options)
    : MatmulLibraries(module, options, nullptr) {}

MatmulLibraries::MatmulLibraries(const torch::nn::Module& module, const MatmulOptions& options, Group* group)
    : options_(options), usable_(usable_everywhere(options.dtype, group)) {
  if (options_.reference) {
    reason_ = options_.names("reference");
  } else if (options_.requested != Products::automatic) {
    const MatmulLibrary wanted = kernels::parse_library(std::string(name_of(options_.requested)));
    for (const MatmulRole role : all_matmul_roles) {
      if (is_usable(wanted, role)) choice_.of_role[static_cast<size_t>(role)] = wanted;
    }
    const bool is_used = std::ranges::find(choice_.of_role, wanted) != choice_.of_role.end();
    reason_ = is_used ? options_.names("requested")
                      : fmt::format("{} does not support {} matmuls here", name_of(options_.requested),
                                    dtype_name(options_.dtype));
  } else {
    choose_for_all(module, group);
  }
  apply();
}

void MatmulLibraries::choose_for_all(const torch::nn::Module& module, Group* group) {
  std::vector<LinearMaps> maps;
  collect_maps(module, maps);
  const bool is_chosen_type = options_.dtype == at::kFloat || options_.dtype == at::kBFloat16;
  if (!is_chosen_type || operations_of(maps, options_.rows) < enough_operations) {
    reason_ = !is_chosen_type ? "the only library"
              : maps.empty()  ? "no layers of stretto::nn"
                              : "too small to measure";
    return;
  }
  FewRowsChoice few_rows;
  if (group == nullptr || group->rank() == 0) {
    choose_here(largest(maps));
    if (options_.few_rows) few_rows = choose_few_rows(largest(maps).front());
  }
  if (group != nullptr) {
    nlohmann::json local = to_json(few_rows);
    local["choice"] = to_json(choice_);
    local["reason"] = reason_;
    const auto decided = nlohmann::json::parse(group->broadcast_bytes(local.dump(), 0));
    for (const MatmulRole role : all_matmul_roles) {
      choice_.of_role[static_cast<size_t>(role)] =
          kernels::parse_library(decided.at("choice").at(name_of(role)));
    }
    few_rows = few_rows_choice(decided);
    reason_ = decided.at("reason");
  }
  if (!kernels::is_usable(few_rows.kernel, options_.dtype)) few_rows.kernel = FewRowsKernel::vectors;
  if (options_.few_rows) kernels::use_few_rows(options_.dtype, few_rows.rows, few_rows.kernel);
}

// Chooses the libraries from the cache, or by measuring.
void MatmulLibraries::choose_here(const std::vector<LinearMaps>& timed) {
  const auto start = std::chrono::steady_clock::now();
  const nlohmann::json key = cache_key(timed, options_.dtype, options_.rows, usable_);
  auto measured = read_cache(options_.cache, key, measured_choice);
  reason_ = "measured before";
  if (!measured) {
    measured = kernels::choose_by_time(timed, options_.dtype, options_.rows, options_.timer);
    const std::chrono::duration<double, std::milli> took = std::chrono::steady_clock::now() - start;
    reason_ = fmt::format("measured in {:.0f} ms", took.count());
    // A later run on an idle machine may measure without contradictions.
    if (measured->is_certain) {
      write_cache(options_.cache, key,
                  {{"choice", to_json(measured->choice)}, {"speedup", measured->speedup}});
    } else {
      reason_ += " with contradictory results, so not cached";
    }
  }
  choice_ = measured->choice;
  for (const MatmulRole role : all_matmul_roles) {
    auto& library = choice_.of_role[static_cast<size_t>(role)];
    if (!is_usable(library, role)) library = MatmulLibrary::aten;
  }
  if (measured->speedup > 1) reason_ += fmt::format(": {:.2f}x aten", measured->speedup);
}

// The kernel for few rows of `map`, from the cache or by measuring.
FewRowsChoice MatmulLibraries::choose_few_rows(const LinearMaps& map) const {
  const MatmulLibrary library = choice_[MatmulRole::forward];
  nlohmann::json key = cache_key({map}, options_.dtype, kernels::most_few_rows, usable_);
  key["few_rows"] = {{"instead_of", name_of(library)}, {"transposed", map.transposed}};
  if (const auto known = read_cache(options_.cache, key, few_rows_choice)) return *known;
  const FewRowsChoice choice =
      kernels::most_rows_for_kernel(map, options_.dtype, library, options_.few_rows_timer);
  if (choice.is_certain) write_cache(options_.cache, key, to_json(choice));
  return choice;
}

bool MatmulLibraries::is_usable(MatmulLibrary library, MatmulRole role) const {
  return usable_.contains(usable_name(library, role));
}

std::string MatmulLibraries::describe() const {
  return fmt::format("{} ({}, {})", kernels::to_text(choice_), dtype_name(options_.dtype), reason_);
}

void MatmulLibraries::add_state(State& state) const {
  nlohmann::json products = to_json(choice_);
  products["dtype"] = dtype_name(options_.dtype);
  products["processor"] = processor_name();
  state.scalars["products"] = products;
}

void MatmulLibraries::resume(const State& state) {
  constexpr const char* consequence = "losses may differ from those of the run that is resumed, by rounding";
  if (!state.scalars.contains("products")) {
    if (choice_ == MatmulChoice()) return;
    log::info(
        "the checkpoint does not record which libraries computed its matmuls; they are now computed by {}: {}",
        kernels::to_text(choice_), consequence);
    return;
  }
  const nlohmann::json& saved = state.scalars.at("products");
  if (const std::string then = saved.at("processor"); then != processor_name())
    log::info("the checkpoint is of another processor, {}, and this is {}: {}", then, processor_name(),
              consequence);
  const MatmulChoice own = choice_;
  const bool is_free = options_.requested == Products::automatic && !options_.reference;
  const bool differs = saved.at("dtype") != dtype_name(options_.dtype);
  for (const MatmulRole role : all_matmul_roles) {
    const std::string library = saved.at(name_of(role));
    const auto same = std::ranges::find_if(all_matmul_libraries, [&](MatmulLibrary one) {
      return library == name_of(one) && is_usable(one, role);
    });
    if (is_free && !differs && same != all_matmul_libraries.end()) {
      choice_.of_role[static_cast<size_t>(role)] = *same;
    } else if (library != name_of(choice_[role])) {
      log::info("{} matmuls were computed by {} and are now computed by {}, because {}: {}", name_of(role),
                library, name_of(choice_[role]),
                differs   ? fmt::format("they are {} here", dtype_name(options_.dtype))
                : is_free ? fmt::format("this libtorch has no {} here", library)
                          : fmt::format("{} requests it", options_.names("requested")),
                consequence);
    }
  }
  if (choice_ != own || is_free) reason_ = "as in the run that is resumed";
  apply();
}

}  // namespace stretto::parallel
