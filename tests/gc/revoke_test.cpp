// SPDX-License-Identifier: Apache-2.0
// Policy::revoke: stragglers lose their memory and keep their addresses. [gc.policy]
#include "domain_fixture.h"
#include "elements_fixture.h"
#include "support/process_status.h"
#include "support/sanitized.h"

#include <ebb/gc/error.h>

#include <doctest/doctest.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <memory>
#include <vector>

using namespace ebb;
using namespace ebb::literals;
using ebb::test::DomainFixture;

namespace {

// A loop that gives up at once what straggles.
struct RevokingLoop {
  DomainFixture f;
  CloseSeries series{f.domain,
                     {.deadline = std::chrono::milliseconds(0), .policy = Policy::revoke}};

  // Makes a storage full of ones that outlives its iteration.
  Storage leak(Bytes bytes, std::uint64_t iteration = 0) {
    OpenOwner it(series, iteration, Place::here());
    Storage leaked = DomainFixture::make(bytes);
    std::memset(leaked.data(), 1, bytes.count());
    CHECK(it.close().stragglers == 1);
    return leaked;
  }
};

constexpr PtrOps borrowed_ops{[](void*, void*) noexcept {}, "borrowed"};

bool is_zero(const Storage& storage) {
  const auto* const bytes = static_cast<const char*>(storage.data());
  return std::all_of(bytes, bytes + storage.bytes().count(), [](char c) { return c == 0; });
}

}  // namespace

TEST_CASE("revoke: pages go back at once, raw pointers read zeros, access is refused by name") {
  RevokingLoop loop;
  const std::size_t before = ebb::test::self_status_bytes("VmRSS:");
  const Storage leaked = loop.leak(16_MiB);
  CHECK((ebb::test::is_sanitized() || ebb::test::self_status_bytes("VmRSS:") < before + (4 << 20)));
  CHECK(leaked.revoked());
  CHECK(leaked.owner_kind() == OwnerKind::runtime);
  CHECK(is_zero(leaked));
  CHECK_THROWS_WITH_AS(leaked.require_memory("Tensor::data"),
                       doctest::Contains("[Tensor::data] the memory of the storage made at"),
                       RevokedError);
  Storage resized = leaked;
  CHECK_THROWS_AS(resized.resize(1_KiB), RevokedError);
  // Only what is left of it, below a page at each end, counts against straggler_bytes.
  CHECK(loop.f.domain->stats().adopted_live == 1);
  CHECK(loop.f.domain->stats().adopted_bytes < 8_KiB);
}

TEST_CASE("revoke: a raw pointer kept by mistake never sees another tensor") {
  RevokingLoop loop;
  for (const Bytes bytes : {100_B, 5000_B, 1_MiB}) {
    const Storage leaked = loop.leak(bytes);
    const auto* const begin = static_cast<const std::byte*>(leaked.data());
    OpenOwner it(loop.series, 1, Place::here());
    for (int i = 0; i < 50; ++i) {
      const Storage other = DomainFixture::make(bytes);
      std::memset(other.data(), 2, bytes.count());
      const auto* const at = static_cast<const std::byte*>(other.data());
      CHECK((at >= begin + bytes.count() || at + bytes.count() <= begin));
      REQUIRE(is_zero(leaked));
    }
    CHECK(it.close().clean());
  }
}

TEST_CASE("revoke: a cycle of references that leaks each iteration costs no memory") {
  struct Node {
    Storage value;
    std::shared_ptr<Node> other;
  };
  RevokingLoop loop;
  std::vector<std::weak_ptr<Node>> nodes;  // so that the test can end the cycles
  for (std::uint64_t i = 0; i < 200; ++i) {
    OpenOwner it(loop.series, i, Place::here());
    auto a = std::make_shared<Node>();
    a->other = std::make_shared<Node>();
    a->other->other = a;
    a->value = DomainFixture::make(1_MiB);
    a->other->value = DomainFixture::make(100_B);
    nodes.push_back(a);
    CHECK(it.close().revoked == 2);
  }
  CHECK(loop.f.domain->memory().reserved < 8_MiB);
  for (const std::weak_ptr<Node>& node : nodes) {
    node.lock()->other.reset();
  }
  CHECK(loop.f.domain->stats().storages_live == 0);
  CHECK(loop.f.domain->stats().adopted_bytes == 0_B);
}

TEST_CASE("revoke: what cannot be revoked is adopted: strings, foreign memory, what is held") {
  RevokingLoop loop;
  OpenOwner it(loop.series, 0, Place::here());
  const Owner owner = it.owner();
  const Storage strings =
      Storage::make_elements(owner, element_ops<std::string>, 10, {Place::here()});
  std::vector<int> host(1000, 7);
  const Storage wrapped = Storage::wrap(owner, DataPtr(host.data(), nullptr, borrowed_ops, cpu),
                                        4000_B, {Place::here()});
  StorageHolder held(DomainFixture::make(1_MiB), "a test", "test");
  std::memset(held.storage().data(), 1, 1 << 20);
  const Storage plain = DomainFixture::make(1_MiB);
  const CloseResult result = it.close();
  CHECK(result.stragglers == 4);
  CHECK(result.revoked == 1);
  CHECK(plain.revoked());
  CHECK_FALSE(strings.revoked());
  CHECK_FALSE(wrapped.revoked());
  CHECK_FALSE(held.storage().revoked());
  CHECK(static_cast<const char*>(held.storage().data())[5] == 1);
  CHECK(result.report->action == CloseAction::revoked);
  CHECK(result.report->revoked_count == 1);
  CHECK(result.report->text().find("; 1 revoked, which gave ") != std::string::npos);
  CHECK(result.report->text().find("held by a test") != std::string::npos);
  CHECK_THROWS_AS(StorageHolder(plain, "late", "to_dlpack"), RevokedError);
}

TEST_CASE("revoke: what was resized is revoked too; weak references see no bytes") {
  RevokingLoop loop;
  OpenOwner it(loop.series, 0, Place::here());
  Storage resized = DomainFixture::make(100_B);
  resized.resize(1_MiB);
  std::memset(resized.data(), 1, 1 << 20);
  const WeakStorage weak(resized);
  CHECK(it.close().revoked == 1);
  CHECK(is_zero(resized));
  CHECK(weak.lock().revoked());
  resized.reset();
  CHECK_FALSE(weak.lock());
}

TEST_CASE("revoke: finalizers run when the last reference goes, not before") {
  RevokingLoop loop;
  int runs = 0;
  Storage leaked;
  {
    OpenOwner it(loop.series, 0, Place::here());
    leaked = DomainFixture::make(1_MiB);
    leaked.add_finalizer([](void* count) noexcept { ++*static_cast<int*>(count); }, &runs);
  }
  CHECK(leaked.revoked());
  CHECK(runs == 0);
  leaked.reset();
  CHECK(runs == 1);
}

TEST_CASE("revoke: what is kept in time is left alone, also by a later close") {
  RevokingLoop loop;
  Storage kept;
  {
    OpenOwner it(loop.series, 0, Place::here());
    kept = DomainFixture::make(1_MiB);
    std::memset(kept.data(), 1, 1 << 20);
    kept.transfer(it.parent());
  }
  CHECK(loop.leak(1_MiB, 1).revoked());
  CHECK_FALSE(kept.revoked());
  CHECK(static_cast<const char*>(kept.data())[1 << 19] == 1);
}
