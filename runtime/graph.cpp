// SPDX-License-Identifier: Apache-2.0
// When a step is run, captured, launched. [alloc.graph]
#include "host_calls.h"

#include <ebb/alloc/check.h>
#include <ebb/alloc/device_context.h>
#include <ebb/alloc/fork.h>
#include <ebb/gc/graph_capture.h>
#include <ebb/runtime/graph.h>

#include <chrono>
#include <memory>
#include <string>
#include <utility>

namespace ebb::inline v0 {
namespace {

// How long the end of a step whose runtime has gone waits for launches that still run functions.
constexpr std::chrono::seconds calls_patience{5};
// After how many runs that become no graph that is told.
constexpr std::uint64_t eager_told = 100;

}  // namespace

class GraphStep::Impl {
 public:
  Impl(Loop& loop, Stream stream, Place at)
      : loop_(loop),
        domain_(loop.runtime().domain()),
        host_calls_(detail::host_calls(loop.runtime()).shared_from_this()),
        stream_(stream),
        context_(domain_->use(stream, "GraphStep::GraphStep")),
        place_(at) {
    EBB_REQUIRE(stream.id != 0, "GraphStep",
                "the default stream cannot be captured: make a DeviceStream");
  }
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;
  Impl(Impl&&) = delete;
  Impl& operator=(Impl&&) = delete;
  ~Impl() {
    if (!domain_->in_child()) {
      drop_graph();
    }
  }

  void run(Call body, void* context) {
    const OwnerScope scope(loop_.runtime().owner().on(stream_));
    if (context_.is_capturing()) {
      return run_eagerly(body, context);  // the work is that of the step around this one
    }
    if (calls_ != nullptr) {
      calls_->rethrow();
    }
    if (graph_.id != 0 && !is_stale_) {
      return launch();
    }
    if (!is_confirmed() && !is_stale_) {
      return run_eagerly(body, context);
    }
    capture(body, context);
  }

  void recapture() noexcept {
    is_stale_ = graph_.id != 0;
    held_.release();  // of which the same addresses are had again
  }
  bool is_captured() const noexcept { return graph_.id != 0 && !is_stale_; }

  GraphStats stats;

 private:
  void launch() {
    Iteration it(loop_, place_);
    domain_->use(stream_, "GraphStep::run").launch(graph_, stream_);
    ++stats.launches;
    it.close_briefly();
  }

  void run_eagerly(Call body, void* context) {
    Iteration it(loop_, place_);
    run_in(it, body, context);
    tell_when_long();
  }
  void run_in(Iteration& it, Call body, void* context) {
    ++stats.eager;
    ++eager_running_;
    stats.why_eager = "the body threw";
    body(context, it);
    made_ = made_by(it.owner());
    stats.why_eager = "the close threw";
    stats.why_eager = why_eager(it.close_briefly().clean());
  }
  void tell_when_long() {
    if (eager_running_ < eager_told || is_told_) {
      return;
    }
    is_told_ = true;
    domain_->log(LogLevel::warning, "loop \"" + loop_.options().name + "\": the GraphStep of " +
                                        place_.file + ":" + std::to_string(place_.line) +
                                        " has run " + std::to_string(eager_running_) +
                                        " times without becoming a graph: " +
                                        (is_confirmed() ? "its plans change" : stats.why_eager));
  }
  const char* why_eager(bool clean) const noexcept {
    if (!clean) {
      return "what it makes lives on, or a task of it does";
    }
    switch (made_) {
      case Made::without_plans:
        return "it makes tensors, and its loop has no plans (LoopOptions::plans)";
      case Made::otherwise:
        return "what it makes has no plan yet, or differs from the runs before";
      case Made::nothing:
      case Made::as_planned:
        break;
    }
    return "";
  }
  bool is_confirmed() const noexcept { return *stats.why_eager == '\0'; }

  void capture(Call body, void* context) {
    GraphCapture capture(*domain_, stream_);
    Iteration it(loop_, place_);
    if (!capture.begin(it.owner(), made_)) {
      drop_graph();
      run_in(it, body, context);
      if (!capture.is_possible()) {
        stats.why_eager = "its thread keeps no memory of the device";
      }
      return tell_when_long();
    }
    try {
      auto calls = std::make_unique<detail::RepeatedCalls>();
      {
        const Collecting collecting(*host_calls_, stream_.device, *calls);
        body(context, it);
      }
      const GraphExec made = capture.end(graph_);
      const bool updated = made == graph_;
      if (!updated) {
        drop_graph();
      }
      forget_calls();
      calls_ = std::move(calls);
      graph_ = made;
      context_.launch(graph_, stream_);
      require_nothing_left(it.close());
      held_ = capture.take();
      is_stale_ = false;
      eager_running_ = 0;
      ++stats.captures;
      stats.updates += updated ? 1 : 0;
    } catch (...) {
      capture.abandon();
      drop_graph();
      stats.why_eager = "its last capture failed";
      throw;
    }
  }

  // While a thread captures, what it queues as host functions is the graph's. It ends before the
  // capture does: from then on another thread may.
  class Collecting {
   public:
    Collecting(detail::HostCalls& host_calls, Device device, detail::RepeatedCalls& calls)
        : host_calls_(host_calls), device_(device) {
      host_calls_.collect(device, &calls);
    }
    Collecting(const Collecting&) = delete;
    Collecting& operator=(const Collecting&) = delete;
    Collecting(Collecting&&) = delete;
    Collecting& operator=(Collecting&&) = delete;
    ~Collecting() { host_calls_.collect(device_, nullptr); }

   private:
    detail::HostCalls& host_calls_;
    Device device_;
  };

  // Launches that are queued may still run them.
  void forget_calls() noexcept {
    detail::RepeatedCalls* const kept = calls_.release();
    if (kept == nullptr) {
      return;
    }
    try {
      host_calls_->queue(stream_, [kept] { delete kept; });
    } catch (...) {
      // After the runtime nobody else waits for what is queued.
      if (is_stream_done()) {
        delete kept;
      } else {
        detail::leave_behind(kept);
      }
    }
  }
  bool is_stream_done() const noexcept {
    try {
      return context_.wait_until(context_.newest(stream_),
                                 std::chrono::steady_clock::now() + calls_patience);
    } catch (...) {
      return false;
    }
  }

  static void require_nothing_left(const CloseResult& result) {
    if (!result.clean()) {
      throw std::invalid_argument(
          "[GraphStep::run] what a captured step makes ends with it, since the graph uses its "
          "memory: make results before, and write to them. " +
          (result.report != nullptr ? result.report->text() : std::string()));
    }
  }

  void drop_graph() noexcept {
    if (graph_.id != 0) {
      context_.destroy_graph(std::exchange(graph_, GraphExec{}));
      forget_calls();
    }
    held_.release();
    is_stale_ = false;
  }

  Loop& loop_;
  const std::shared_ptr<Domain> domain_;  // has the context
  const std::shared_ptr<detail::HostCalls> host_calls_;
  const Stream stream_;
  DeviceContext& context_;
  const Place place_;
  GraphExec graph_;
  std::unique_ptr<detail::RepeatedCalls> calls_;  // the graph's
  HeldBlocks held_;
  Made made_ = Made::otherwise;      // by the last run
  std::uint64_t eager_running_ = 0;  // one after the other
  bool is_told_ = false;             // that these are many
  bool is_stale_ = false;            // the graph is only to be changed
};

GraphStep::GraphStep(Loop& loop, Stream stream, Place at)
    : impl_(std::make_unique<Impl>(loop, stream, at)) {}

GraphStep::~GraphStep() = default;

void GraphStep::recapture() noexcept {
  impl_->recapture();
}

bool GraphStep::is_captured() const noexcept {
  return impl_->is_captured();
}

GraphStats GraphStep::stats() const noexcept {
  return impl_->stats;
}

void GraphStep::run_erased(Call body, void* context) {
  impl_->run(body, context);
}

}  // namespace ebb::inline v0
