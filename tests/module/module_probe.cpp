// A user's program with `using namespace stretto` and its own helpers.
//
//   module_probe callback OUTPUT                          a callback throws on rank 1 only
//   module_probe dropout OUTPUT MASKS [CHECKPOINT]        a Module with torch::nn::Dropout; each rank appends
//                                                         the masks of its steps to MASKS.<rank>, a line per
//                                                         step; CHECKPOINT is resumed
//   module_probe numbers OUTPUT                           ranks that divide layers in pairs compare the
//   random
//                                                         numbers that they draw
#include <fstream>

#include <torch/nn/modules/dropout.h>

#include "stretto/comm/job.h"
#include "stretto/stretto.h"

// Helpers with names that stretto uses internally (base/strings.h): with `using namespace stretto`, calls
// would be ambiguous if the public headers declared them, too.
std::vector<std::string_view> split(std::string_view text, char) { return {text}; }
std::string_view trim(std::string_view text) { return text; }
std::string counted(int64_t, std::string_view noun) { return std::string(noun); }
std::string human_bytes(double) { return "many"; }
std::optional<long long> parse_int(std::string_view) { return 7; }
std::optional<double> parse_double(std::string_view) { return 0.5; }

using namespace stretto;

namespace {

void check_own_helpers() {
  const bool own = split(trim(" a b "), ' ').size() == 1 &&
                   counted(2, "rank") + human_bytes(1) == "rankmany" && parse_int("1") == 7 &&
                   parse_double("1") == 0.5;
  if (!own) throw Error("stretto's helpers were called");
}

class Ones : public data::SampleDataset {
 public:
  Ones(int64_t size, int64_t width) : SampleDataset(size), width_(width) {}
  data::Sample sample(int64_t) const override { return {{"x", at::ones({width_})}}; }

 private:
  int64_t width_;
};

struct Net : torch::nn::Module {
  explicit Net(int64_t width) : dropout(register_module("dropout", torch::nn::Dropout(0.5))) {
    layer = register_module("layer", std::make_shared<nn::Linear>(width, 1));
    at::NoGradGuard no_grad;
    for (Tensor& parameter : parameters()) parameter.fill_(0.5);
  }
  torch::nn::Dropout dropout;
  std::shared_ptr<nn::Linear> layer;
};

struct Sum : Module {
  Loss training_step(const Batch& batch, StepContext&) override {
    return {net->layer->forward(batch.at("x")).square().sum(), static_cast<double>(batch.count)};
  }
  std::shared_ptr<Net> net = model(std::make_shared<Net>(2));
};

struct Faulty : Callback {
  std::string name() const override { return "faulty"; }
  void step_end(FitContext& fit, const StepReport& report) override {
    if (fit.mesh.world().rank() == 1 && report.step == 3) throw std::runtime_error("the disk is on fire");
  }
};

struct Dropping : Module {
  explicit Dropping(const std::string& path) : net(model(std::make_shared<Net>(40))), masks(path) {}
  Loss training_step(const Batch& batch, StepContext& context) override {
    const Tensor x = net->dropout->forward(batch.at("x"));
    masks << context.step + 1 << ' ';
    for (const auto& element : std::span(x.const_data_ptr<float>(), 40)) masks << (element > 0);
    masks << "\n" << std::flush;
    return {net->layer->forward(x).square().sum(), static_cast<double>(batch.count)};
  }
  std::shared_ptr<Net> net;
  std::ofstream masks;
};

// torch's random numbers must be equal on the ranks of a layer, and differ between ranks with other samples.
struct Drawing : Module {
  struct Net : torch::nn::Module {
    explicit Net(const nn::TensorParallel& ranks)
        : up(register_module("up", std::make_shared<nn::ColumnLinear>(2, 2, ranks))),
          down(register_module("down", std::make_shared<nn::RowLinear>(2, 1, ranks))) {}
    std::shared_ptr<nn::ColumnLinear> up;
    std::shared_ptr<nn::RowLinear> down;
  };
  explicit Drawing(const nn::TensorParallel& ranks) : net(model(std::make_shared<Net>(ranks))) {
    parameters_from(nn::initial_values(*net, 1));
  }
  Loss training_step(const Batch& batch, StepContext& context) override {
    const Tensor drawn = at::rand({1});
    const auto equal_along = [&](const AxisRanks& ranks) {
      return ranks.all_gather(drawn).eq(drawn).sum().item<int64_t>();
    };
    const int64_t of_layer = equal_along(context.tensor_parallel()),
                  of_data = equal_along(context.data_parallel());
    const int layer = context.tensor_parallel().size();
    if (of_layer != layer || of_data != 1)
      throw Error("{} of {} ranks of a layer and {} with other samples drew this number", of_layer, layer,
                  of_data);
    return {net->down->forward(net->up->forward(batch.at("x"))).square().sum(),
            static_cast<double>(batch.count)};
  }
  std::shared_ptr<Net> net;
};

void throw_in_a_callback(const comm::Job& job, Recipe recipe) {
  recipe.training.global_batch_size = 10;
  Sum module;
  const Mesh mesh = make_mesh(recipe, *job.group);
  Trainer trainer(recipe, mesh, job.device);
  trainer.add(std::make_shared<Faulty>());
  trainer.fit(module, Ones(1000, 2), nullptr);
}

void drop(const comm::Job& job, Recipe recipe, const std::string& masks) {
  recipe.training.global_batch_size = 4;
  recipe.training.max_steps = 8;
  recipe.checkpoint.every = "4";
  Dropping module(masks + "." + std::to_string(job.group->rank()));
  const Mesh mesh = make_mesh(recipe, *job.group);
  Trainer(recipe, mesh, job.device).fit(module, Ones(40, 40), nullptr);
}

// The second run continues the first on another mesh.
void draw(const comm::Job& job, Recipe recipe) {
  recipe.training.global_batch_size = 4;
  recipe.training.max_steps = 4;
  recipe.training.steps_this_run = 2;
  for (const int tp : {1, 2}) {
    recipe.training.mesh.tp = tp;
    const Mesh mesh = make_mesh(recipe, *job.group);
    const auto ranks = nn::TensorParallel::of(mesh.tensor_parallel());
    const bool is_first = ranks.position() == 0;
    if (tp == 2 && (ranks.first(3) != (is_first ? 0 : 2) || ranks.count(3) != (is_first ? 2 : 1)))
      throw Error("3 units are not divided into 2 and 1");
    Drawing module(ranks);
    const FitResult result = Trainer(recipe, mesh, job.device).fit(module, Ones(40, 2), nullptr);
    if (result.resumed_after != (tp == 1 ? 0 : 2)) throw Error("tp {} began anew", tp);
  }
}

}  // namespace

int main(int argc, char** arguments) {
  const comm::Job job = comm::join_job("cpu", "device");
  try {
    check_own_helpers();
    Recipe recipe;
    recipe.output = arguments[2];
    if (std::string_view(arguments[1]) == "callback") {
      throw_in_a_callback(job, recipe);
    } else if (std::string_view(arguments[1]) == "numbers") {
      draw(job, recipe);
    } else {
      if (argc > 4) recipe.resume = arguments[4];
      drop(job, recipe, arguments[3]);
    }
    return 0;
  } catch (const Error& error) {
    log::error("{}", error.what());
    return error.exit_code();
  }
}
