#include "stretto/comm/rank_threads.h"

#include <exception>
#include <thread>

#include <ATen/Parallel.h>

#include "stretto/tensor/vector_math.h"

namespace stretto::comm {

void run_rank_threads(int ranks, const std::function<void(Group&)>& body) {
  GroupOptions options;
  options.deadline = std::chrono::seconds(20);
  run_rank_threads(ranks, options, body);
}

void run_rank_threads(int ranks, const GroupOptions& options, const std::function<void(Group&)>& body,
                      const std::string& backend) {
  prepare_vector_math();
  const auto store = memory_store();
  std::vector<std::exception_ptr> errors(static_cast<size_t>(ranks));
  std::vector<std::thread> threads;
  for (int rank = 0; rank < ranks; ++rank) {
    threads.emplace_back([&, rank] {
      at::set_num_threads(1);
      try {
        Group group(backend, store, rank, ranks, options);
        body(group);
      } catch (...) {
        errors[static_cast<size_t>(rank)] = std::current_exception();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const std::exception_ptr& error : errors) {
    if (error) std::rethrow_exception(error);
  }
}

}  // namespace stretto::comm
