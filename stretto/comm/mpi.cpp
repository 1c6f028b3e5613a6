#include <cstdlib>

#include <dlfcn.h>

#include "stretto/base/error.h"
#include "stretto/comm/backends.h"
#include "stretto/comm/mpi_plugin.h"

namespace stretto::comm {
namespace {

// Outside of a job, MPI_Init would start a world of one rank or end the process.
bool mpi_has_started_this() {
  for (const char* variable : {"OMPI_COMM_WORLD_SIZE", "PMI_RANK", "PMIX_RANK", "MV2_COMM_WORLD_RANK"})
    if (std::getenv(variable) != nullptr) return true;
  return false;
}

template <class Function>
Function function_of(void* library, const char* name) {
  void* found = ::dlsym(library, name);
  if (found == nullptr) throw ConfigError("{} has no {}; install it again", mpi_plugin::library, name);
  return reinterpret_cast<Function>(found);
}

// MPI's own plug-ins expect its symbols to be global.
mpi_plugin::Make load_mpi() {
  void* library = ::dlopen(mpi_plugin::library, RTLD_NOW | RTLD_GLOBAL);
  if (library == nullptr) {
    throw ConfigError(
        "back end mpi: {}; this installation was built without MPI, or its MPI library is missing: build stretto where MPI's development files are installed (Debian: libopenmpi-dev), or choose another back end",
        ::dlerror());
  }
  const std::string built_for = function_of<mpi_plugin::BuiltFor>(library, mpi_plugin::built_for)();
  if (built_for != mpi_plugin::this_build) {
    throw ConfigError("back end mpi: {} was built for stretto {}, and this program with {}; build both alike",
                      mpi_plugin::library, built_for, mpi_plugin::this_build);
  }
  return function_of<mpi_plugin::Make>(library, mpi_plugin::make);
}

}  // namespace

c10::intrusive_ptr<c10d::Backend> make_mpi(const c10::intrusive_ptr<c10d::Store>& store, int rank, int size,
                                           const GroupOptions& options) {
  if (!mpi_has_started_this()) {
    throw ConfigError(
        "back end mpi: MPI has not started this rank; start ranks with mpirun, or with srun --mpi=pmix, instead of -N");
  }
  static const mpi_plugin::Make make = load_mpi();
  c10::intrusive_ptr<c10d::Backend> made;
  make(store, rank, size, options.deadline, made);
  return made;
}

}  // namespace stretto::comm
