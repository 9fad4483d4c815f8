// SPDX-License-Identifier: Apache-2.0
// Progress, the summary, and the JSON file.
#include "report.h"

#include <ebb/gc/report.h>
#include <ebb/runtime/device_stream.h>

#include <nlohmann/json.hpp>

#include <cmath>
#include <cstdio>

#include <nn/output_file.h>
#include <sys/resource.h>

namespace {

std::size_t peak_rss_bytes() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<std::size_t>(usage.ru_maxrss) * 1024;
}

const char* name_of(ebb::ExecutorKind kind) {
  return kind == ebb::ExecutorKind::tbb ? "tbb" : "jthread";
}

}  // namespace

Report::Report(const Options& options, ebb::Loop& loop, std::uint64_t steps_per_epoch)
    : options_(options),
      loop_(loop),
      steps_per_epoch_(steps_per_epoch),
      losses_(ebb::empty({static_cast<std::int64_t>(steps_per_epoch * options.epochs)})),
      begin_(std::chrono::steady_clock::now()) {}

double Report::seconds() const {
  return std::chrono::duration<double>(end_ - begin_).count();
}

void Report::step(std::int64_t samples, const ebb::Tensor& loss) {
  if (!progress_.has_value()) {
    const std::uint64_t epoch = steps_ / steps_per_epoch_ + 1;
    progress_.emplace(ebb::ProgressOptions{
        .label = "epoch " + std::to_string(epoch) + "/" + std::to_string(options_.epochs),
        .total = steps_per_epoch_});
  }
  losses_.narrow(0, static_cast<std::int64_t>(steps_++), 1).copy_(loss.reshape({1}));
  samples_ += static_cast<std::uint64_t>(samples);
  char note[32];
  int length = 0;
  for (const ebb::LoggedValue& value : loop_.logged()) {  // what has arrived by now
    length = std::snprintf(note, sizeof note, "loss %.4f", value.last);
  }
  progress_->step({note, static_cast<std::size_t>(length)});
  if (steps_ % steps_per_epoch_ == 0) {
    end_epoch();
  }
}

void Report::end_epoch() {
  progress_.reset();
  if (losses_.device() != ebb::cpu) {
    ebb::synchronise(loop_.runtime(), losses_.stream(), ebb::Milliseconds(60'000));
  }
  for (const ebb::LoggedValue& value : loop_.logged()) {
    std::printf("epoch %llu: %.*s %.4f\n",
                static_cast<unsigned long long>(steps_ / steps_per_epoch_),
                static_cast<int>(value.name.size()), value.name.data(), value.mean);
  }
  std::fflush(stdout);
  loop_.reset_logged();
}

void Report::end_training() {
  end_ = std::chrono::steady_clock::now();
  progress_.reset();
  used_ = loop_.stats();
  if (options_.device != ebb::cpu) {
    device_ = loop_.runtime().cache_info(options_.device);
  }
  for (const ebb::LoopPlans& plans : loop_.plans()) {
    if (!plans.plans.empty()) {
      plan_ = plans;
    }
  }
}

void Report::print_device() const {
  if (options_.device != ebb::cpu) {
    std::printf("memory of %s: live peak %s, reserved %s; pinned for it: reserved %s\n",
                to_string(options_.device).c_str(), to_string(device_.memory.live_peak).c_str(),
                to_string(device_.memory.reserved).c_str(),
                to_string(device_.pinned.reserved).c_str());
  }
}

void Report::print_plan() const {
  if (!plan_) {
    std::printf("no iteration was planned: too few have repeated\n");
    return;
  }
  const ebb::PlanInfo& plan = plan_->plans.front();
  std::printf(
      "plan of an iteration%s: %zu buffers, height %s, max live %s, gap %.4f; %llu of %llu "
      "iterations followed it\n",
      plan_->on_device ? " on the device" : "", plan.buffers, to_string(plan.height).c_str(),
      to_string(plan.max_live).c_str(), plan.gap(),
      static_cast<unsigned long long>(plan_->stats.followed),
      static_cast<unsigned long long>(plan_->stats.iterations));
}

void Report::finish(double accuracy) {
  std::printf("test accuracy %.4f\n", accuracy);
  std::printf("%llu steps in %.2f s: %.0f samples/s\n", static_cast<unsigned long long>(steps_),
              seconds(), static_cast<double>(samples_) / seconds());
  std::printf("iterations used: live peak %s, reserved %s, stragglers %llu; process: peak %s\n",
              to_string(used_.live_peak).c_str(), to_string(used_.reserved).c_str(),
              static_cast<unsigned long long>(used_.stragglers),
              to_string(ebb::Bytes{peak_rss_bytes()}).c_str());
  print_device();
  print_plan();
  if (!options_.json_path.empty()) {
    write_json(accuracy);
  }
}

namespace {

nlohmann::ordered_json json_of(const std::optional<ebb::LoopPlans>& plans) {
  if (!plans) {
    return nullptr;
  }
  const ebb::PlanInfo& plan = plans->plans.front();
  return {{"buffers", plan.buffers},           {"height", plan.height.count()},
          {"max_live", plan.max_live.count()}, {"gap", plan.gap()},
          {"followed", plans->stats.followed}, {"displaced", plans->stats.displaced}};
}

}  // namespace

void Report::write_json(double accuracy) const {
  const nlohmann::ordered_json head = {{"accuracy", accuracy},
                                       {"samples_per_s", static_cast<double>(samples_) / seconds()},
                                       {"steps", steps_},
                                       {"peak_rss_bytes", peak_rss_bytes()},
                                       {"live_peak_bytes", used_.live_peak.count()},
                                       {"reserved_bytes", used_.reserved.count()},
                                       {"device_live_peak_bytes", device_.memory.live_peak.count()},
                                       {"device_reserved_bytes", device_.memory.reserved.count()},
                                       {"pinned_reserved_bytes", device_.pinned.reserved.count()},
                                       {"stragglers", used_.stragglers},
                                       {"plan", json_of(plan_)},
                                       {"options",
                                        {{"data", options_.synthetic ? "synthetic" : options_.data},
                                         {"epochs", options_.epochs},
                                         {"batch", options_.batch},
                                         {"workers", options_.workers},
                                         {"threads", loop_.runtime().step_executor().concurrency()},
                                         {"seed", options_.seed},
                                         {"lr", options_.rate},
                                         {"momentum", options_.momentum},
                                         {"mean", options_.mean},
                                         {"std", options_.std},
                                         {"device", ebb::to_string(options_.device)},
                                         {"executor", name_of(options_.executor)}}}};
  std::string text = head.dump(2);
  text.erase(text.rfind("\n}"));
  // By hand: nine digits tell any two floats apart, and the library would print seventeen.
  text += ",\n  \"losses\": [";
  char number[32];
  const ebb::Tensor losses = losses_.narrow(0, 0, static_cast<std::int64_t>(steps_)).to(ebb::cpu);
  for (const float& loss : losses.span<const float>()) {
    std::snprintf(number, sizeof number, "%.9g", static_cast<double>(loss));
    text += text.ends_with('[') ? "" : ", ";
    text += std::isfinite(loss) ? number : "null";
  }
  text += "]\n}\n";
  ebb::nn::write_file(options_.json_path, text);
}
