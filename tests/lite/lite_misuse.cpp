#include <csignal>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <map>

#include "zoo.h"

#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/dropout.h>

#include "stretto/base/error.h"
#include "stretto/base/log.h"
#include "stretto/base/strings.h"

// Programs that use Lite incorrectly; each must end with an error message.
//
//   lite_misuse CASE RANKS
namespace stretto {
namespace {

using Case = std::function<void(Lite& lite)>;

auto linear() { return std::make_shared<torch::nn::LinearImpl>(2, 2); }
std::vector<Tensor> ones(int64_t batches) {
  return std::vector<Tensor>(static_cast<size_t>(batches), at::ones({4, 2}));
}

void setup_twice(Lite& lite) {
  auto model = linear();
  lite.setup(model, optim::sgd({}));
  lite.setup(model, optim::sgd({}));
}

void backward_first(Lite& lite) {
  auto model = linear();
  lite.backward(model->forward(at::ones({4, 2})).mean());
}

void own_backward(Lite& lite) {
  auto [model, optimizer] = lite.setup(linear(), optim::sgd({}));
  model->forward(at::ones({4, 2})).mean().backward();
}

void step_first(Lite& lite) {
  auto [model, optimizer] = lite.setup(linear(), optim::sgd({}));
  optimizer.step();
}

void step_unsynchronised(Lite& lite) {
  auto [model, optimizer] = lite.setup(linear(), optim::sgd({}));
  const auto guard = lite.no_backward_sync();
  lite.backward(model->forward(at::ones({4, 2})).mean());
  optimizer.step();
}

void parameter_replaced(Lite& lite) {
  auto [model, optimizer] = lite.setup(linear(), optim::sgd({}));
  model->to(at::kDouble);
  lite.backward(model->forward(at::ones({4, 2}, at::kDouble)).mean());
}

void parameter_added(Lite& lite) {
  torch::nn::Sequential net{torch::nn::Linear(2, 2)};
  auto [model, optimizer] = lite.setup(net, optim::sgd({}));
  model->push_back(torch::nn::Linear(2, 2));
  lite.backward(model->forward(at::ones({4, 2})).mean());
}

void gradient_replaced(Lite& lite) {
  auto [model, optimizer] = lite.setup(linear(), optim::sgd({}));
  model->weight.mutable_grad() = at::zeros({2, 2});
  lite.backward(model->forward(at::ones({4, 2})).mean());
}

void two_devices(Lite& lite) {
  auto model = linear();
  model->bias = model->register_parameter("shift", at::zeros({2}, at::device(at::kMeta)));
  lite.setup(model, optim::sgd({}));
}

void wrong_type(Lite& lite) {
  auto model = linear();
  model->to(at::kDouble);
  lite.setup(model, optim::sgd({}));
}

void complex_parameter(Lite& lite) {
  auto model = linear();
  model->register_parameter("phase", at::zeros({2}, at::kComplexFloat));
  lite.setup(model, optim::sgd({}));
}

void foreign_optimizer(Lite& lite) {
  auto model = linear();
  lite.setup(model, torch::optim::SGD(linear()->parameters(), 0.1));
}

void two_own_optimizers(Lite& lite) { lite.setup(linear(), optim::sgd({}), optim::adamw({})); }

void mixed_losses(Lite& lite) {
  auto [model, optimizer] = lite.setup(linear(), optim::sgd({}));
  const auto guard = lite.no_backward_sync();
  lite.backward(model->forward(at::ones({4, 2})).mean());
  lite.backward(Loss{model->forward(at::ones({4, 2})).sum(), 4});
}

void loss_of_many(Lite& lite) {
  auto [model, optimizer] = lite.setup(linear(), optim::sgd({}));
  lite.backward(model->forward(at::ones({4, 2})));
}

void nonfinite(Lite& lite) {
  auto [model, optimizer] = lite.setup(linear(), optim::sgd({}));
  lite.backward((model->forward(at::ones({4, 2})) * INFINITY).mean());
  lite.clip_gradients(model, {.max_norm = 1});
}

void malformed_data(Lite&) { throw DataError("data.csv:3: no label"); }

// The first line breaks the pipe; the program must complete nevertheless.
void logs_into_a_closed_pipe(Lite& lite) {
  for (int i = 0; i < 100; ++i) log::info("line {}", i);
  log::flush();
  std::ofstream(std::getenv("LITE_RESULT")) << "rank " << lite.global_rank() << " lives\n";
}

void loaders_of_different_lengths(Lite& lite) {
  auto [model, optimizer] = lite.setup(linear(), optim::sgd({}));
  auto batches = ones(5 - lite.global_rank());
  for (auto& batch : lite.setup(batches)) {
    optimizer.zero_grad();
    lite.backward(model->forward(batch).mean());
    optimizer.step();
  }
}

void batches_of_different_data(Lite& lite) {
  auto [model, optimizer] = lite.setup(linear(), optim::sgd({}));
  std::vector<Tensor> batches = {at::rand({4, 2})};  // constructed after setup, so they differ between ranks
  for (auto& batch : lite.setup(batches)) lite.backward(model->forward(batch).mean());
}

void parts_of_different_sizes(Lite& lite) {
  std::vector<std::pair<Tensor, Tensor>> batches = {{at::ones({4, 2}), at::ones({3})}};
  for (auto& batch : lite.setup(batches)) lite.to_device(batch);
}

void a_branch_of_one_rank(Lite& lite) {
  auto [model, optimizer] = lite.setup(linear(), optim::sgd({}));
  if (lite.is_global_zero()) lite.all_reduce(1.0);
  lite.backward(model->forward(at::ones({4, 2})).mean());
}

void one_rank_leaves(Lite& lite) {
  auto [model, optimizer] = lite.setup(linear(), optim::sgd({}));
  if (lite.global_rank() == 1) return;
  lite.backward(model->forward(at::ones({4, 2})).mean());
}

void one_rank_throws(Lite& lite) {
  auto [model, optimizer] = lite.setup(linear(), optim::sgd({}));
  auto batches = ones(5);
  for (auto& batch : lite.setup(batches)) {
    optimizer.zero_grad();
    if (lite.global_rank() == 1) throw std::runtime_error("the file of rank 1 is gone");
    lite.backward(model->forward(batch).mean());
    optimizer.step();
  }
}

void one_rank_is_killed(Lite& lite) {
  auto [model, optimizer] = lite.setup(linear(), optim::sgd({}));
  if (lite.global_rank() == 1) std::raise(SIGKILL);
  lite.backward(model->forward(at::ones({4, 2})).mean());
}

void no_autocast(Lite& lite) {
  auto [model, optimizer] = lite.setup(linear(), optim::sgd({}));
  lite.backward(model->forward(at::ones({4, 2})).mean());
}

void lbfgs_saved(Lite& lite) {
  auto model = linear();
  lite.setup(model, torch::optim::LBFGS(model->parameters()));
  lite.save("checkpoints", {.step = 1});
}

void two_lites(Lite&) { Lite another({.devices = 1}); }

void a_backward_left_out(Lite& lite) {
  auto [model, optimizer] = lite.setup(linear(), optim::sgd({}));
  auto batches = ones(5);
  int64_t batch_number = 0;
  for (auto& batch : lite.setup(batches)) {
    if (++batch_number == 2 && lite.global_rank() == 1) continue;
    optimizer.zero_grad();
    lite.backward(model->forward(batch).mean());
    optimizer.step();
  }
}

void never_synchronised(Lite& lite) {
  auto net = linear();
  torch::optim::SGD optimizer(net->parameters(), 0.1);
  lite.setup(net, optimizer);
  for (int step = 0; step < 2; ++step) {
    const auto guard = lite.no_backward_sync();
    optimizer.zero_grad();
    lite.backward(net->forward(at::ones({4, 2})).mean());
    optimizer.step();
  }
}

void models_of_different_sizes(Lite& lite) {
  lite.setup(std::make_shared<torch::nn::LinearImpl>(2, 2 + lite.global_rank()), optim::sgd({}));
}

void groups_of_own_optimizer(Lite& lite) {
  auto [model, optimizer] = lite.setup(linear(), optim::sgd({}));
  optimizer.param_groups();
}

void torch_error(Lite& lite) {
  auto [model, optimizer] = lite.setup(linear(), optim::sgd({}));
  if (lite.global_rank() == 1) model->forward(at::ones({4, 3}));
  lite.backward(model->forward(at::ones({4, 2})).mean());
}

struct Divided : torch::nn::Module {
  explicit Divided(Lite& lite) {
    const nn::TensorParallel ranks = {&lite.tensor_parallel().group()};  // whole rows
    up = register_module("up", std::make_shared<nn::ColumnLinear>(2, 4, ranks));
    down = register_module("down", std::make_shared<nn::RowLinear>(4, 2, ranks));
    nn::fill_parameters(*this, *nn::initial_values(*this, 1));
  }
  Tensor forward(const Tensor& x) const { return down->forward(up->forward(x)); }
  std::shared_ptr<nn::ColumnLinear> up;
  std::shared_ptr<nn::RowLinear> down;
};

void divided_by_torch(Lite& lite) {
  auto model = std::make_shared<Divided>(lite);
  lite.setup(model, torch::optim::SGD(model->parameters(), 0.1));
}

void divided_with_torch_dropout(Lite& lite) {
  auto model = std::make_shared<Divided>(lite);
  model->register_module("dropout", torch::nn::Dropout(0.5));
  lite.setup(model, stretto::optim::sgd({.lr = 0.1}));
}

void divided_with_whole_rows(Lite& lite) {
  lite.setup(std::make_shared<Divided>(lite), stretto::optim::sgd({.lr = 0.1}));
}

void parts_of_other_samples(Lite& lite) {
  auto [model, optimizer] = lite.setup(std::make_shared<Divided>(lite), stretto::optim::sgd({.lr = 0.1}));
  std::vector<Tensor> batches = {at::full({4, 2}, lite.global_rank(), at::kFloat)};
  for (auto& batch : lite.setup(batches, Distribute::per_rank)) lite.backward(model->forward(batch).mean());
}

int run(int argc, char** argv) {
  const std::map<std::string, Case> cases = {{"setup_twice", setup_twice},
                                             {"backward_first", backward_first},
                                             {"own_backward", own_backward},
                                             {"step_first", step_first},
                                             {"step_unsynchronised", step_unsynchronised},
                                             {"parameter_replaced", parameter_replaced},
                                             {"parameter_added", parameter_added},
                                             {"gradient_replaced", gradient_replaced},
                                             {"two_devices", two_devices},
                                             {"wrong_type", wrong_type},
                                             {"complex_parameter", complex_parameter},
                                             {"foreign_optimizer", foreign_optimizer},
                                             {"two_own_optimizers", two_own_optimizers},
                                             {"mixed_losses", mixed_losses},
                                             {"loss_of_many", loss_of_many},
                                             {"nonfinite", nonfinite},
                                             {"loaders_of_different_lengths", loaders_of_different_lengths},
                                             {"batches_of_different_data", batches_of_different_data},
                                             {"parts_of_different_sizes", parts_of_different_sizes},
                                             {"a_branch_of_one_rank", a_branch_of_one_rank},
                                             {"one_rank_leaves", one_rank_leaves},
                                             {"one_rank_throws", one_rank_throws},
                                             {"one_rank_is_killed", one_rank_is_killed},
                                             {"no_autocast", no_autocast},
                                             {"lbfgs_saved", lbfgs_saved},
                                             {"two_lites", two_lites},
                                             {"a_backward_left_out", a_backward_left_out},
                                             {"never_synchronised", never_synchronised},
                                             {"models_of_different_sizes", models_of_different_sizes},
                                             {"groups_of_own_optimizer", groups_of_own_optimizer},
                                             {"torch_error", torch_error},
                                             {"divided_by_torch", divided_by_torch},
                                             {"divided_with_torch_dropout", divided_with_torch_dropout},
                                             {"divided_with_whole_rows", divided_with_whole_rows},
                                             {"parts_of_other_samples", parts_of_other_samples},
                                             {"malformed_data", malformed_data},
                                             {"logs_into_a_closed_pipe", logs_into_a_closed_pipe}};
  LiteOptions options;
  options.devices = std::stoi(argv[2]);
  // Further options as name=value.
  for (int i = 3; i < argc; ++i) {
    const auto parts = split(argv[i], '=');
    const std::string value(parts.at(1));
    if (parts[0] == "strategy") options.strategy = value;
    if (parts[0] == "precision") options.precision = value;
    if (parts[0] == "accelerator") options.accelerator = value;
    if (parts[0] == "tp") options.tp = std::stoi(value);
    if (parts[0] == "sequence_parallel") options.sequence_parallel = value == "true";
    if (parts[0] == "num_nodes") options.num_nodes = std::stoi(value);
  }
  Lite lite(options);
  cases.at(argv[1])(lite);
  return 0;
}

}  // namespace
}  // namespace stretto

int main(int argc, char** argv) { return stretto::run(argc, argv); }
