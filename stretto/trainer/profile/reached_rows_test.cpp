#include "stretto/trainer/profile/reached_rows.h"

#include <optional>

#include <gtest/gtest.h>

#include "stretto/comm/rank_threads.h"
#include "stretto/data/samples.h"
#include "stretto/nn/layers.h"
#include "stretto/optim/optimizers.h"
#include "stretto/parallel/engine.h"
#include "stretto/parallel/mesh_fixture.h"

namespace stretto::trainer {
namespace {

constexpr int64_t rows = 4096, width = 64;  // of fp32: a page holds 16 rows
constexpr int64_t page = 16 * width;

// Sample i names rows i and 1600 + i.
class Names : public data::SampleDataset {
 public:
  explicit Names(std::string key = "input_ids") : SampleDataset(rows), key_(std::move(key)) {}
  data::Sample sample(int64_t index) const override {
    return {{key_, at::tensor({index, 1600 + index}, at::kLong)}};
  }

 private:
  std::string key_;
};

// A table that an engine owns.
struct Trained {
  explicit Trained(Group& group) : mesh(parallel::mesh_of(group)) {
    table = root.register_module("table", std::make_shared<nn::Embedding>(rows, width, /*sparse=*/true));
    table->weight.detach().fill_(0.1);
    engine.emplace(root, mesh, parallel::EngineOptions{.strategy = "ddp"}, optim::adamw({.lr = 0.1}));
  }
  void step(const std::vector<int64_t>& ids) {
    engine->backward(table->forward(at::tensor(ids, at::kLong)).sum(), parallel::Reduce::last);
    engine->finish();
    engine->step({.rates = {.lr = 0.1}});
  }

  const Mesh mesh;
  torch::nn::Module root;
  std::shared_ptr<nn::Embedding> table;
  std::optional<parallel::Engine> engine;
};

TEST(ReachedRows, AreCountedByPages) {
  comm::run_rank_threads(1, [](Group& group) {
    Trained trained(group);
    const ReachedRows reached(parallel::collect_tensors(trained.root).trainable, 4);
    EXPECT_EQ(reached.elements(), 0);
    trained.step({0, 3, 3, 15});
    EXPECT_EQ(reached.elements(), page);
    trained.step({16, 31, 320});
    EXPECT_EQ(reached.elements(), 3 * page);
    const std::vector<int64_t> samples = {0, 3, 15, 16, 31, 320, 400};
    EXPECT_EQ(reached.elements_after(Names(), samples), 8 * page);
    EXPECT_EQ(reached.elements_after(Names(), std::vector<int64_t>{0, 3}), rows * width)
        << "rows have been looked up that these samples do not name";
    EXPECT_EQ(reached.elements_after(Names("words"), samples), rows * width);
    EXPECT_EQ(reached.elements_after(Names(), std::vector<int64_t>{0, 3, 15, 16, 31, 320, 4000}),
              rows * width)
        << "the table has no row 5600";
  });
}

// The engine is still notified of the rows that it must step.
TEST(ReachedRows, ObserveBesidesTheEngine) {
  comm::run_rank_threads(1, [](Group& group) {
    Trained trained(group);
    {
      const ReachedRows reached(parallel::collect_tensors(trained.root).trainable, 4);
      trained.step({5});
    }
    trained.step({7});
    const Tensor weight = trained.table->weight.detach();
    for (const int64_t row : {5, 7}) EXPECT_NE(weight[row][0].item<float>(), 0.1f) << row;
    EXPECT_EQ(weight[6][0].item<float>(), 0.1f);
  });
}

}  // namespace
}  // namespace stretto::trainer
