#include "stretto/lite/agreement.h"

#include <algorithm>

#include "stretto/base/error.h"

namespace stretto::lite {
namespace {

// Columns of a rank's row; `counts` is the first model's.
struct Row {
  enum Place : size_t { act, subject, number, loss, loss_count, has_unused, buffers_changed, count, counts };
};

std::string current_call(const double* row) {
  const auto which = static_cast<int64_t>(row[Row::subject]);
  switch (static_cast<Act>(static_cast<int>(row[Row::act]))) {
    case Act::backward: {
      std::string models;
      for (int model = 0; model < 32; ++model) {
        if ((which >> model & 1) != 0) models += fmt::format("{}{}", models.empty() ? "" : " and ", model);
      }
      const double batch = row[Row::number];
      return fmt::format("in backward of model {}{}", models,
                         batch > 0 ? fmt::format(", batch {}", batch) : "");
    }
    case Act::begin_loader:
      return fmt::format("at the start of loader {}", which);
    case Act::end_loader:
      return fmt::format("at the end of loader {} after {} batches", which, row[Row::number]);
    case Act::share_count:
      return fmt::format("at batch {} of loader {}", row[Row::number], which);
    case Act::setup:
      return fmt::format("setting up model {}", which);
    case Act::save:
      return "saving";
    case Act::load:
      return "loading";
    case Act::collective:
      return "in a collective that the program calls (all_reduce, all_gather, broadcast, barrier)";
    case Act::leave:
      return "leaving";
  }
  return "?";
}

}  // namespace

void Agreement::set_models(size_t models) {
  models_ = models;
  row_ = all_ = Tensor();
}

void Agreement::announce(const Announcement& a) {
  Group& world = mesh_.world();
  const auto places = static_cast<int64_t>(Row::counts + models_);
  if (!row_.defined()) {
    row_ = at::zeros({places}, at::kDouble);
    all_ = at::zeros({world.size(), places}, at::kDouble);
  }
  double* row = row_.mutable_data_ptr<double>();
  row[Row::act] = static_cast<double>(a.act);
  row[Row::subject] = static_cast<double>(a.subject);
  row[Row::number] = static_cast<double>(a.number);
  const bool counts = mesh_.position(Axis::tp) == 0;  // ranks of a group have the same samples
  row[Row::loss] = counts ? a.loss : 0;
  row[Row::loss_count] = counts ? a.loss_count : 0;
  row[Row::has_unused] = a.has_unused ? 1 : 0;
  row[Row::buffers_changed] = a.buffers_changed ? 1 : 0;
  row[Row::count] = counts ? a.count : 0;
  for (size_t model = 0; model < models_; ++model)
    row[Row::counts + model] = counts && model < a.counts.size() ? a.counts[model] : 0;
  if (world.size() == 1) {
    // Broadcasting is avoided because its copy takes measurable time.
    std::copy_n(row, places, all_.mutable_data_ptr<double>());
    return;
  }
  if (world.backend() == "nccl") {
    const Tensor there = row_.to(world.device());
    Tensor result = at::empty(all_.sizes(), there.options());
    work_ = world.all_gather(result, there);
    work_.wait();
    all_.copy_(result);
  } else {
    work_ = world.all_gather(all_, row_);
  }
}

// Throws if rank 0 and `rank` announced different operations.
void Agreement::compare(const double* first, const double* other, size_t rank) const {
  const auto same = [&](Row::Place place) { return first[place] == other[place]; };
  const auto is = [&](Act act) { return first[Row::act] == static_cast<double>(act); };
  const bool same_act = same(Row::act) && same(Row::subject);
  if (same_act && (same(Row::number) || (!is(Act::backward) && !is(Act::setup)))) return;
  if (same_act && is(Act::setup)) {
    throw DistributedError(
        "setup: the parameters of model {} differ between rank {} and rank 0 (in names, shapes or requires_grad)",
        first[Row::subject], rank);
  }
  const auto at_end = [](const double* row) { return row[Row::act] == static_cast<double>(Act::end_loader); };
  const char* rule = "every rank must make the same calls in the same order";
  if (same_act)
    rule = "one of them skipped a backward: where there is nothing to learn, call backward with a loss of 0";
  if (!same_act && (at_end(first) || at_end(other)))
    rule = "a loader must yield the same number of batches on every rank, and each batch needs a backward";
  throw DistributedError("ranks diverged: rank 0 is {}, rank {} is {}; {}", current_call(first), rank,
                         current_call(other), rule);
}

Agreed Agreement::settle() {
  work_.wait();
  const auto places = static_cast<size_t>(all_.size(1));
  const double* rows = all_.const_data_ptr<double>();
  Agreed agreed;
  agreed.buffers_changed = rows[Row::buffers_changed] != 0;
  agreed.counts.assign(models_, 0);
  for (size_t rank = 0; rank < static_cast<size_t>(all_.size(0)); ++rank) {
    const double* row = rows + rank * places;
    compare(rows, row, rank);
    agreed.loss += row[Row::loss];
    agreed.loss_count += row[Row::loss_count];
    agreed.has_unused |= row[Row::has_unused] != 0;
    agreed.count += row[Row::count];
    for (size_t model = 0; model < models_; ++model) agreed.counts[model] += row[Row::counts + model];
  }
  return agreed;
}

}  // namespace stretto::lite
