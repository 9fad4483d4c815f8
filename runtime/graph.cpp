// SPDX-License-Identifier: Apache-2.0
// When a step is run, captured, launched. [alloc.graph]
#include <ebb/alloc/check.h>
#include <ebb/alloc/device_context.h>
#include <ebb/gc/graph_capture.h>
#include <ebb/runtime/graph.h>

#include <memory>
#include <string>
#include <utility>

namespace ebb::inline v0 {

class GraphStep::Impl {
 public:
  Impl(Loop& loop, Stream stream)
      : loop_(loop),
        domain_(loop.runtime().domain()),
        stream_(stream),
        context_(domain_->use(stream, "GraphStep::GraphStep")) {}
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;
  Impl(Impl&&) = delete;
  Impl& operator=(Impl&&) = delete;
  ~Impl() {
    if (!domain_->in_child()) {
      drop_graph();
    }
  }

  void run(Call body, void* context, const Place& at) {
    const OwnerScope scope(loop_.runtime().owner().on(stream_));
    if (graph_.id != 0 && !is_stale_) {
      return launch(at);
    }
    if (!is_confirmed_ && !is_stale_) {
      return run_eagerly(body, context, at);
    }
    capture(body, context, at);
  }

  void recapture() noexcept {
    is_stale_ = graph_.id != 0;
    held_.release();  // of which the same addresses are had again
  }
  bool is_captured() const noexcept { return graph_.id != 0 && !is_stale_; }

  GraphStats stats;

 private:
  void launch(const Place& at) {
    Iteration it(loop_, at);
    domain_->use(stream_, "GraphStep::run").launch(graph_, stream_);
    ++stats.launches;
    it.close_briefly();
  }

  void run_eagerly(Call body, void* context, const Place& at) {
    Iteration it(loop_, at);
    run_in(it, body, context);
  }
  void run_in(Iteration& it, Call body, void* context) {
    ++stats.eager;
    is_confirmed_ = false;
    body(context, it);
    const bool as_planned = is_as_planned(it.owner());
    is_confirmed_ = it.close_briefly().clean() && as_planned;
  }

  void capture(Call body, void* context, const Place& at) {
    GraphCapture capture(*domain_, stream_);
    Iteration it(loop_, at);
    if (!capture.begin(it.owner())) {
      drop_graph();
      return run_in(it, body, context);
    }
    try {
      body(context, it);
      const GraphExec made = capture.end(graph_);
      const bool updated = made == graph_;
      if (!updated) {
        drop_graph();
      }
      graph_ = made;
      context_.launch(graph_, stream_);
      require_nothing_left(it.close());
      held_ = capture.take();
      is_stale_ = false;
      ++stats.captures;
      stats.updates += updated ? 1 : 0;
    } catch (...) {
      capture.abandon();
      drop_graph();
      is_confirmed_ = false;
      throw;
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
    }
    held_.release();
    is_stale_ = false;
  }

  Loop& loop_;
  const std::shared_ptr<Domain> domain_;  // has the context
  const Stream stream_;
  DeviceContext& context_;
  GraphExec graph_;
  HeldBlocks held_;
  bool is_confirmed_ = false;  // the last run was as planned
  bool is_stale_ = false;      // the graph is only to be changed
};

GraphStep::GraphStep(Loop& loop, Stream stream) : impl_(std::make_unique<Impl>(loop, stream)) {}

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

void GraphStep::run_erased(Call body, void* context, const Place& at) {
  impl_->run(body, context, at);
}

}  // namespace ebb::inline v0
