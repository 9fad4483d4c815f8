// SPDX-License-Identifier: Apache-2.0
// The end of a close that found something alive: what is told of it, adoption, and the policy.
// [gc.policy] [gc.report]
#include "domain_impl.h"
#include "series_impl.h"
#include "stragglers.h"

#include <ebb/gc/close.h>

#include <memory>
#include <new>
#include <optional>
#include <utility>

namespace ebb::inline v0 {
namespace {

using detail::Adopted;

// What straggled, before it is adopted. Without memory for it less is known, and told.
struct Finding {
  News news = News::none;
  std::optional<StragglerReport> report;
};

// Fills in the backtraces that were taken while the stragglers were made.
void describe_traces(const OwnerRecord& record, std::vector<StragglerPlace>& places) {
  for (StragglerPlace& place : places) {
    for (StragglerTrace& trace : place.traces) {
      trace.frames = record.traces.describe(trace.sequence);
    }
  }
}

StragglerReport make_report(CloseSeries::Impl& series, OwnerRecord& record, News news) {
  StragglerReport report;
  report.loop = series.options.name;
  report.iteration = record.iteration;
  report.deadline = series.options.deadline;
  report.jobs_started = record.job_places();
  report.places = detail::find_stragglers(record);
  series.fill_in(report.places);
  if (news != News::none) {
    detail::find_earlier(record, report.places);
  }
  if (series.options.traces) {
    if (news != News::none) {
      series.watch(report.places);
    }
    describe_traces(record, report.places);
  }
  // Those that no trace was taken of are no news to anybody.
  for (StragglerPlace& place : report.places) {
    std::erase_if(place.traces, [](const StragglerTrace& t) { return t.frames.empty(); });
  }
  return report;
}

Finding look(CloseSeries::Impl& series, OwnerRecord& record, bool after_warmup, bool wants_report) {
  Finding finding;
  try {
    detail::tally_stragglers(record);
    const bool jobs = record.jobs.load(std::memory_order_seq_cst) != 0;
    finding.news = series.note(record, jobs, after_warmup);
    if (wants_report || finding.news != News::none) {
      finding.report = make_report(series, record, finding.news);
    }
  } catch (const std::bad_alloc&) {  // adoption needs no memory
  }
  return finding;
}

CloseAction action_of(const Adopted& adopted, bool fails) noexcept {
  if (fails) {
    return CloseAction::failed;
  }
  if (adopted.revoked_count != 0) {
    return CloseAction::revoked;
  }
  return adopted.count != 0 ? CloseAction::adopted : CloseAction::none;
}

void fill_in(StragglerReport& report, const CloseResult& result, const Adopted& adopted,
             CloseAction action) noexcept {
  report.action = action;
  report.waited = result.waited;
  report.count = adopted.count;
  report.bytes = adopted.bytes;
  report.revoked_count = adopted.revoked_count;
  report.revoked_bytes = adopted.revoked_bytes;
  report.jobs = result.jobs_pending;
}

// Hands the report out, and logs it where it has news. Without memory for that the close ends as it
// would have.
void tell(CloseSeries::Impl& series, CloseResult& result, const Finding& finding,
          bool logs) noexcept {
  try {
    result.report = std::make_shared<const StragglerReport>(*finding.report);
    if (logs) {
      series.log_limited(finding.news == News::escalated ? LogLevel::error : LogLevel::warning,
                         result.report->text());
    }
  } catch (const std::bad_alloc&) {
    series.domain->log(LogLevel::warning, "a report of stragglers was lost: no memory to write it");
  }
}

}  // namespace

void OpenOwner::settle(CloseResult& result, Reports reports, bool after_warmup,
                       bool has_other_error) {
  OwnerRecord& record = *record_;
  CloseSeries::Impl& series = series_.impl();
  const bool fails = series.options.policy == Policy::fail && after_warmup;
  const bool wants_report =
      fails || reports == Reports::always || series.would_pass_bound(record.live_bytes());
  Finding finding = look(series, record, after_warmup, wants_report);
  const Adopted adopted = detail::adopt_all(record, series.options.policy);
  const Strand strand = record.strand;
  let_go();
  result.stragglers = adopted.count;
  result.straggler_bytes = adopted.bytes;
  result.revoked = adopted.revoked_count;
  if (result.clean()) {
    series.note_clean(strand);  // the last reference went while the generation ended
    return;
  }
  if (after_warmup) {
    series.stragglers.fetch_add(adopted.count, std::memory_order_relaxed);
  }
  if (finding.report.has_value()) {
    fill_in(*finding.report, result, adopted, action_of(adopted, fails));
    tell(series, result, finding, finding.news != News::none && !fails);
  }
  if (has_other_error) {
    return;  // the first error of a task comes before what it left behind
  }
  const bool too_much = series.would_pass_bound(0);
  if (too_much || fails) {
    throw StragglerError(too_much ? series.describe_bound() : "",
                         std::move(finding.report).value_or(StragglerReport{}));
  }
}

}  // namespace ebb::inline v0
