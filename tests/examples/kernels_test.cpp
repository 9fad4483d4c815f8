// SPDX-License-Identifier: Apache-2.0
// The elementwise loops: accuracy of tanh, special values, and the same bits from every set.
#include <ebb/runtime/random.h>

#include <doctest/doctest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <vector>

#include <nn/kernels.h>

namespace {

using ebb::nn::Kernels;

std::vector<const Kernels*> all_kernels() {
  std::vector<const Kernels*> all{&ebb::nn::plain_kernels()};
  if (&ebb::nn::best_kernels() != all[0]) {
    all.push_back(&ebb::nn::best_kernels());
  }
  return all;
}

float tanh_of(const Kernels& kernels, float x) {
  const float zero = -0.0f;  // the sum with it is x, for x = -0 too
  kernels.add_tanh(&x, &zero, 1);
  return x;
}

std::vector<float> random_row(std::size_t count, const char* name) {
  std::vector<float> row(count);
  ebb::fill_uniform(row, -12.0f, 12.0f, ebb::Random(7, name));
  return row;
}

}  // namespace

TEST_CASE("kernels: tanh is within 1.5 units in the last place over all floats") {
  constexpr std::uint32_t infinity = 0x7f800000u;
  constexpr std::uint32_t step = 1009;  // a prime: every exponent, all kinds of mantissas
  constexpr std::size_t chunk = 4096;
  const std::vector<float> zeros(chunk, 0.0f);
  for (const Kernels* kernels : all_kernels()) {
    double worst = 0;
    std::vector<float> x;
    for (std::uint32_t bits = 0; bits < infinity;) {
      x.clear();
      const std::uint32_t first = bits;
      for (; bits < infinity && x.size() < chunk; bits += step) {
        x.push_back(std::bit_cast<float>(bits));
      }
      kernels->add_tanh(x.data(), zeros.data(), static_cast<std::int64_t>(x.size()));
      for (std::size_t i = 0; i < x.size(); ++i) {
        const auto in = std::bit_cast<float>(first + static_cast<std::uint32_t>(i) * step);
        const double exact = std::tanh(static_cast<double>(in));
        const auto nearest = static_cast<float>(exact);
        const double unit =
            static_cast<double>(std::nextafter(nearest, 2.0f)) - static_cast<double>(nearest);
        worst = std::max(worst, std::abs(static_cast<double>(x[i]) - exact) / unit);
      }
    }
    MESSAGE("worst error of tanh: ", worst);
    CHECK(worst < 1.5);
    CHECK(worst > 0.1);  // else nothing was compared
  }
}

TEST_CASE("kernels: tanh is odd, saturates at one, and keeps NaN") {
  constexpr float infinity = std::numeric_limits<float>::infinity();
  for (const Kernels* kernels : all_kernels()) {
    for (float x : {0.0f, 1e-30f, 0.3f, 0.6f, 2.0f, 50.0f, infinity}) {
      CHECK(std::bit_cast<std::uint32_t>(tanh_of(*kernels, -x)) ==
            std::bit_cast<std::uint32_t>(-tanh_of(*kernels, x)));
    }
    CHECK(tanh_of(*kernels, infinity) == 1.0f);
    CHECK(tanh_of(*kernels, 12.0f) == 1.0f);
    CHECK(std::isnan(tanh_of(*kernels, std::numeric_limits<float>::quiet_NaN())));
  }
}

TEST_CASE("kernels: relu keeps NaN, and its gradient is zero where the output is") {
  for (const Kernels* kernels : all_kernels()) {
    const std::vector<float> bias(3, 0.0f);
    std::vector<float> y{-1.0f, std::numeric_limits<float>::quiet_NaN(), 2.0f};
    kernels->add_relu(y.data(), bias.data(), 3);
    CHECK(y[0] == 0.0f);
    CHECK(std::isnan(y[1]));
    CHECK(y[2] == 2.0f);
    std::vector<float> grad{5.0f, 5.0f};
    const std::vector<float> out{0.0f, 2.0f};
    kernels->relu_grad(grad.data(), out.data(), 2);
    CHECK(grad == std::vector<float>{0.0f, 5.0f});
  }
}

TEST_CASE("kernels: every set gives the same bits, however a row is split") {
  constexpr std::size_t count = 1003;  // no multiple of any vector
  const std::vector<float> a = random_row(count, "a");
  const std::vector<float> b = random_row(count, "b");
  const std::vector<float> c = random_row(count, "c");
  const auto run = [&](const Kernels& kernels, std::size_t part) {
    std::vector<float> rows[6] = {a, a, a, a, a, a};
    std::vector<float> velocity = c;
    for (std::size_t i = 0; i < count; i += part) {
      const auto n = static_cast<std::int64_t>(std::min(part, count - i));
      kernels.add(&rows[0][i], &b[i], n);
      kernels.add_relu(&rows[1][i], &b[i], n);
      kernels.add_tanh(&rows[2][i], &b[i], n);
      kernels.relu_grad(&rows[3][i], &b[i], n);
      kernels.tanh_grad(&rows[4][i], &b[i], n);
      kernels.sgd(&rows[5][i], &velocity[i], &b[i], 0.01f, 0.9f, n);
    }
    std::vector<float> all = velocity;
    for (const auto& row : rows) {
      all.insert(all.end(), row.begin(), row.end());
    }
    return all;
  };
  const std::vector<float> whole = run(ebb::nn::plain_kernels(), count);
  for (const Kernels* kernels : all_kernels()) {
    for (std::size_t part : {count, std::size_t{64}, std::size_t{7}}) {
      const std::vector<float> split = run(*kernels, part);
      CHECK(std::memcmp(whole.data(), split.data(), whole.size() * sizeof(float)) == 0);
    }
  }
}
