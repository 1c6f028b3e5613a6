#pragma once

#include <functional>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "stretto/base/range.h"
#include "stretto/optim/optimizer.h"
#include "stretto/optim/parameter_piece.h"
#include "stretto/parallel/parameters.h"
#include "stretto/strategy/sharding.h"
#include "stretto/tensor/memory.h"
#include "stretto/tensor/state.h"

namespace stretto::parallel {

struct ArenaOptions {
  Precision precision = Precision::fp32;
  Held optimizer = Held::replicated;   // optimizer state, and master if there is a compute copy
  Held gradients = Held::replicated;   // sharded only if `optimizer` is
  Held parameters = Held::replicated;  // sharded only if `gradients` are, and not `shared_parameters`
  int shards = 1;                      // number of ranks over which buffers are sharded
  int shard = 0;                       // index of this rank among them
  optim::Placement placement = optim::Placement::flat;  // the positions at which shard boundaries are allowed
  // The parameters of all ranks are in one shared memory, of which each rank writes its shard.
  bool shared_parameters = false;
  // The ranks that hold the same parameters, and among these the ones that hold the same shard.
  struct Copies {
    Holders holders = {}, shard_holders = {};
  };
  Copies copies = {};
  Copies copies_of_whole = {};  // of parameters that are not divided among ranks (TensorLayout::cuts)
  std::map<int, Copies> copies_of_copied = {};  // of those of whose parts there are copies, by Cut::copies
};

// Allocators of the arena's buffers.
struct ArenaMemory {
  Allocator own = plain_memory();         // used by this rank only
  Allocator gradients = plain_memory();   // reduced by collectives in place
  Allocator parameters = plain_memory();  // for the parameters with which the model computes
};

// The elements of a parameter whose initial values this rank reads, and the memory for them.
struct HeldValues {
  const NamedParameter& parameter;
  Range elements;  // local, row-major
  Tensor values;   // a vector of the parameter's dtype, on its device
};

// Reads the initial values of consecutive parameters.
using ReadParameters = std::function<void(std::span<const HeldValues>)>;

// Reads the values from the module's parameters.
void read_in_place(std::span<const HeldValues> held);

// The trainable parameters of a model in a few flat buffers. After construction each parameter is a view of
// `compute` (or of `master` if the model computes in the master dtype) and its gradient a view of `grad`, so
// that autograd accumulates in place, and reductions, norms and optimizer steps operate on ranges of
// elements.
//
//   parameters   | w0      | b0 | w1            | b1 |       in registration order, each on a new cache line;
//                                                            as long on each rank with a part of the tensor
//   master       [ fp32 .................................. ]
//   grad         [ fp32 .................................. ]
//   compute      [ bf16 .................................. ]  only where it differs from master
//   units        |-- "" --|------- "encoder.layer.0" -----|  one per block
//   shards       |-- rank 0 -----|-- rank 1 --------------|  parts, as equal as the placement allows
class Arena {
 public:
  struct Parameter {
    NamedParameter info;
    size_t unit;
    int64_t begin;  // elements of the arena
    int64_t end;
    void* data;  // expected addresses of the parameter and its gradient; null: there is no gradient
    void* grad;
  };
  struct Unit {
    std::string name;
    Range elements;
    size_t first_parameter;  // its parameters: [first_parameter, end_parameter)
    size_t end_parameter;
    Tensor gradients;     // of `elements`; undefined: its parameters have none
    c10::Storage values;  // of its parameters, if parameters are sharded
  };

  // Moves `parameters` into the buffers. The tensors keep their identity: hooks, optimizers and modules that
  // refer to them stay valid. With shared parameters each rank writes its shard only: their values are
  // complete once every rank has constructed its arena. Parameters are moved a few at a time, about
  // `read_at_once` bytes of them or one that is larger: `read` is called for each few, and their earlier
  // memory is released after it. REQUIRES: all parameters are on one device. Throws ConfigError if there are
  // none.
  Arena(std::vector<NamedParameter> parameters, const ArenaOptions& options, const ArenaMemory& memory = {},
        const ReadParameters& read = read_in_place);
  static constexpr int64_t read_at_once = 16 << 20;

  // Elements that a parameter of `size` elements takes: whole cache lines.
  static int64_t padded(int64_t size);

  const std::vector<Parameter>& parameters() const { return parameters_; }
  const std::vector<Unit>& units() const { return units_; }
  int64_t elements() const { return elements_; }
  int64_t trainable_elements() const { return trainable_elements_; }

  // compute: all elements, or owned() if parameters are sharded. master: the same, or owned() where
  // master_is_sharded(). grad: those in gradient_range().
  const optim::Buffers& buffers() const { return buffers_; }
  bool master_is_sharded() const {
    return shards_.size() > 1 && (buffers_.compute.defined() || parameters_are_sharded_);
  }
  bool parameters_are_shared() const { return shared_parameters_; }
  const Tensor& parameter_values() const {
    return buffers_.compute.defined() ? buffers_.compute : buffers_.master;
  }

  // If parameters are sharded: the values of a unit that this rank does not own entirely exist while
  // bind_values() gives them memory (all elements of the unit); with an undefined tensor, reading them throws
  // Error.
  bool parameters_are_sharded() const { return parameters_are_sharded_; }
  void bind_values(size_t unit, const Tensor& memory);

  // The range that each rank's optimizer steps, by shard; one range of all elements if nothing is sharded.
  // owned(): this rank's.
  const std::vector<Range>& shards() const { return shards_; }
  const Range& owned() const { return owned_; }

  // The elements whose gradients have memory throughout: all, or owned() if gradients are sharded. Then the
  // parameters of a unit that is not entirely inside have no gradient until bind_gradients() gives them
  // memory.
  const Range& gradient_range() const { return gradient_range_; }
  bool gradients_are_sharded() const { return gradients_are_sharded_; }
  // A view of `range`. REQUIRES: it lies in gradient_range().
  Tensor gradients(const Range& range) const;
  // Makes the gradients of the unit's parameters views of `memory` (all elements of the unit), to which
  // gradients that they have are added; with an undefined tensor: leaves them without.
  void bind_gradients(size_t unit, const Tensor& memory);

  // What an optimizer binds to: the owned range of each buffer, and the pieces of parameters in it.
  optim::Buffers owned_buffers() const;
  std::vector<optim::ParameterPiece> owned_pieces() const;

  // This rank's part of a parameter as an entry of the state table, which refers to the live master weights:
  // the shard if master is sharded or shared, else all of it.
  Entry master_entry(const Parameter& parameter, std::string name) const;

  // Copies master to the compute copy of the owned range. Call it after writing to master.
  void refresh_compute();

  // Throws Error naming the first parameter whose data or gradient is no longer in the arena, because it was
  // replaced (Module::to, Module::load, zero_grad() with its default, backward with create_graph).
  void verify() const;

  // Replaces dropped gradients (zero_grad() with its default) by zeros in the arena and returns their number;
  // of all parameters, if all that have memory were dropped. Throws as verify() for other replacements.
  size_t rebind_dropped_gradients();

 private:
  Range master_range() const;  // the part of the master weights that this rank writes
  void cut_shards(const ArenaOptions& options, int64_t end);
  void make_storage(Unit& unit) const;
  HeldValues held_values(const Parameter& parameter) const;
  void bind(Parameter& parameter, const HeldValues& held);
  void bind_parameters(const ReadParameters& read);
  Tensor grad_view(const Parameter& parameter) const;
  const ArenaOptions::Copies& copies_of(const Parameter& parameter) const;
  void verify_data(const Parameter& parameter) const;
  void verify_grad(const Parameter& parameter) const;

  std::vector<Parameter> parameters_;
  std::vector<Unit> units_;
  std::vector<Range> shards_;
  Range owned_ = {}, gradient_range_ = {};
  int64_t elements_ = 0;
  optim::Buffers buffers_;
  int64_t trainable_elements_ = 0;
  bool shared_parameters_ = false, gradients_are_sharded_ = false, parameters_are_sharded_ = false;
  ArenaOptions::Copies copies_, copies_of_whole_;
  std::map<int, ArenaOptions::Copies> copies_of_copied_;
};

}  // namespace stretto::parallel
