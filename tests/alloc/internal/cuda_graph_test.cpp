// SPDX-License-Identifier: Apache-2.0
// Capture, update and launch of graphs by the CUDA backend on a device. Includes the private
// backend header. [alloc.graph]
#include "cuda_rig.h"

#include <cuda_runtime_api.h>

#include <string>

using ebb::test::CudaRig;
using ebb::test::Pages;
using namespace ebb::literals;

namespace {

// Captures a fill of count bytes with value on the rig's stream.
ebb::GraphExec capture_fill(CudaRig& rig, const Pages& to, unsigned value, ebb::GraphExec into) {
  rig.backend->begin_capture(rig.stream);
  rig.backend->fill(to.begin(), {value, 1}, 100, rig.stream);
  return rig.backend->end_capture(rig.stream, into);
}

std::vector<unsigned char> launched(CudaRig& rig, ebb::GraphExec graph, const Pages& pages) {
  rig.backend->fill(pages.begin(), {0, 1}, 100, rig.stream);
  rig.backend->launch(graph, rig.stream);
  return rig.read<unsigned char>(pages.begin(), 100);
}

}  // namespace

TEST_CASE("cuda backend: captured work runs when it is launched, as often as asked") {
  CudaRig rig;
  const Pages pages(rig.backend->source(rig.device), 2_MiB);
  rig.backend->fill(pages.begin(), {0, 1}, 100, rig.stream);
  const ebb::GraphExec graph = capture_fill(rig, pages, 7, {});
  CHECK(rig.read<unsigned char>(pages.begin(), 100) == std::vector<unsigned char>(100, 0));
  for (int round = 0; round < 3; ++round) {
    CHECK(launched(rig, graph, pages) == std::vector<unsigned char>(100, 7));
  }
  rig.backend->destroy_graph(graph);
  CHECK_THROWS_AS(rig.backend->launch(graph, rig.stream), std::invalid_argument);
}

TEST_CASE(
    "cuda backend: work of the same shape changes a graph in place, other work makes another") {
  CudaRig rig;
  const Pages pages(rig.backend->source(rig.device), 2_MiB);
  const ebb::GraphExec graph = capture_fill(rig, pages, 7, {});
  CHECK(capture_fill(rig, pages, 9, graph) == graph);
  CHECK(launched(rig, graph, pages) == std::vector<unsigned char>(100, 9));

  rig.backend->begin_capture(rig.stream);
  rig.backend->fill(pages.begin(), {3, 1}, 100, rig.stream);
  rig.backend->fill(pages.begin(), {5, 1}, 50, rig.stream);
  const ebb::GraphExec other = rig.backend->end_capture(rig.stream, graph);
  CHECK(other != graph);
  CHECK(launched(rig, other, pages)[0] == 5);
  CHECK(launched(rig, graph, pages) == std::vector<unsigned char>(100, 9));
  CHECK(cudaPeekAtLastError() == cudaSuccess);
}

TEST_CASE("cuda backend: a capture takes in streams that wait for its events") {
  CudaRig rig;
  const ebb::Stream other = rig.new_stream(2);
  const Pages pages(rig.backend->source(rig.device), 2_MiB);
  const ebb::Event fork = rig.backend->make_event(rig.device);
  const ebb::Event join = rig.backend->make_event(rig.device);
  rig.backend->begin_capture(rig.stream);
  rig.backend->record(fork, rig.stream);
  rig.backend->wait(other, fork);
  rig.backend->fill(pages.begin(), {4, 1}, 100, other);
  rig.backend->record(join, other);
  rig.backend->wait(rig.stream, join);
  const ebb::GraphExec graph = rig.backend->end_capture(rig.stream, {});
  CHECK(launched(rig, graph, pages) == std::vector<unsigned char>(100, 4));
}

TEST_CASE(
    "cuda backend: a capture that was spoilt or left unjoined throws, and the stream goes on") {
  CudaRig rig;
  const ebb::Stream other = rig.new_stream(2);
  const Pages pages(rig.backend->source(rig.device), 2_MiB);
  const ebb::Event event = rig.backend->make_event(rig.device);
  rig.backend->begin_capture(rig.stream);
  rig.backend->record(event, rig.stream);
  SUBCASE("a query") {
    CHECK_THROWS_AS(rig.backend->is_done(event), ebb::DeviceError);
  }
  SUBCASE("a stream that was not joined") {
    rig.backend->wait(other, event);
    rig.backend->fill(pages.begin(), {4, 1}, 100, other);
  }
  SUBCASE("pinned pages") {
    ebb::Source& source = rig.backend->pinned(rig.device);
    const ebb::Range range = source.reserve(2_MiB);
    CHECK_FALSE(source.commit(range));
    source.release(range);
  }
  CHECK_THROWS_AS(rig.backend->end_capture(rig.stream, {}), ebb::DeviceError);
  rig.finish(rig.stream);
  CHECK(cudaPeekAtLastError() == cudaSuccess);
}

TEST_CASE("cuda backend: an abandoned capture leaves nothing behind") {
  CudaRig rig;
  const Pages pages(rig.backend->source(rig.device), 2_MiB);
  rig.backend->begin_capture(rig.stream);
  rig.backend->fill(pages.begin(), {4, 1}, 100, rig.stream);
  rig.backend->abandon_capture(rig.stream);
  rig.finish(rig.stream);
  rig.backend->abandon_capture(rig.stream);
  CHECK(cudaPeekAtLastError() == cudaSuccess);
  CHECK(launched(rig, capture_fill(rig, pages, 2, {}), pages)[99] == 2);
}

TEST_CASE("cuda backend: another thread's calls neither fail nor spoil a capture") {
  CudaRig rig;
  const ebb::Stream other = rig.new_stream(2);
  const Pages pages(rig.backend->source(rig.device), 2_MiB);
  rig.backend->begin_capture(rig.stream);
  rig.backend->fill(pages.begin(), {6, 1}, 100, rig.stream);
  std::string failure;
  std::thread([&rig, &failure, other] {
    try {
      const Pages device_pages(rig.backend->source(rig.device), 2_MiB);
      const Pages host_pages(rig.backend->pinned(rig.device), 2_MiB);
      rig.backend->copy(device_pages.begin(), host_pages.begin(), 1_MiB, other);
      const ebb::Event event = rig.record(other);
      while (!rig.backend->is_done(event)) {
        std::this_thread::yield();
      }
    } catch (const std::exception& error) {
      failure = error.what();
    }
  }).join();
  CHECK(failure.empty());
  const ebb::GraphExec graph = rig.backend->end_capture(rig.stream, {});
  CHECK(launched(rig, graph, pages) == std::vector<unsigned char>(100, 6));
}
