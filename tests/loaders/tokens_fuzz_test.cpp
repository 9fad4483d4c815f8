// SPDX-License-Identifier: Apache-2.0
// Damaged files of tokens: each is refused by a LoadError that names the file, or has windows that
// are read to the end.
#include "fuzz_fixture.h"
#include "loader_fixture.h"
#include "support/temporary_folder.h"
#include "token_fixture.h"

#include <ebb/loaders/tokens.h>

TEST_CASE("tokens: whatever is done to a file, it is refused by name or its windows are read") {
  const ebb::test::TempFolder folder;
  const std::vector<std::string> valid{
      ebb::test::llm_c_u16(0, 50), ebb::test::llm_c_u32(0, 50),
      ebb::test::npy("<u4", "(50,)", ebb::test::tokens<std::uint32_t>(0, 50))};
  ebb::test::LogLines log;
  ebb::Runtime rt({.executor = ebb::test::executor_choice(), .log = log.hook()});
  const auto other = folder.write("other", ebb::test::tokens<std::uint16_t>(0, 9));
  std::uint64_t round = 0;
  ebb::test::fuzz("tokens", valid, [&](const std::string& bytes) {
    const auto data = ebb::open_tokens(
        {folder.write("x", bytes), other},
        {.window = 7, .vocabulary = 60, .memory_max = ebb::Bytes{bytes.size() % 3 * 200}});
    if (++round % 20 == 0) {
      ebb::Loader loader(rt, data, {.batch = 4, .workers = 0});
      while (loader.next().has_value()) {
      }
    }
  });
}
