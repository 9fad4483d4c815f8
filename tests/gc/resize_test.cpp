// SPDX-License-Identifier: Apache-2.0
// Resizing storages of every origin, and exchanging what two hold. [alloc.wrap] [gc.storage]
#include "domain_fixture.h"
#include "elements_fixture.h"

#include <doctest/doctest.h>

#include <array>
#include <cstring>
#include <stdexcept>
#include <string>

using namespace ebb;
using namespace ebb::literals;
using ebb::test::DomainFixture;
using ebb::test::Tracked;
using ebb::test::tracked_ops;

namespace {

int released = 0;
constexpr PtrOps counted_ops{[](void*, void*) noexcept { ++released; }, "counted"};
constexpr PtrOps borrowed_ops{nullptr, "borrowed"};

std::string text_in(const Storage& storage, std::size_t bytes) {
  return {static_cast<const char*>(storage.data()), bytes};
}

Storage with_text(Owner owner, const char* text) {
  Storage storage =
      Storage::make(owner, Bytes{std::strlen(text)}, default_align_cpu, {Place::here()});
  std::memcpy(storage.data(), text, std::strlen(text));
  return storage;
}

}  // namespace

TEST_CASE("resize: what fits is kept, and every handle sees the new bytes") {
  DomainFixture f;
  Storage a = with_text(f.domain->long_lived(), "abcdef");
  const Storage other_handle = a;
  a.resize(100000_B);
  CHECK(other_handle.bytes() == 100000_B);
  CHECK(text_in(other_handle, 6) == "abcdef");
  CHECK_FALSE(a.replaced());
  std::memset(a.data(), 'x', 100000);
  a.resize(3_B);
  CHECK(text_in(other_handle, 3) == "xxx");
  CHECK(other_handle.replaced());
  a.resize(0_B);
  CHECK(a.bytes() == 0_B);
  a.resize(8_B);
  CHECK(f.domain->memory().blocks_live == 1);
}

TEST_CASE("resize: foreign memory is copied into the owner's own, then released once") {
  DomainFixture f;
  released = 0;
  std::array<char, 4> foreign{'w', 'x', 'y', 'z'};
  Storage a = Storage::wrap(f.domain->long_lived(),
                            DataPtr(foreign.data(), nullptr, counted_ops, cpu), 4_B, {});
  a.resize(64_B);
  CHECK(released == 1);
  CHECK(a.data() != foreign.data());
  CHECK(text_in(a, 4) == "wxyz");
  CHECK(f.domain->memory().blocks_live == 1);
  a.reset();
  CHECK(released == 1);

  Storage b = Storage::wrap(f.domain->long_lived(),
                            DataPtr(foreign.data(), nullptr, borrowed_ops, cpu), 4_B, {});
  b.resize(2_B);
  CHECK(text_in(b, 2) == "wx");
  CHECK(foreign[3] == 'z');

  Storage c =
      Storage::wrap(f.domain->long_lived(), DataPtr(nullptr, &f, counted_ops, cpu), 0_B, {});
  c.resize(8_B);
  CHECK(released == 2);
}

TEST_CASE("resize: the owner's bytes follow") {
  DomainFixture f;
  CloseSeries series(f.domain, {.deadline = std::chrono::milliseconds(0), .warmup = 0});
  Storage kept;
  Storage small;
  {
    OpenOwner it(series, 0, Place::here());
    kept = DomainFixture::make(100_B);
    small = DomainFixture::make(1000_B);
    kept.resize(5000_B);
    small.resize(10_B);
    const CloseResult result = it.close();
    CHECK(result.stragglers == 2);
    CHECK(result.straggler_bytes == 5010_B);
  }
  CHECK(f.domain->stats().adopted_bytes == 5010_B);
  kept.resize(7000_B);
  CHECK(f.domain->stats().adopted_bytes == 7010_B);
  kept.reset();
  CHECK(f.domain->stats().adopted_bytes == 10_B);
  small.reset();
  CHECK(f.domain->stats().adopted_bytes == 0_B);
  CHECK(f.domain->memory().blocks_live == 0);
}

TEST_CASE("resize: a refused request leaves the storage as it was") {
  const std::shared_ptr<Domain> domain = Domain::make({.memory_limit = 4_MiB});
  Storage a = with_text(domain->long_lived(), "abc");
  const void* const before = a.data();
  CHECK_THROWS_AS(a.resize(64_MiB), OutOfMemory);
  CHECK(a.data() == before);
  CHECK(text_in(a, 3) == "abc");
  CHECK(domain->memory().blocks_live == 1);
  a.resize(1_MiB);
  CHECK(text_in(a, 3) == "abc");
  a.reset();
  domain->shutdown();
}

TEST_CASE("resize: elements are copied, new ones constructed, the old destroyed") {
  DomainFixture f;
  Storage a =
      Storage::make_elements(f.domain->long_lived(), element_ops<std::string>, 2, {Place::here()});
  auto* words = static_cast<std::string*>(a.data());
  words[0] = "a word that is too long to lie in the string itself";
  words[1] = "b";
  a.resize_elements(4);
  words = static_cast<std::string*>(a.data());
  CHECK(words[0] == "a word that is too long to lie in the string itself");
  CHECK(words[1] == "b");
  CHECK(words[3].empty());
  CHECK(a.bytes() == Bytes::of<std::string>(4));
  words[3] = "d, and it is long as well, so that a leak would show";
  a.resize_elements(1);
  CHECK(static_cast<std::string*>(a.data())->size() == 51);
  a.resize_elements(0);
  a.resize_elements(1);
  CHECK(static_cast<std::string*>(a.data())->empty());
}

TEST_CASE("resize: an element that throws at any index leaves the old ones") {
  DomainFixture f;
  Storage a = Storage::make_elements(f.domain->long_lived(), tracked_ops, 3, {Place::here()});
  static_cast<Tracked*>(a.data())[2].value = 42;
  for (long n = 1; n <= 6; ++n) {  // three copies, three constructions
    Tracked::throw_in = n;
    CHECK_THROWS_AS(a.resize_elements(6), std::runtime_error);
    CHECK(Tracked::throw_in == 0);
    CHECK(Tracked::live == 3);
    CHECK(a.bytes() == Bytes::of<Tracked>(3));
    CHECK(static_cast<Tracked*>(a.data())[2].value == 42);
    CHECK(f.domain->memory().blocks_live == 1);
  }
  a.resize_elements(6);
  CHECK(Tracked::live == 6);
  CHECK(static_cast<Tracked*>(a.data())[2].value == 42);
  a.reset();
  CHECK(Tracked::live == 0);
}

TEST_CASE("resize: wrapped elements move into memory of the owner") {
  DomainFixture f;
  static constexpr PtrOps ops{
      [](void* context, void*) noexcept { delete[] static_cast<Tracked*>(context); }, "new[]"};
  auto* const foreign = new Tracked[2];
  foreign[1].value = 9;
  Storage a = Storage::wrap_elements(f.domain->long_lived(), DataPtr(foreign, foreign, ops, cpu),
                                     tracked_ops, 2, {Place::here()});
  a.resize_elements(3);
  CHECK(Tracked::live == 3);
  CHECK(static_cast<Tracked*>(a.data())[1].value == 9);
  a.reset();
  CHECK(Tracked::live == 0);
  CHECK(f.domain->memory().blocks_live == 0);
}

TEST_CASE("resize: what may not change its size says why") {
  DomainFixture f;
  const Owner owner = f.domain->long_lived();
  Storage empty;
  CHECK_THROWS_WITH(empty.resize(1_B), "[Storage::resize] the storage is empty");
  Storage bytes = with_text(owner, "abc");
  CHECK_THROWS_WITH(bytes.resize_elements(1),
                    "[Storage::resize_elements] the storage holds plain bytes: use resize(Bytes)");
  Storage elements = Storage::make_elements(owner, tracked_ops, 1, {Place::here()});
  CHECK_THROWS_WITH(elements.resize(8_B),
                    "[Storage::resize] the storage holds constructed elements: use "
                    "resize_elements(count)");
  CHECK_THROWS_AS(elements.resize_elements(~std::size_t{0}), std::invalid_argument);
  int memory = 0;
  Storage device =
      Storage::wrap(owner, DataPtr(&memory, nullptr, borrowed_ops, {DeviceKind::sim, 0}), 4_B, {});
  CHECK_THROWS_WITH(device.resize(8_B),
                    "[Storage::resize] the storage is on sim:0, not in host memory");
  bytes.set_read_only();
  CHECK_THROWS_WITH(bytes.resize(8_B), "[Storage::resize] the storage is read-only");
  {
    Pool pool = f.domain->make_pool("loader", 0_B);
    const Owner loader = f.domain->open_loader_owner(pool);
    Storage slot = Storage::make(loader, 8_B, default_align_cpu, {});
    CHECK_THROWS_WITH(slot.resize(16_B),
                      "[Storage::resize] the storage is a loader's, whose slots have one size");
    Storage same = slot;
    CHECK_THROWS_AS(slot.swap(elements), std::invalid_argument);
    slot.reset();
    same.reset();
    f.domain->close_loader_owner(loader);
  }
  f.domain->shutdown();
  CHECK_THROWS_AS(elements.resize_elements(2), std::invalid_argument);
  CHECK(elements.bytes() == Bytes::of<Tracked>(1));
}

TEST_CASE("swap: two storages of one owner exchange all that they hold") {
  DomainFixture f;
  released = 0;
  Storage a = with_text(f.domain->long_lived(), "abc");
  Storage b = Storage::make_elements(f.domain->long_lived(), tracked_ops, 2, {Place::here()});
  int finalized = 0;
  a.add_finalizer([](void* n) noexcept { ++*static_cast<int*>(n); }, &finalized);
  const Storage handle_of_a = a;
  a.swap(b);
  CHECK(a.is_same(handle_of_a));
  CHECK(handle_of_a.element_ops() == &tracked_ops);
  CHECK(text_in(b, 3) == "abc");
  CHECK(b.bytes() == 3_B);
  CHECK(a.replaced());
  b.reset();  // what a had
  CHECK(finalized == 1);
  CHECK(Tracked::live == 2);
  a.swap(a);
  CHECK(Tracked::live == 2);
}

TEST_CASE("swap: between two owners it is refused, and changes nothing") {
  DomainFixture f;
  Storage a = with_text(f.domain->long_lived(), "abc");
  CloseSeries series(f.domain, {.name = "t"});
  OpenOwner it(series, 0, Place::here());
  Storage b = with_text(it.owner(), "de");
  CHECK_THROWS_WITH(a.swap(b),
                    "[Storage::swap] the storages have different owners: keep() or copy one of "
                    "them first");
  CHECK(text_in(a, 3) == "abc");
  CHECK(b.bytes() == 2_B);
  Storage none;
  CHECK_THROWS_AS(a.swap(none), std::invalid_argument);
}

TEST_CASE("swap: the bytes of an adopted straggler follow") {
  DomainFixture f;
  CloseSeries series(f.domain, {.deadline = std::chrono::milliseconds(0), .warmup = 0});
  Storage straggler;
  {
    OpenOwner it(series, 0, Place::here());
    straggler = DomainFixture::make(100_B);
  }
  Storage other = with_text(f.domain->long_lived(), "abc");
  CHECK(f.domain->stats().adopted_bytes == 100_B);
  straggler.swap(other);
  CHECK(f.domain->stats().adopted_bytes == 3_B);
  other.reset();
  CHECK(f.domain->stats().adopted_bytes == 3_B);
  straggler.reset();
  CHECK(f.domain->stats().adopted_bytes == 0_B);
}
