// SPDX-License-Identifier: Apache-2.0
// A training step makes no heap call but those inside oneDNN, which are counted apart: this program
// replaces dnnl_sgemm by one that counts around the real one.
#include "support/executor_choice.h"
#include "support/malloc_interposer.h"

#include <ebb/runtime/loop.h>

#include <dnnl.h>
#include <doctest/doctest.h>

#include <atomic>
#include <vector>

#include <dlfcn.h>
#include <mlp/mlp.h>

namespace {

std::atomic<std::uint64_t> allocations_in_onednn{0};
std::atomic<std::uint64_t> products{0};

std::uint64_t allocations_of_ours() {
  return ebb::test::heap_calls().allocations - allocations_in_onednn.load();
}

}  // namespace

extern "C" dnnl_status_t dnnl_sgemm(char ta, char tb, dnnl_dim_t m, dnnl_dim_t n, dnnl_dim_t k,
                                    float alpha, const float* a, dnnl_dim_t lda, const float* b,
                                    dnnl_dim_t ldb, float beta, float* c, dnnl_dim_t ldc) {
  static const auto real = reinterpret_cast<decltype(&dnnl_sgemm)>(dlsym(RTLD_NEXT, "dnnl_sgemm"));
  const std::uint64_t before = ebb::test::heap_calls_of_this_thread().allocations;
  const dnnl_status_t status = real(ta, tb, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);
  allocations_in_onednn += ebb::test::heap_calls_of_this_thread().allocations - before;
  ++products;
  return status;
}

TEST_CASE("mlp: a steady step makes no heap call outside oneDNN") {
  if (!ebb::test::heap_calls_counted()) {
    MESSAGE("skipped: a sanitizer counts for itself");
    return;
  }
  REQUIRE(dnnl_version() != nullptr);  // keeps the library linked: its sgemm is only looked up
  for (unsigned threads : {1u, 2u}) {
    ebb::Runtime rt({.threads = threads, .executor = ebb::test::executor_choice()});
    Mlp model(rt, {.seed = 1, .sgd = {.rate = 0.01f, .momentum = 0.5f}});
    const ebb::Tensor x = ebb::full(rt, {64, 1, 28, 28}, 0.25);
    const ebb::Tensor y = ebb::full(rt, {64}, 3, ebb::DType::i64);
    ebb::Loop loop(rt, {.name = "train"});
    const auto run = [&](int steps) {
      float loss = 0;
      for (int i = 0; i < steps; ++i) {
        ebb::Iteration it(loop);
        loss = model.step(x, y).item<float>();
      }
      return loss;
    };
    run(10);
    REQUIRE(loop.wait_plan());
    run(20);
    REQUIRE(loop.plans().size() == 1);
    const ebb::PlanSetStats planned = loop.plans()[0].stats;
    products = 0;
    const std::uint64_t before = allocations_of_ours();
    const float loss = run(50);
    const std::uint64_t after = allocations_of_ours();
    CHECK(after - before == 0);
    CHECK(loop.plans()[0].stats.followed == planned.followed + 50);
    CHECK(loop.plans()[0].stats.displaced == planned.displaced);
    CHECK(products.load() >= 50 * 8);  // else oneDNN was not counted apart, but not called
    CHECK(loss < 1.0f);
    loop.finish();
    CHECK(loop.stats().stragglers == 0);
  }
}
