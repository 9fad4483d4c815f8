// SPDX-License-Identifier: Apache-2.0
// What errors say, and devices as text.
#include <ebb/alloc/device.h>
#include <ebb/alloc/error.h>

#include <doctest/doctest.h>

#include <string>

using namespace ebb::literals;

TEST_CASE("out of memory: the message says everything that is known") {
  const ebb::OutOfMemory error("Heap::allocate", {.asked = 1536_B,
                                                  .limit = 64_MiB,
                                                  .live = 63_MiB,
                                                  .cached = 512_B,
                                                  .largest_hole = 0_B,
                                                  .resource = "train",
                                                  .holders = "  a.cpp:7 60 MiB\n"});
  CHECK(std::string(error.what()) ==
        "[Heap::allocate] out of memory in \"train\": asked 1.50 KiB (1536 B), limit 64.0 MiB "
        "(67108864 B), live 63.0 MiB (66060288 B), cached 512 B, largest hole 0 B; held by:\n"
        "  a.cpp:7 60 MiB\n");
  CHECK(error.info().limit == 64_MiB);
  const std::bad_alloc& base = error;
  CHECK(base.what() == error.what());
}

TEST_CASE("out of memory: without a limit the message says none") {
  ebb::OutOfMemoryInfo info;
  info.asked = 3_GiB;
  const ebb::OutOfMemory error("f", info);
  CHECK(std::string(error.what()).find("asked 3.00 GiB (3221225472 B), limit none, live 0 B") !=
        std::string::npos);
}

TEST_CASE("device error: names the call, the device, the code and the reason") {
  const ebb::DeviceError error("cudaMalloc", 2, "cuda:1", "out of memory");
  CHECK(std::string(error.what()) == "[cudaMalloc] failed on cuda:1 with code 2: out of memory");
  CHECK(error.code() == 2);
}

TEST_CASE("device: text and back") {
  for (const char* text : {"cpu", "cuda:0", "cuda:12", "sim:3"}) {
    CHECK(ebb::to_string(ebb::parse_device(text)) == text);
  }
  CHECK(ebb::parse_device("cuda") == ebb::Device{ebb::DeviceKind::cuda, 0});
}

TEST_CASE("device: any other text is refused with the text in the message") {
  for (const char* text : {"", "gpu", "cpu:0", "cuda:", "cuda:-1", "cuda:1x", "cuda:99999999999",
                           "CUDA", " cpu", "cudax1"}) {
    CAPTURE(text);
    CHECK_THROWS_WITH_AS(ebb::parse_device(text),
                         doctest::Contains((std::string("\"") + text + "\"").c_str()),
                         std::invalid_argument);
  }
}
