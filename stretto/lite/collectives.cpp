#include "stretto/base/error.h"
#include "stretto/lite/session.h"

// The collectives that Lite programs call explicitly.
namespace stretto {

using lite::Act;

Tensor Lite::all_gather(const Tensor& tensor) {
  session_->agreement.agree({.act = Act::collective});
  return AxisRanks(mesh().world()).all_gather(tensor);
}

Tensor Lite::all_reduce(const Tensor& tensor) { return all_reduce(tensor, ReduceOp::sum).div_(world_size()); }

Tensor Lite::all_reduce(const Tensor& tensor, ReduceOp op) {
  session_->agreement.agree({.act = Act::collective});
  return AxisRanks(mesh().world()).all_reduce(tensor, op);
}

double Lite::all_reduce(double value) { return all_reduce(value, ReduceOp::sum) / world_size(); }

double Lite::all_reduce(double value, ReduceOp op) {
  return all_reduce(at::scalar_tensor(value, at::kDouble), op).item<double>();
}

Tensor Lite::broadcast(const Tensor& tensor, int source) {
  if (source < 0 || source >= world_size())
    throw Error("broadcast: there is no rank {}; it must be in 0 .. {}", source, world_size() - 1);
  session_->agreement.agree({.act = Act::collective});
  return AxisRanks(mesh().world()).broadcast(tensor, source);
}

std::string Lite::broadcast(const std::string& bytes, int source) {
  if (source < 0 || source >= world_size())
    throw Error("broadcast: there is no rank {}; it must be in 0 .. {}", source, world_size() - 1);
  session_->agreement.agree({.act = Act::collective});
  return mesh().world().broadcast_bytes(bytes, source);
}

void Lite::barrier() { session_->agreement.agree({.act = Act::collective}); }

void Lite::seed_everything(uint64_t seed) {
  at::manual_seed(seed);
  if (!session_->models.empty()) parallel::separate_random_numbers(session_->mesh);
}

std::unique_ptr<Autocast> Lite::autocast() {
  if (!session_->loop.autocast_dtype()) return nullptr;
  autocast_was_used_ = true;
  return std::make_unique<Autocast>(device().type(), *session_->loop.autocast_dtype());
}

}  // namespace stretto
