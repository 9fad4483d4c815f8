// SPDX-License-Identifier: Apache-2.0
// A mistake on purpose: each step leaves a tensor in a list, and ebb says where it was made.
// It goes on training: stragglers become the runtime's, and nothing that lives is reused.
#include <ebb/ebb.h>

#include <cstdio>
#include <string>
#include <vector>

int main() {
  std::string said;
  ebb::Runtime rt({.log = [&](ebb::LogLevel /*level*/, std::string_view text) {
    std::printf("%.*s\n", static_cast<int>(text.size()), text.data());
    said += text;
  }});
  ebb::Loop loop(rt, {.name = "train", .deadline = ebb::Milliseconds{50}, .warmup = 0});
  std::vector<ebb::Tensor> losses;
  for (int step = 0; step < 3; ++step) {
    ebb::Iteration it(loop);
    ebb::Tensor activations = ebb::zeros({64, 512});
    ebb::Tensor loss = ebb::full({64, 1}, 0.5);
    losses.push_back(loss.named("loss"));  // the mistake: item<float>() was meant
  }
  loop.finish();

  const bool reported = said.find("leak.cpp:21") != std::string::npos;
  losses.clear();  // nothing has dangled, and the runtime ends clean
  return reported && loop.stats().stragglers == 3 ? 0 : 1;
}
