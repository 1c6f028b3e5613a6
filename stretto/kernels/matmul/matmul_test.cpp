#include "stretto/kernels/matmul/matmul.h"

#include <cmath>

#include <gmock/gmock.h>

#include "stretto/base/error.h"
#include "stretto/base/message_support.h"
#include "stretto/kernels/each_target_support.h"

namespace stretto::kernels {
namespace {

using ::testing::HasSubstr;

constexpr std::array<at::ScalarType, 2> product_types = {at::kFloat, at::kBFloat16};

// Returns a [m, k] and b [k, n] with the layouts of the role: the second operand of the forward matmul and
// the first one of the weight gradient are transposed views.
std::pair<Tensor, Tensor> operands_of(MatmulRole role, at::ScalarType dtype, int64_t m, int64_t k,
                                      int64_t n) {
  const auto random = [&](int64_t rows, int64_t columns) { return at::randn({rows, columns}).to(dtype); };
  return {role == MatmulRole::weight_gradient ? random(k, m).t() : random(m, k),
          role == MatmulRole::forward ? random(n, k).t() : random(k, n)};
}

void check_product(MatmulLibrary library, const Tensor& a, const Tensor& b, const Tensor& out,
                   bool accumulate) {
  const Tensor expected =
      at::mm(a.to(at::kDouble), b.to(at::kDouble)) + (accumulate ? out.to(at::kDouble) : at::zeros({}));
  multiply_by(library, out, a, b, accumulate);
  if (out.numel() == 0) return;
  const double terms = static_cast<double>(a.size(1));
  const double tolerance =
      a.scalar_type() == at::kFloat ? 1e-6 * std::max(1.0, std::sqrt(terms / 500)) : 1e-2;
  EXPECT_LT(difference(out, expected), tolerance)
      << name_of(library) << " " << describe(a) << " x " << describe(b) << (accumulate ? " added" : "");
}

// Compares all shapes and strides that layers multiply with fp64.
void check_library(MatmulLibrary library, MatmulRole role, at::ScalarType dtype) {
  at::manual_seed(1);
  for (const auto& [m, k, n] : {std::array<int64_t, 3>{1, 1, 1},
                                {7, 5, 3},
                                {1, 130, 33},
                                {64, 1, 96},
                                {130, 64, 96},
                                {33, 100, 17},
                                {779, 37, 70},
                                {19, 4100, 40},
                                {19, 4101, 40},
                                {13, 131, 40},
                                {0, 4, 3},
                                {4, 0, 3}}) {
    const auto [a, b] = operands_of(role, dtype, m, k, n);
    const bool wide_sum = role == MatmulRole::weight_gradient;
    const auto out_type = wide_sum ? at::kFloat : dtype;
    for (const bool accumulate : {false, true}) {
      check_product(library, a, b, at::randn({m, n}).to(out_type), accumulate);
      check_product(library, a, b, at::randn({m, n}).to(dtype), accumulate);
      check_product(library, a, b, at::randn({m, n + 3}).to(out_type).slice(1, 1, n + 1), accumulate);
      const Tensor strided = at::randn({m, 2 * k + 1}).to(dtype).slice(1, 1, k + 1);
      check_product(library, strided, b, at::randn({m, n}).to(out_type), accumulate);
      const Tensor every_other = at::randn({k, 2 * n}).to(dtype).slice(1, 0, 2 * n, 2);
      check_product(library, a, every_other, at::randn({m, n}).to(out_type), accumulate);
    }
  }
}

TEST(Matmul, EveryUsableLibraryAgreesWithDoublePrecision) {
  for (const MatmulLibrary library : all_matmul_libraries) {
    for (const MatmulRole role : all_matmul_roles) {
      for (const at::ScalarType dtype : product_types) {
        if (is_usable(library, role, dtype)) check_library(library, role, dtype);
      }
    }
  }
}

void expect_agreement_of_few_rows(at::ScalarType dtype, FewRowsKernel kernel) {
  at::manual_seed(1);
  for (int64_t m = 1; m <= most_few_rows; ++m) {
    for (const auto& [k, n] : {std::pair<int64_t, int64_t>{1, 1}, {5, 3}, {130, 33}, {131, 200}, {64, 64}}) {
      for (const bool by_columns : {false, true}) {
        const Tensor a = at::randn({m, k + 1}).to(dtype).slice(1, 1);
        const Tensor b = by_columns ? at::randn({n, k + 2}).to(dtype).slice(1, 0, k).t()
                                    : at::randn({k, n + 2}).to(dtype).slice(1, 1, n + 1);
        const Tensor product = at::mm(a.to(at::kDouble), b.to(at::kDouble));
        const Tensor out = at::randn({m, n}), narrow = at::randn({m, n + 1}).to(dtype).slice(1, 1);
        const Tensor sum = product + narrow.to(at::kDouble);
        multiply_few_rows(out, a, b, /*accumulate=*/false, kernel);
        multiply_few_rows(narrow, a, b, /*accumulate=*/true, kernel);
        const auto what = fmt::format("{} x {}", describe(a), describe(b));
        EXPECT_LT(difference(out, product), 1e-6) << what;
        EXPECT_LT(difference(narrow, sum), dtype == at::kFloat ? 1e-6 : 1e-2) << what;
      }
    }
  }
}

TEST(FewRows, AgreeWithDoublePrecision) {
  for_each_target([] {
    for (const at::ScalarType dtype : product_types)
      expect_agreement_of_few_rows(dtype, FewRowsKernel::vectors);
  });
}

TEST(FewRows, TilesAgreeWithDoublePrecision) {
  if (!is_usable(FewRowsKernel::tiles, at::kBFloat16)) GTEST_SKIP() << "this processor has no AMX";
  EXPECT_FALSE(is_usable(FewRowsKernel::tiles, at::kFloat));
  expect_agreement_of_few_rows(at::kBFloat16, FewRowsKernel::tiles);
  // oneDNN uses the same tiles of a thread.
  const Tensor a = at::randn({64, 64}).to(at::kBFloat16), b = at::randn({64, 64}).to(at::kBFloat16);
  const Tensor before = at::mm(a, b);
  expect_agreement_of_few_rows(at::kBFloat16, FewRowsKernel::tiles);
  EXPECT_TRUE(at::equal(at::mm(a, b), before));
}

// Restores the process's choice.
class MatmulInUse : public ::testing::Test {
 protected:
  ~MatmulInUse() override {
    for (const at::ScalarType dtype : product_types) {
      use_matmul(dtype, {});
      use_few_rows(dtype, 0);
    }
  }
};

TEST_F(MatmulInUse, ABiasIsAddedByEveryLibrary) {
  at::manual_seed(3);
  for (const at::ScalarType dtype : product_types) {
    for (const MatmulLibrary library : all_matmul_libraries) {
      if (!is_usable(library, MatmulRole::forward, dtype)) continue;
      use_matmul(dtype, {{library}});
      for (const int64_t rows : {1, 12, 13, 31}) {
        const auto [a, b] = operands_of(MatmulRole::forward, dtype, rows, 64, 45);
        const Tensor out = at::empty({rows, 45}, dtype), bias = at::randn({45}).to(dtype);
        multiply_and_add(out, a, b, bias);
        const Tensor expected = at::mm(a.to(at::kDouble), b.to(at::kDouble)) + bias.to(at::kDouble);
        EXPECT_LT(difference(out, expected), dtype == at::kFloat ? 1e-6 : 1e-2) << name_of(library);
      }
    }
  }
}

TEST(Matmul, EachLibraryIsUsableForItsMatmuls) {
  for (const MatmulRole role : all_matmul_roles) {
    for (const at::ScalarType dtype : {at::kFloat, at::kBFloat16, at::kDouble})
      EXPECT_TRUE(is_usable(MatmulLibrary::aten, role, dtype));
    EXPECT_FALSE(is_usable(MatmulLibrary::onednn, role, at::kDouble));
    EXPECT_FALSE(is_usable(MatmulLibrary::mkl, role, at::kFloat));
  }
  EXPECT_FALSE(is_usable(MatmulLibrary::mkl, MatmulRole::forward, at::kBFloat16));
}

TEST_F(MatmulInUse, FewRowsAreMultipliedByTheirKernelWhereItIsInUse) {
  at::manual_seed(4);
  const Tensor a = at::randn({4, 70}), b = at::randn({70, 30}), bias = at::randn({30});
  const Tensor by_kernel = at::empty({4, 30}), out = at::empty({4, 30});
  multiply_few_rows(by_kernel, a, b, /*accumulate=*/false);
  use_few_rows(at::kFloat, 4);
  EXPECT_EQ(few_rows_in_use(at::kFloat), 4);
  EXPECT_EQ(few_rows_in_use(at::kBFloat16), 0);
  multiply(MatmulRole::forward, out, a, b);
  EXPECT_TRUE(at::equal(out, by_kernel));
  multiply_and_add(out, a, b, bias);
  EXPECT_TRUE(at::equal(out, by_kernel + bias));
  for (const int64_t rows : {0, 5}) {
    const Tensor others = at::randn({rows, 70}), theirs = at::empty({rows, 30});
    multiply(MatmulRole::forward, theirs, others, b);
    EXPECT_TRUE(at::equal(theirs, at::mm(others, b)));
  }
}

TEST_F(MatmulInUse, DependOnTheOperandsDtype) {
  EXPECT_EQ(matmul_in_use(at::kFloat), MatmulChoice());
  if (!is_usable(MatmulLibrary::onednn, MatmulRole::forward, at::kFloat)) GTEST_SKIP() << "no oneDNN";
  const MatmulChoice choice = {{MatmulLibrary::onednn, MatmulLibrary::aten, MatmulLibrary::onednn}};
  use_matmul(at::kFloat, choice);
  EXPECT_EQ(matmul_in_use(at::kFloat), choice);
  EXPECT_EQ(matmul_in_use(at::kBFloat16), MatmulChoice());
  EXPECT_EQ(to_text(choice), "onednn, input gradients aten");

  at::manual_seed(2);
  const Tensor a = at::randn({40, 70}), b = at::randn({70, 30});
  const Tensor out = at::empty({40, 30}), expected = at::empty({40, 30});
  multiply(MatmulRole::forward, out, a, b);
  multiply_by(MatmulLibrary::onednn, expected, a, b, false);
  EXPECT_TRUE(at::equal(out, expected));
  const Tensor wide = at::empty({40, 30}, at::kDouble);
  multiply(MatmulRole::forward, wide, a.to(at::kDouble), b.to(at::kDouble));
  EXPECT_TRUE(at::equal(wide, at::mm(a.to(at::kDouble), b.to(at::kDouble))));
}

TEST_F(MatmulInUse, LibrariesThatAreNotUsableAreRefused) {
  const MatmulChoice mkl = {{MatmulLibrary::mkl, MatmulLibrary::mkl, MatmulLibrary::mkl}};
  EXPECT_THAT(message_of<ConfigError>([&] { use_matmul(at::kFloat, mkl); }),
              has_all("products: mkl ", "forward matmuls of Float", "use aten"));
  EXPECT_EQ(matmul_in_use(at::kFloat), MatmulChoice());
  EXPECT_THROW(parse_library("blas"), ConfigError);
}

TEST(Matmul, RefusesShapesThatDoNotFit) {
  EXPECT_THAT(message_of<ShapeError>([] {
                multiply(MatmulRole::forward, at::zeros({3, 3}), at::ones({3, 4}), at::ones({5, 3}));
              }),
              HasSubstr("expected [m, k] x [k, n] = [m, n]"));
}

}  // namespace
}  // namespace stretto::kernels
