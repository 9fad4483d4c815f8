// SPDX-License-Identifier: Apache-2.0
// Files of weights: what is saved comes back, what does not fit is refused and changes nothing, and
// files are whole or not there.
#include "nn_fixture.h"

#include <cstring>
#include <filesystem>

#include <nn/linear.h>
#include <nn/output_file.h>
#include <nn/weights.h>
#include <unistd.h>

using ebb::nn::Activation;
using ebb::nn::Linear;
using ebb::test::nn_seed;
using ebb::test::NnFixture;
namespace fs = std::filesystem;

namespace {

struct Folder {
  Folder() : path(fs::temp_directory_path() / ("ebb-weights-" + std::to_string(getpid()))) {
    fs::create_directories(path);
  }
  ~Folder() {
    std::error_code ignored;
    fs::remove_all(path, ignored);
  }
  std::string file(const char* name) const { return (path / name).string(); }
  std::size_t files() const {
    return static_cast<std::size_t>(
        std::distance(fs::directory_iterator(path), fs::directory_iterator()));
  }
  fs::path path;
};

struct WeightsFixture : NnFixture, Folder {
  Linear made(const char* name, std::int64_t in, std::int64_t out, std::uint64_t seed) {
    return Linear(*math, {name, in, out, Activation::tanh, seed});
  }
  static std::vector<float> values(Linear& linear) {
    std::vector<float> all = numbers(linear.parameters()[0]->value);
    for (float value : numbers(linear.parameters()[1]->value)) {
      all.push_back(value);
    }
    return all;
  }
};

}  // namespace

TEST_CASE_FIXTURE(WeightsFixture, "weights: what is saved comes back bit for bit") {
  Linear a = made("layer", 512, 30, 1);
  Linear b = made("layer", 512, 30, 2);
  REQUIRE(values(a) != values(b));
  save_weights(file("w"), a.parameters());
  load_weights(file("w"), b.parameters());
  CHECK(values(a) == values(b));
  CHECK(files() == 1);
}

TEST_CASE_FIXTURE(WeightsFixture, "weights: the file is safetensors, numbers row by row") {
  Linear a = made("l", 3, 2, 1);
  save_weights(file("w"), a.parameters());
  const std::string bytes = ebb::nn::read_file(file("w"));
  std::uint64_t length = 0;
  std::memcpy(&length, bytes.data(), 8);
  REQUIRE(length % 8 == 0);
  REQUIRE(bytes.size() == 8 + length + 4 * (2 * 3 + 2));
  const std::string header = bytes.substr(8, length);
  CHECK(header.substr(0, header.find_last_not_of(' ') + 1) ==
        R"({"l.bias":{"data_offsets":[24,32],"dtype":"F32","shape":[2]},)"
        R"("l.weight":{"data_offsets":[0,24],"dtype":"F32","shape":[2,3]}})");
  std::vector<float> data(8);
  std::memcpy(data.data(), bytes.data() + 8 + length, 32);
  CHECK(data == values(a));
}

TEST_CASE_FIXTURE(WeightsFixture, "weights: other names, shapes and counts are refused by name") {
  Linear a = made("layer", 8, 4, 1);
  save_weights(file("w"), a.parameters());
  const auto refuses = [&](ebb::nn::Parameters parameters, const char* what) {
    try {
      load_weights(file("w"), parameters);
    } catch (const std::runtime_error& error) {
      CHECK(std::string(error.what()).find(what) != std::string::npos);
      CHECK(std::string(error.what()).find(file("w")) != std::string::npos);
      return;
    }
    FAIL("accepted");
  };
  Linear other_name = made("other", 8, 4, 2);
  Linear other_shape = made("layer", 4, 8, 2);
  Linear good = made("layer", 8, 4, 2);
  const std::vector<float> before = values(good);
  refuses(other_name.parameters(), "has no other.weight");
  refuses(other_shape.parameters(), "layer.weight is \"F32\" [4,8], wanted \"F32\" [8,4]");
  refuses({good.parameters()[0]}, "holds 2 tensors, but the model has 1");
  refuses({good.parameters()[0], other_shape.parameters()[1]}, "layer.bias");
  CHECK(values(good) == before);
}

TEST_CASE_FIXTURE(WeightsFixture, "weights: no damaged file is accepted with other numbers") {
  ebb::Random random(nn_seed());
  Linear a = made("layer", 8, 4, 1);
  save_weights(file("w"), a.parameters());
  const std::string good = ebb::nn::read_file(file("w"));
  std::uint64_t length = 0;
  std::memcpy(&length, good.data(), 8);
  for (std::size_t size = 0; size < good.size(); ++size) {
    Linear b = made("layer", 8, 4, 2);
    const std::vector<float> before = values(b);
    ebb::nn::write_file(file("cut"), std::string_view(good).substr(0, size));
    REQUIRE_THROWS_AS(load_weights(file("cut"), b.parameters()), std::runtime_error);
    REQUIRE(values(b) == before);
  }
  int refused = 0;
  for (int round = 0; round < 400; ++round) {
    std::string bad = good;
    bad[random.below(8 + length)] ^= static_cast<char>(1u << random.below(8));
    ebb::nn::write_file(file("bad"), bad);
    Linear b = made("layer", 8, 4, 2);
    const std::vector<float> before = values(b);
    try {
      load_weights(file("bad"), b.parameters());
    } catch (const std::runtime_error&) {
      ++refused;
      REQUIRE(values(b) == before);
    }
  }
  CHECK(refused > 300);  // a flipped offset of the same length, or a space, may pass
}

TEST_CASE_FIXTURE(WeightsFixture,
                  "output file: a target that cannot be is refused and left alone") {
  fs::create_directories(path / "folder");
  for (const std::string& target : {file("folder"), file("none/x"), std::string("/proc/x")}) {
    CHECK_THROWS_AS(ebb::nn::require_writable(target), std::runtime_error);
    CHECK_THROWS_AS(ebb::nn::write_file(target, "x"), std::runtime_error);
  }
  CHECK(files() == 1);
}

TEST_CASE_FIXTURE(WeightsFixture,
                  "output file: asking leaves nothing, writing replaces the whole") {
  ebb::nn::require_writable(file("out"));
  CHECK(files() == 0);
  ebb::nn::write_file(file("out"), "long content");
  ebb::nn::require_writable(file("out"));
  CHECK(ebb::nn::read_file(file("out")) == "long content");
  ebb::nn::write_file(file("out"), "short");
  CHECK(ebb::nn::read_file(file("out")) == "short");
  CHECK(files() == 1);
}
