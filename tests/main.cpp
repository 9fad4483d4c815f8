// SPDX-License-Identifier: Apache-2.0
// The one main of all test programs: doctest's, except that a program none of whose cases ran is
// reported as skipped (77) and not as passed. Used by every test. Main thread only.
#define DOCTEST_CONFIG_IMPLEMENT
#include <doctest/doctest.h>

namespace {

unsigned cases_run = 0;

// Only looks on: doctest's own reporter keeps printing.
struct CaseCounter : doctest::IReporter {
  explicit CaseCounter(const doctest::ContextOptions& /*options*/) {}

  void test_run_end(const doctest::TestRunStats& stats) override {
    cases_run = stats.numTestCasesPassingFilters;
  }

  void report_query(const doctest::QueryData& /*in*/) override {}
  void test_run_start() override {}
  void test_case_start(const doctest::TestCaseData& /*in*/) override {}
  void test_case_reenter(const doctest::TestCaseData& /*in*/) override {}
  void test_case_end(const doctest::CurrentTestCaseStats& /*in*/) override {}
  void test_case_exception(const doctest::TestCaseException& /*in*/) override {}
  void subcase_start(const doctest::SubcaseSignature& /*in*/) override {}
  void subcase_end() override {}
  void log_assert(const doctest::AssertData& /*in*/) override {}
  void log_message(const doctest::MessageData& /*in*/) override {}
  void test_case_skipped(const doctest::TestCaseData& /*in*/) override {}
};

constexpr int skipped = 77;

}  // namespace

DOCTEST_REGISTER_LISTENER("case_counter", 1, CaseCounter);

int main(int argc, char** argv) {
  doctest::Context context(argc, argv);
  const int result = context.run();
  if (context.shouldExit() || result != 0) {
    return result;
  }
  return cases_run == 0 ? skipped : 0;
}
