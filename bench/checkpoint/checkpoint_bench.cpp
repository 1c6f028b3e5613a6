#include <chrono>

#include "stretto/base/error.h"
#include "stretto/base/strings.h"
#include "stretto/checkpoint/load.h"
#include "stretto/checkpoint/writer.h"
#include "stretto/comm/holders.h"
#include "stretto/comm/rank_threads.h"

// checkpoint_bench FOLDER REPEATS "SHAPE SHAPE ..." saves and loads a state of three fp32 tensors of each
// shape (384x384) with one rank, and prints one JSON object per line: seconds until the save is on disk,
// until the load is done, and until an asynchronous save returns. run.py compares them with torch.save and
// torch.load.
namespace stretto {
namespace {

template <class Function>
double seconds(Function&& function) {
  const auto start = std::chrono::steady_clock::now();
  function();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

State make_state(const Group& group, const std::string& shapes) {
  State state;
  int number = 0;
  for (const std::string_view text : split(shapes, ' ')) {
    std::vector<int64_t> shape;
    for (const std::string_view size : split(text, 'x')) {
      const auto value = parse_int(size);
      if (!value || *value < 1) throw ConfigError("\"{}\" is not a shape such as 384x384", text);
      shape.push_back(*value);
    }
    for (const char* kind : {"model", "optimizer.exp_avg", "optimizer.exp_avg_sq"}) {
      state.tensors.push_back(whole_entry(fmt::format("{}.{}", kind, number), shape,
                                          at::randn(shape).view({-1}), comm::holders_of(group)));
    }
    ++number;
  }
  return state;
}

void require_equal(const State& state, const State& loaded) {
  for (size_t i = 0; i < state.tensors.size(); ++i) {
    const Tensor& values = loaded.tensors[i].pieces[0].data;
    if (!values.equal(state.tensors[i].pieces[0].data)) throw Error("a load gave other values");
    values.zero_();
  }
}

void measure(Group& group, const std::filesystem::path& folder, int64_t repeats, const std::string& shapes) {
  const State state = make_state(group, shapes);
  State target = make_state(group, shapes);
  const auto save = [&](checkpoint::Writer& writer, int64_t step) {
    const double taken = seconds([&] { writer.save(state, step); });
    if (const std::string error = writer.finish(); !error.empty()) throw IoError("{}", error);
    return taken;
  };
  checkpoint::Writer direct(group,
                            {.folder = folder / "direct", .background = false, .retention = {.last = 1}});
  for (int64_t step = 1; step <= repeats; ++step) {
    const double saved = save(direct, step);
    const double loaded = seconds([&] {
      checkpoint::load(group, checkpoint_format::checkpoint_path(folder / "direct", step), target);
    });
    require_equal(state, target);
    fmt::print("{{\"save\": {:.6f}, \"load\": {:.6f}}}\n", saved, loaded);
  }
  checkpoint::Writer beside(group, {.folder = folder / "beside", .retention = {.last = 1}});
  for (int64_t step = 1; step <= repeats; ++step) {
    fmt::print("{{\"asynchronous save\": {:.6f}}}\n", save(beside, step));
  }
}

}  // namespace
}  // namespace stretto

int main(int argc, char** argv) {
  try {
    const auto repeats = argc == 4 ? stretto::parse_int(argv[2]) : std::nullopt;
    if (!repeats) throw stretto::ConfigError("usage: checkpoint_bench FOLDER REPEATS \"SHAPE SHAPE ...\"");
    stretto::comm::run_rank_threads(
        1, [&](stretto::Group& group) { stretto::measure(group, argv[1], *repeats, argv[3]); });
    return 0;
  } catch (const stretto::Error& error) {
    fmt::print(stderr, "checkpoint_bench: error: {}\n", error.what());
    return error.exit_code();
  }
}
