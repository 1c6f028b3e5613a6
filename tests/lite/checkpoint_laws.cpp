#include "laws.h"

namespace stretto {
namespace {

namespace optim = torch::optim;

// Trains one epoch, from the checkpoint in `folder` if there is one; then compares with a plain loop over all
// epochs.
template <class Make>
void train_in_parts(const LiteOptions& options, const std::string& folder, const Make& make, bool own) {
  Lite lite(fp64(options));
  Zoo plain = make_plain_zoo(), zoo = make_zoo();
  std::vector<Rows> batches = make_rows();
  auto plain_optimizer = make(plain);
  const auto train = [&](auto& model, auto& optimizer) {
    const auto extra = lite.load(folder);
    const int begin = extra ? extra->at("epoch").template get<int>() : 0;
    for (int epoch = 0; epoch <= begin; ++epoch) {
      for (const Rows& rows : batches) {
        plain_optimizer.zero_grad();
        mean_loss(plain, rows).backward();
        plain_optimizer.step();
      }
      plain_optimizer.param_groups()[0].options().set_lr(0.02);
    }
    for (auto& rows : lite.setup(batches)) {
      optimizer.zero_grad();
      lite.backward(mean_loss(model, rows));
      optimizer.step();
    }
    optimizer.set_lr(0.02);
    lite.save(folder, {.step = begin + 1, .extra = {{"epoch", begin + 1}}, .keep_last = 2});
    expect_equal(*model, *plain);
    lite.print("epoch {}", begin + 1);
  };
  if (own) {
    auto [model, optimizer] = lite.setup(zoo, stretto::optim::adamw({.lr = 0.05, .weight_decay = 0}));
    train(model, optimizer);
  } else {
    auto [model, optimizer] = lite.setup(zoo, make(zoo));
    train(model, optimizer);
  }
}

void saved_torch(const LiteOptions& options, const std::string& folder) {
  train_in_parts(
      options, folder, [](Zoo& zoo) { return optim::AdamW(parameters_of(zoo), 0.05); }, false);
}
void saved_own(const LiteOptions& options, const std::string& folder) {
  const auto make = [](Zoo& zoo) {
    return optim::AdamW(parameters_of(zoo), optim::AdamWOptions(0.05).weight_decay(0));
  };
  train_in_parts(options, folder, make, true);
}

// A scheduler of torch that is stepped after every batch: its counter continues in the middle of a period.
void saved_schedule(const LiteOptions& options, const std::string& folder) {
  Lite lite(fp64(options));
  Zoo plain = make_plain_zoo(), zoo = make_zoo();
  std::vector<Rows> batches = make_rows({4, 2, 3});
  optim::SGD plain_optimizer(parameters_of(plain), 0.1), zoo_optimizer(parameters_of(zoo), 0.1);
  optim::StepLR plain_schedule(plain_optimizer, 2, 0.5), schedule(zoo_optimizer, 2, 0.5);
  auto [model, optimizer] = lite.setup(zoo, zoo_optimizer);
  lite.register_for_checkpointing(schedule);
  const auto extra = lite.load(folder);
  const int begin = extra ? extra->at("epoch").get<int>() : 0;
  for (int epoch = 0; epoch <= begin; ++epoch) {
    for (const Rows& rows : batches) {
      plain_optimizer.zero_grad();
      mean_loss(plain, rows).backward();
      plain_optimizer.step();
      plain_schedule.step();
    }
  }
  for (auto& rows : lite.setup(batches)) {
    optimizer.zero_grad();
    lite.backward(mean_loss(model, rows));
    optimizer.step();
    schedule.step();
  }
  lite.save(folder, {.step = begin + 1, .extra = {{"epoch", begin + 1}}, .keep_last = 2});
  expect_equal(*model, *plain);
  expect(optimizer.lr() == plain_optimizer.param_groups()[0].options().get_lr(), "another learning rate");
  lite.print("epoch {}", begin + 1);
}

// Loads a checkpoint of saved_schedule without its scheduler.
void forgotten_schedule(const LiteOptions& options, const std::string& folder) {
  Lite lite(fp64(options));
  Zoo zoo = make_zoo();
  lite.setup(zoo, optim::SGD(parameters_of(zoo), 0.1));
  lite.load(folder);
}

}  // namespace

Laws checkpoint_laws() {
  return {{"saved_torch", saved_torch},
          {"saved_own", saved_own},
          {"saved_schedule", saved_schedule},
          {"forgotten_schedule", forgotten_schedule}};
}

}  // namespace stretto
