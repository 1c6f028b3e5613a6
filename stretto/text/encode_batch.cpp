#include "stretto/text/encode_batch.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>
#include <thread>

namespace stretto::text {

void run_in_parts(size_t count, int threads, const std::function<void(size_t, size_t)>& run) {
  constexpr size_t parts_per_thread = 8;  // texts differ in length
  const size_t processors = std::max(1U, std::thread::hardware_concurrency());
  const size_t wanted = threads > 0 ? static_cast<size_t>(threads) : processors;
  const size_t used = std::clamp<size_t>(wanted, 1, std::max<size_t>(count, 1));
  if (used == 1) return run(0, count);
  const size_t part = std::max<size_t>(1, count / (used * parts_per_thread));
  std::atomic<size_t> next{0};
  std::mutex mutex;
  std::exception_ptr error;
  size_t error_at = count;
  const auto work = [&] {
    for (size_t begin; (begin = next.fetch_add(part)) < count;) {
      try {
        run(begin, std::min(begin + part, count));
      } catch (...) {
        const std::lock_guard lock(mutex);
        if (begin < error_at) error = std::current_exception();
        error_at = std::min(error_at, begin);
      }
    }
  };
  {
    std::vector<std::jthread> helpers;
    for (size_t i = 1; i < used; ++i) helpers.emplace_back(work);
    work();
  }
  if (error) std::rethrow_exception(error);
}

std::vector<Encoding> encode_batch(const Tokenizer& tokenizer, std::span<const Input> texts,
                                   const EncodeOptions& options, int threads) {
  std::vector<Encoding> encodings(texts.size());
  run_in_parts(texts.size(), threads, [&](size_t begin, size_t end) {
    for (size_t i = begin; i < end; ++i) encodings[i] = tokenizer.encode(texts[i], options);
  });
  return encodings;
}

std::vector<Encoding> encode_pair_batch(const Tokenizer& tokenizer, std::span<const Input> first,
                                        std::span<const Input> second, const EncodeOptions& options,
                                        int threads) {
  std::vector<Encoding> encodings(first.size());
  run_in_parts(first.size(), threads, [&](size_t begin, size_t end) {
    for (size_t i = begin; i < end; ++i) encodings[i] = tokenizer.encode_pair(first[i], second[i], options);
  });
  return encodings;
}

}  // namespace stretto::text
