#include "stretto/kernels/gpu_dropout.h"

#include <atomic>
#include <string>

#include <ATen/cuda/jiterator.h>

#include "stretto/base/log.h"

namespace stretto::kernels {
namespace {

constexpr const char* kernel_name = "stretto_dropout_word";

// Philox4x32-10 (Salmon et al. 2011). Each element computes its block of four words and keeps one: arithmetic
// is cheaper than memory.
constexpr const char* kernel_code = R"(
template <typename T>
T stretto_dropout_word(T sample, T place, T stream, T column, T key0, T key1) {
  unsigned int c0 = static_cast<unsigned int>(column >> 2), c1 = static_cast<unsigned int>(place);
  unsigned int c2 = static_cast<unsigned int>(sample);
  unsigned int c3 = static_cast<unsigned int>(sample >> 32) | static_cast<unsigned int>(stream << 16);
  unsigned int k0 = static_cast<unsigned int>(key0), k1 = static_cast<unsigned int>(key1);
  for (int round = 0; round < 10; ++round) {
    const unsigned int high0 = __umulhi(0xD2511F53u, c0), low0 = 0xD2511F53u * c0;
    const unsigned int high1 = __umulhi(0xCD9E8D57u, c2), low1 = 0xCD9E8D57u * c2;
    c0 = high1 ^ c1 ^ k0;
    c1 = low1;
    c2 = high0 ^ c3 ^ k1;
    c3 = low0;
    k0 += 0x9E3779B9u;
    k1 += 0xBB67AE85u;
  }
  const int lane = static_cast<int>(column & 3);
  return static_cast<T>(lane == 0 ? c0 : lane == 1 ? c1 : lane == 2 ? c2 : c3);
}
)";

}  // namespace

Tensor gpu_dropout_words(const DropoutRows& rows, int64_t columns, uint64_t key) {
  static std::atomic<bool> fails = false;
  if (fails) return {};
  const int64_t count = rows.samples.numel();
  const auto options = rows.samples.options();
  const c10::SmallVector<Tensor> inputs = {
      rows.samples.reshape({count, 1, 1}), rows.places.reshape({count, 1, 1}),
      at::arange(rows.first_stream, rows.first_stream + rows.streams, options).view({1, rows.streams, 1}),
      at::arange(rows.first_column, rows.first_column + columns, options).view({1, 1, columns})};
  const c10::SmallVector<at::Scalar> keys = {static_cast<int64_t>(key & 0xffffffff),
                                             static_cast<int64_t>(key >> 32)};
  try {
    return at::cuda::CompileAndLaunchKernel(kernel_code, kernel_name, /*num_outputs=*/1, inputs, keys,
                                            /*return_by_ref=*/false)[0];
  } catch (const c10::Error& error) {
    const std::string reason = error.what_without_backtrace();
    if (!fails.exchange(true))
      log::warning("the kernel of dropout masks cannot be compiled, other operators take longer: {}",
                   reason.substr(0, reason.find('\n')));
    return {};
  }
}

}  // namespace stretto::kernels
