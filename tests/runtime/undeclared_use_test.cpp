// SPDX-License-Identifier: Apache-2.0
// Memory of one stream that is used on another without a word: told with both places, at
// checks=full. notes/allocators.md section 4 item 9. [alloc.cuda]
#include "device_fixture.h"

#include <ebb/alloc/check.h>

#include <string>
#include <vector>

#if EBB_CHECKS >= 2

using namespace ebb;
using ebb::test::DeviceRuntime;

namespace {

struct Logged {
  std::vector<std::string> lines;
  RuntimeOptions options() {
    return {.log = [this](LogLevel, std::string_view text) { lines.emplace_back(text); }};
  }
};

}  // namespace

TEST_CASE("undeclared use: it is told once, with both places and streams") {
  Logged logged;
  DeviceRuntime f(logged.options());
  const Tensor tensor = empty(f.on(f.a), {16}, DType::f32);
  const int made = __LINE__ - 1;
  const StreamScope scope(f.rt, f.b);
  int used = 0;
  for (int i = 0; i < 3; ++i) {
    static_cast<void>(tensor.data<float>());
    used = __LINE__ - 1;
  }
  CHECK(f.rt.stats().undeclared_uses == 3);
  REQUIRE(logged.lines.size() == 1);
  CHECK(logged.lines[0].find("undeclared_use_test.cpp:" + std::to_string(made)) !=
        std::string::npos);
  CHECK(logged.lines[0].find("undeclared_use_test.cpp:" + std::to_string(used)) !=
        std::string::npos);
  CHECK(logged.lines[0].find("stream " + std::to_string(f.b.stream().id)) != std::string::npos);
  static_cast<void>(tensor.data<float>());  // another place
  CHECK(logged.lines.size() == 2);
}

TEST_CASE("undeclared use: nothing is said of what is declared, or on the tensor's own stream") {
  Logged logged;
  DeviceRuntime f(logged.options());
  const Tensor first = empty(f.on(f.a), {16}, DType::f32);
  const Tensor second = empty(f.on(f.b), {16}, DType::f32);
  const Tensor declared = empty(f.on(f.a), {16}, DType::f32);
  declared.used_on(f.b);
  const Tensor host = empty(f.rt, {16}, DType::f32);
  static_cast<void>(first.data<float>());  // outside of any stream nobody can tell
  {
    const StreamScope scope(f.rt, f.b);
    static_cast<void>(second.data<float>());
    static_cast<void>(declared.data<float>());
    static_cast<void>(host.data<float>());
  }
  launch(f.rt, f.b, {first, second}, [&](void*) {
    static_cast<void>(first.data<float>());
    static_cast<void>(second.data<float>());
  });
  second.copy_(first);
  CHECK(f.rt.stats().undeclared_uses == 0);
  CHECK(logged.lines.empty());
}

#endif
