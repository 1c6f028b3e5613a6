#include "stretto/comm/group.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <exception>
#include <utility>

#include <unistd.h>

#include <torch/csrc/distributed/c10d/Backend.hpp>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>

#include "stretto/base/clock.h"
#include "stretto/base/error.h"
#include "stretto/base/hash.h"
#include "stretto/base/log.h"
#include "stretto/base/registry.h"
#include "stretto/base/strings.h"
#include "stretto/comm/backends.h"
#include "stretto/comm/host_team.h"
#include "stretto/comm/shared_memory.h"
#include "stretto/comm/store_handle.h"
#include "stretto/tensor/memory.h"

namespace stretto {
namespace {

std::string first_line(const char* text) {
  const std::string_view view(text);
  return std::string(view.substr(0, view.find('\n')));
}

// "float32"; "" for an undefined tensor.
std::string dtype_name(const Tensor& tensor) {
  return tensor.defined() ? std::string(c10::getDtypeNames(tensor.scalar_type()).first) : "";
}

cluster::FlightRecorder::Call record_start(const StoreHandle& handle, const cluster::Collective& call) {
  return handle.recorder ? handle.recorder->start(call) : cluster::FlightRecorder::Call();
}

void wait_recorded(c10d::Work& work, const cluster::FlightRecorder::Call& recorded) {
  recorded.waiting();
  try {
    work.wait();
  } catch (...) {
    recorded.ended(/*good=*/false);
    throw;
  }
  recorded.ended(/*good=*/true);
}

const char* name_of(ReduceOp op) {
  switch (op) {
    case ReduceOp::sum:
      return "sum";
    case ReduceOp::product:
      return "product";
    case ReduceOp::min:
      return "min";
    case ReduceOp::max:
      return "max";
  }
  return "?";
}

std::string root(int rank) { return fmt::format("root {}", rank); }

}  // namespace

struct Group::Backend {
  c10::intrusive_ptr<c10d::Backend> c10d;
  c10::intrusive_ptr<comm::SharedMemory> shared;  // the same object if it is shared memory; else null
};

Work::Work(std::function<void()> wait, std::string what, std::vector<Tensor> keep)
    : wait_(std::move(wait)), what_(std::move(what)), keep_(std::move(keep)) {}

void Work::wait() {
  if (!wait_) return;
  const auto wait = std::exchange(wait_, nullptr);
  try {
    wait();
  } catch (const DistributedError& error) {
    throw DistributedError("{} failed: {}", what_, error.what());
  } catch (const std::exception& error) {
    throw DistributedError("{} failed: {}; a peer has ended or is stuck, see the other ranks' logs", what_,
                           first_line(error.what()));
  }
  keep_.clear();
}

Group::Group(const std::string& backend, std::shared_ptr<StoreHandle> store, int rank, int size,
             GroupOptions options)
    : backend_name_(backend),
      store_(std::move(store)),
      rank_(rank),
      size_(size),
      options_(std::move(options)) {
  struct Kind {
    std::string name;
    decltype(&comm::make_tcp) make;
  };
  static const Registry<Kind> kinds("a communication back end", {{"shm", nullptr},
                                                                 {"tcp", comm::make_tcp},
                                                                 {"gloo", comm::make_gloo},
                                                                 {"mpi", comm::make_mpi},
                                                                 {"nccl", comm::make_nccl}});
  const Kind& kind = kinds.at(backend, "group " + options_.name);
  if (backend == "nccl" ? !options_.device.is_cuda() || !options_.device.has_index()
                        : !options_.device.is_cpu()) {
    throw ConfigError("back end {}: the device is {}; expected {}", backend, options_.device.str(),
                      backend == "nccl" ? "a GPU with its index, for example cuda:0" : "cpu");
  }
  if (options_.encrypt && backend != "shm" && backend != "tcp") {
    throw ConfigError(
        "back end {}: it cannot encrypt its traffic; use auto or tcp on CPUs, or start the job without encryption",
        backend);
  }
  try {
    if (backend == "shm") {
      const comm::CpuTransport made = comm::make_cpu_transport(store_->store, rank, size, options_);
      backend_ = std::make_unique<Backend>(Backend{made.backend, made.shared});
      transport_ = made.description;
      return;
    }
    backend_ = std::make_unique<Backend>(Backend{kind.make(store_->store, rank, size, options_), nullptr});
    transport_ = backend + (options_.encrypt ? ", encrypted" : "");
  } catch (const Error&) {
    throw;
  } catch (const std::exception& error) {
    throw DistributedError("rank {}: the {} group {} of {} could not be made: {}", world_rank(rank), backend,
                           options_.name, counted(size, "rank"), first_line(error.what()));
  }
}

// NCCL ends its threads in shutdown(), which waits for the other ranks: not while an exception ends this one.
Group::~Group() {
  if (backend_name_ != "nccl" || !backend_ || std::uncaught_exceptions() > 0) return;
  try {
    backend_->c10d->shutdown();
  } catch (const std::exception& error) {
    log::warning("group {}: {}", options_.name, first_line(error.what()));
  }
}

int Group::world_rank(int rank) const { return comm::world_rank(options_.world_ranks, rank); }

Allocator Group::allocator() const {
  return backend_->shared && size_ > 1 ? backend_->shared->allocator() : plain_memory();
}

Tensor Group::scratch(at::IntArrayRef sizes, at::ScalarType dtype) const {
  const int64_t elements = c10::multiply_integers(sizes);
  // A tensor that is smaller than a few pages is copied faster than it finds its place.
  constexpr int64_t least_bytes = 64 << 10;
  const bool shares = backend_->shared && size_ > 1;
  if (!shares || elements * static_cast<int64_t>(c10::elementSize(dtype)) < least_bytes)
    return at::empty(sizes, at::TensorOptions(dtype).device(device()));
  return backend_->shared->scratch(elements, dtype).view(sizes);
}

// The description of a call, for messages and records.
struct Group::Plan {
  const char* operation;
  const Tensor& shown;      // its shape and dtype describe the call; may be undefined
  std::string detail = {};  // other properties that all ranks must agree on
  bool collective = true;   // all ranks take part
};

template <class Call>
Work Group::start(const Plan& plan, std::vector<Tensor> keep, const Call& call) {
  const TimedScope timed(*seconds_inside_);
  const uint64_t sequence = plan.collective ? sequence_++ : messages_++;
  const std::string tensor =
      plan.shown.defined() ? fmt::format(" {} {}", describe(plan.shown.sizes()), dtype_name(plan.shown)) : "";
  std::string what = fmt::format("rank {}: {}{} #{} of group {}", world_rank(rank_), plan.operation, tensor,
                                 sequence, options_.name);
  for (const Tensor& kept : keep) {
    if (!kept.is_contiguous()) throw ShapeError("{}: tensors must be contiguous", what);
    if (backend_name_ != "nccl" && !kept.device().is_cpu()) {
      throw ConfigError("{}: the tensor is on {}, but {} supports CPU tensors only; use back end nccl", what,
                        kept.device().str(), backend_name_);
    }
  }
  if (plan.collective && (options_.compare_calls || store_->compare_calls)) {
    // In shared memory, the other ranks depend on this rank's part in calls that have begun, and this rank is
    // about to wait elsewhere.
    if (backend_->shared) backend_->shared->waitForPendingWorks();
    compare_with_others(plan.operation + tensor, plan.detail, sequence);
  }
  const auto recorded =
      record_start(*store_, {.sequence = sequence,
                             .group_id = plan.collective ? id() : 0,
                             .group_rank = rank_,
                             .group_size = size_,
                             .operation = plan.operation,
                             .shape = plan.shown.defined() ? describe(plan.shown.sizes()) : "",
                             .dtype = dtype_name(plan.shown),
                             .group = options_.name,
                             .bytes = plan.shown.defined() ? static_cast<int64_t>(plan.shown.nbytes()) : 0});
  try {
    const auto wait = [work = call(*backend_->c10d), recorded, inside = seconds_inside_] {
      const TimedScope timed(*inside);
      wait_recorded(*work, recorded);
    };
    return Work(wait, std::move(what), std::move(keep));
  } catch (const std::exception& error) {
    recorded.ended(/*good=*/false);
    throw DistributedError("{} could not start: {}", what, first_line(error.what()));
  }
}

// All ranks read a rank's key before any of them begins the next call, so the previous key can be deleted.
void Group::compare_with_others(const std::string& call, const std::string& detail, uint64_t sequence) {
  const auto key = [&](uint64_t number, int rank) { return fmt::format("calls.{}.{}", number, rank); };
  const auto shown = [&](int rank, const std::string& theirs, const std::string& addition) {
    return fmt::format("rank {} called {} #{}{}", world_rank(rank), theirs, sequence, addition);
  };
  c10d::Store& store = *store_->store;
  store.set(key(sequence, rank_), call + "\n" + detail);
  if (sequence >= 2) store.deleteKey(key(sequence - 2, rank_));
  for (int rank = 0; rank < size_; ++rank) {
    if (rank == rank_) continue;
    std::string theirs;
    try {
      store.wait({key(sequence, rank)}, options_.deadline);
      theirs = store.get_to_str(key(sequence, rank));
    } catch (const std::exception& error) {
      throw DistributedError("{}, rank {} has not announced its call #{} of group {}: {}",
                             shown(rank_, call, ""), world_rank(rank), sequence, options_.name,
                             first_line(error.what()));
    }
    const std::string their_call = first_line(theirs.c_str()),
                      their_detail = theirs.substr(std::min(theirs.size(), their_call.size() + 1));
    if (their_call == call && their_detail == detail) continue;
    const bool same = their_call == call;
    throw DistributedError("{}, {}, in group {}: all ranks must make the same calls in the same order",
                           shown(rank, their_call, same ? " " + their_detail : ""),
                           shown(rank_, call, same ? " " + detail : ""), options_.name);
  }
}

void Group::require_multiple(const char* operation, const Tensor& large, const Tensor& small) const {
  if (large.numel() != small.numel() * size_ || large.scalar_type() != small.scalar_type()) {
    throw ShapeError("{}: {} must hold {} times {}", operation, describe(large), size_, describe(small));
  }
}

void Group::require_member(const char* operation, int rank) const {
  if (rank < 0 || rank >= size_)
    throw ConfigError("{}: there is no rank {} in group {} of {}", operation, rank, options_.name, size_);
}

Work Group::all_reduce(Tensor tensor, ReduceOp op) {
  return start({"all_reduce", tensor, name_of(op)}, {tensor},
               [&](c10d::Backend& backend) { return comm::all_reduce(backend, tensor, op); });
}

Work Group::reduce(Tensor tensor, int destination, ReduceOp op) {
  require_member("reduce", destination);
  return start({"reduce", tensor, fmt::format("{}, {}", name_of(op), root(world_rank(destination)))},
               {tensor}, [&](c10d::Backend& backend) {
                 c10d::ReduceOptions options;
                 options.reduceOp = comm::to_c10d(op);
                 options.rootRank = destination;
                 std::vector<Tensor> tensors = {tensor};
                 return backend.reduce(tensors, options);
               });
}

uint64_t Group::id() const { return hash64(store_->path) | 1; }

bool Group::shares_memory() const { return size_ > 1 && backend_->shared && backend_->shared->on_one_host(); }

Tensor Group::common_memory(int64_t elements, at::ScalarType dtype) {
  return shares_memory() ? backend_->shared->common(elements, dtype) : Tensor();
}

Work Group::broadcast(Tensor tensor, int source) {
  require_member("broadcast", source);
  return start({"broadcast", tensor, root(world_rank(source))}, {tensor}, [&](c10d::Backend& backend) {
    c10d::BroadcastOptions options;
    options.rootRank = source;
    std::vector<Tensor> tensors = {tensor};
    return backend.broadcast(tensors, options);
  });
}

Work Group::all_gather(Tensor output, const Tensor& input) {
  require_multiple("all_gather", output, input);
  return start({"all_gather", input}, {output, input}, [&](c10d::Backend& backend) {
    Tensor flat_output = output.view({-1}), flat_input = input.view({-1});
    return backend._allgather_base(flat_output, flat_input);
  });
}

Work Group::reduce_scatter(Tensor output, const Tensor& input, ReduceOp op) {
  require_multiple("reduce_scatter", input, output);
  return start({"reduce_scatter", input, name_of(op)}, {output, input}, [&](c10d::Backend& backend) {
    c10d::ReduceScatterOptions options;
    options.reduceOp = comm::to_c10d(op);
    Tensor flat_output = output.view({-1}), flat_input = input.view({-1});
    return backend._reduce_scatter_base(flat_output, flat_input, options);
  });
}

Work Group::all_to_all(Tensor output, const Tensor& input) {
  if (output.numel() != input.numel() || input.numel() % size_ != 0 ||
      output.scalar_type() != input.scalar_type()) {
    throw ShapeError(
        "all_to_all: {} and {}; expected the same dtype and number of elements, divisible by {} ranks",
        describe(output), describe(input), size_);
  }
  return start({"all_to_all", input}, {output, input}, [&](c10d::Backend& backend) {
    Tensor flat_output = output.view({size_, -1}), flat_input = input.view({size_, -1});
    std::vector<int64_t> equal;
    return backend.alltoall_base(flat_output, flat_input, equal, equal);
  });
}

Work Group::send(const Tensor& tensor, int destination, int tag) {
  require_member("send", destination);
  return start({.operation = "send", .shown = tensor, .collective = false}, {tensor},
               [&](c10d::Backend& backend) {
                 std::vector<Tensor> tensors = {tensor};
                 return backend.send(tensors, destination, tag);
               });
}

Work Group::recv(Tensor tensor, int source, int tag) {
  require_member("recv", source);
  return start({.operation = "recv", .shown = tensor, .collective = false}, {tensor},
               [&](c10d::Backend& backend) {
                 std::vector<Tensor> tensors = {tensor};
                 return backend.recv(tensors, source, tag);
               });
}

void Group::barrier() {
  c10d::BarrierOptions options;
  if (device().is_cuda()) options.device_ids = {device().index()};
  start({"barrier", Tensor()}, {}, [&](c10d::Backend& backend) { return backend.barrier(options); }).wait();
}

std::string Group::host() const {
  if (!options_.host.empty()) return options_.host;
  try {
    return comm::this_host();
  } catch (const IoError&) {  // ranks do not share memory in this case
    std::array<char, 256> name{};
    ::gethostname(name.data(), name.size() - 1);
    return name.data();
  }
}

std::string Group::broadcast_bytes(std::string bytes, int source) {
  Tensor length = at::tensor({static_cast<int64_t>(bytes.size())}, at::kLong).to(device());
  broadcast(length, source).wait();
  bytes.resize(static_cast<size_t>(length.item<int64_t>()));
  if (bytes.empty()) return bytes;
  Tensor content = at::empty({static_cast<int64_t>(bytes.size())}, at::kByte);
  std::memcpy(content.data_ptr(), bytes.data(), bytes.size());
  content = content.to(device());
  broadcast(content, source).wait();
  content = content.to(at::kCPU);
  std::memcpy(bytes.data(), content.data_ptr(), bytes.size());
  return bytes;
}

std::vector<std::string> Group::all_gather_bytes(const std::string& bytes) {
  Tensor lengths = at::empty({size_}, at::TensorOptions(at::kLong).device(device()));
  all_gather(lengths, at::tensor({std::ssize(bytes)}, at::kLong).to(device())).wait();
  lengths = lengths.to(at::kCPU);
  const int64_t longest = lengths.max().item<int64_t>();
  std::vector<std::string> all(static_cast<size_t>(size_));
  if (longest == 0) return all;
  const Tensor padded = at::zeros({longest}, at::kByte);
  std::memcpy(padded.data_ptr(), bytes.data(), bytes.size());
  Tensor contents = at::empty({size_ * longest}, at::TensorOptions(at::kByte).device(device()));
  all_gather(contents, padded.to(device())).wait();
  contents = contents.to(at::kCPU);
  for (int64_t rank = 0; rank < size_; ++rank) {
    all[static_cast<size_t>(rank)].assign(static_cast<const char*>(contents.data_ptr()) + rank * longest,
                                          static_cast<size_t>(lengths[rank].item<int64_t>()));
  }
  return all;
}

std::unique_ptr<Group> Group::subgroup(const std::vector<int>& ranks, const std::string& name) {
  // The others may depend on this rank's part in calls that have begun before they reach this call.
  if (backend_->shared) backend_->shared->waitForPendingWorks();
  const std::string prefix = fmt::format("{}.{}.{}", options_.name, name, subgroups_++);
  const auto position = std::find(ranks.begin(), ranks.end(), rank_);
  if (position == ranks.end()) return nullptr;
  GroupOptions options = options_;
  options.name = name;
  options.world_ranks.clear();
  for (const int rank : ranks) options.world_ranks.push_back(world_rank(rank));
  return std::make_unique<Group>(backend_name_,
                                 std::make_shared<StoreHandle>(StoreHandle{
                                     .store = c10::make_intrusive<c10d::PrefixStore>(prefix, store_->store),
                                     .path = store_->path + "/" + prefix,
                                     .recorder = store_->recorder,
                                     .compare_calls = store_->compare_calls}),
                                 static_cast<int>(position - ranks.begin()), static_cast<int>(ranks.size()),
                                 options);
}

}  // namespace stretto
