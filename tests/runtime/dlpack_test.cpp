// SPDX-License-Identifier: Apache-2.0
// DLPack both ways, against hand-made structs: what is told, who releases, what is refused.
#include "tensor_fixture.h"

#include <ebb/runtime/interop/dlpack.h>
#include <ebb/runtime/runtime.h>

#include <doctest/doctest.h>

#include <array>
#include <limits>
#include <stdexcept>
#include <string>
#include <thread>

using ebb::DType;
using ebb::Shape;
using ebb::Tensor;
using Fixture = ebb::test::TensorFixture;
namespace dlpack = ebb::dlpack;

namespace {

// A producer of its own: six i32 elements and a count of deleter calls.
template <class M>
struct Producer {
  std::array<std::int32_t, 6> elements{1, 2, 3, 4, 5, 6};
  std::array<std::int64_t, 9> shape{2, 3};
  std::array<std::int64_t, 9> strides{3, 1};
  int deleted = 0;
  M managed{};

  Producer() {
    managed.array = {elements.data(), {dlpack::device_cpu, 0}, 2, {dlpack::code_int, 32, 1},
                     shape.data(),    strides.data(),          0};
    managed.context = this;
    managed.deleter = [](M* self) { ++static_cast<Producer*>(self->context)->deleted; };
    if constexpr (std::is_same_v<M, dlpack::ManagedVersioned>) {
      managed.version = {1, 1};
    }
  }
  dlpack::Array& array() { return managed.array; }
};

// Somebody else's declaration of the layout.
struct TheirArray {
  void* data;
  std::int32_t device[2];
  std::int32_t ndim;
  std::uint32_t dtype;
  std::int64_t* shape;
  std::int64_t* strides;
  std::uint64_t byte_offset;
};
struct TheirManaged {
  TheirArray dl_tensor;
  void* manager_ctx;
  void (*deleter)(TheirManaged*);
};

}  // namespace

TEST_CASE_FIXTURE(Fixture, "dlpack out: the struct tells the view and holds the storage") {
  Tensor x = counting({2, 3});
  dlpack::Managed* const m = ebb::to_dlpack(x.transpose(0, 1).narrow(0, 1, 2));
  x = {};
  CHECK(m->array.ndim == 2);
  CHECK(m->array.shape[0] == 2);
  CHECK(m->array.shape[1] == 2);
  CHECK(m->array.strides[0] == 1);
  CHECK(m->array.strides[1] == 3);
  CHECK(m->array.device.type == dlpack::device_cpu);
  CHECK(m->array.dtype.code == dlpack::code_int);
  CHECK(m->array.dtype.bits == 32);
  CHECK(m->array.dtype.lanes == 1);
  const auto* const first = reinterpret_cast<const std::int32_t*>(
      static_cast<std::byte*>(m->array.data) + m->array.byte_offset);
  CHECK(first[0] == 2);
  CHECK(domain->stats().storages_live == 1);
  m->deleter(m);
  CHECK(domain->stats().storages_live == 0);
}

TEST_CASE_FIXTURE(Fixture,
                  "dlpack: every numeric dtype comes back as it went, strings are refused") {
  for (const DType dtype : {DType::f16, DType::bf16, DType::f32, DType::f64, DType::i8, DType::u8,
                            DType::i16, DType::i32, DType::i64, DType::boolean}) {
    CAPTURE(to_string(dtype));
    const Tensor x = ebb::full(owner, {2, 2}, 1, dtype);
    const Tensor y = ebb::from_dlpack(owner, ebb::to_dlpack(x));
    CHECK(to_string(y) == to_string(x));
    CHECK(y.storage().data() == x.storage().data());
    CHECK(to_string(ebb::from_dlpack(owner, ebb::to_dlpack_versioned(x))) == to_string(x));
  }
  CHECK_THROWS_WITH(ebb::to_dlpack(ebb::empty(owner, {1}, DType::string)),
                    "[to_dlpack] DLPack has no elements like string");
  CHECK_THROWS_AS(ebb::to_dlpack(Tensor()), std::invalid_argument);
}

TEST_CASE_FIXTURE(Fixture, "dlpack: read-only is told where it can be, and kept") {
  const Tensor x = counting({2});
  ebb::Storage(x.storage()).set_read_only();
  CHECK_THROWS_WITH(ebb::to_dlpack(x),
                    "[to_dlpack] the tensor is read-only, which this form of DLPack cannot say: "
                    "use to_dlpack_versioned, or clone() it");
  dlpack::ManagedVersioned* const m = ebb::to_dlpack_versioned(x);
  CHECK(m->version.major == 1);
  CHECK((m->flags & dlpack::flag_read_only) != 0);
  const Tensor y = ebb::from_dlpack(owner, m);
  CHECK(y.storage().read_only());
  CHECK_THROWS_AS(y.data<std::int32_t>(), std::invalid_argument);
  CHECK(y.data<const std::int32_t>()[1] == 2);
  CHECK_FALSE(
      ebb::from_dlpack(owner, ebb::to_dlpack_versioned(counting({2}))).storage().read_only());
}

TEST_CASE_TEMPLATE("dlpack in: the deleter is called once, with the last view", M, dlpack::Managed,
                   dlpack::ManagedVersioned) {
  Fixture f;
  Producer<M> producer;
  Tensor x = ebb::from_dlpack(f.owner, &producer.managed);
  CHECK(to_string(x) == "i32[2, 3] cpu\n[[1, 2, 3],\n [4, 5, 6]]");
  CHECK(x.data<std::int32_t>() == producer.elements.data());
  Tensor row = x.narrow(0, 1, 1);
  x = {};
  CHECK(producer.deleted == 0);
  CHECK(row.data<std::int32_t>()[0] == 4);
  std::jthread([last = std::move(row)]() mutable { last = {}; }).join();
  CHECK(producer.deleted == 1);
}

TEST_CASE_FIXTURE(Fixture, "dlpack in: strides, offsets, null strides, no elements, scalars") {
  Producer<dlpack::Managed> p;
  SUBCASE("transposed, from an offset") {
    p.shape = {2, 2};
    p.strides = {1, 3};
    p.array().byte_offset = 4;
    CHECK(to_string(ebb::from_dlpack(owner, &p.managed)) == "i32[2, 2] cpu\n[[2, 5],\n [3, 6]]");
  }
  SUBCASE("backwards") {
    p.array().data = &p.elements[5];
    p.strides = {-3, -1};
    const Tensor x = ebb::from_dlpack(owner, &p.managed);
    CHECK(to_string(x) == "i32[2, 3] cpu\n[[6, 5, 4],\n [3, 2, 1]]");
    CHECK(to_string(x.clone(owner)) == to_string(x));
    CHECK(x.storage().data() == p.elements.data());
  }
  SUBCASE("null strides are contiguous") {
    p.array().strides = nullptr;
    CHECK(ebb::from_dlpack(owner, &p.managed).data<std::int32_t>()[5] == 6);
  }
  SUBCASE("no elements, whatever data and strides say") {
    p.shape = {0, 3};
    p.strides = {std::numeric_limits<std::int64_t>::max(), -5};
    p.array().data = nullptr;
    CHECK(ebb::from_dlpack(owner, &p.managed).clone(owner).shape() == Shape{0, 3});
  }
  SUBCASE("a scalar") {
    p.array().ndim = 0;
    p.array().shape = nullptr;
    p.array().strides = nullptr;
    CHECK(ebb::from_dlpack(owner, &p.managed).item<int>() == 1);
  }
  SUBCASE("eight dimensions") {
    p.array().ndim = 8;
    p.shape = {1, 1, 1, 1, 1, 1, 2, 3, 0};
    p.array().strides = nullptr;
    CHECK(ebb::from_dlpack(owner, &p.managed).dims() == 8);
  }
  SUBCASE("pinned memory is host memory") {
    p.array().device.type = dlpack::device_cuda_host;
    CHECK(ebb::from_dlpack(owner, &p.managed).device() == ebb::cpu);
  }
  SUBCASE("memory of a device is described, not touched") {
    p.array().device = {dlpack::device_cuda, 1};
    CHECK(ebb::from_dlpack(owner, &p.managed).device() == ebb::Device{ebb::DeviceKind::cuda, 1});
  }
  CHECK(p.deleted == 1);
}

TEST_CASE_FIXTURE(Fixture, "dlpack in: a null deleter is no deleter") {
  Producer<dlpack::Managed> p;
  p.managed.deleter = nullptr;
  CHECK(ebb::from_dlpack(owner, &p.managed).elements() == 6);
}

TEST_CASE_FIXTURE(Fixture, "dlpack in: what cannot be taken is refused by name, and deleted once") {
  Producer<dlpack::Managed> p;
  std::string why;
  SUBCASE("lanes") {
    p.array().dtype.lanes = 4;
    why = "elements of 4 lanes are not supported";
  }
  SUBCASE("bits") {
    p.array().dtype.bits = 4;
    why = "elements of type code 0 with 4 bits are not supported";
  }
  SUBCASE("complex numbers") {
    p.array().dtype = {5, 64, 1};
    why = "elements of type code 5 with 64 bits are not supported";
  }
  SUBCASE("unsigned 64") {
    p.array().dtype = {dlpack::code_uint, 64, 1};
    why = "elements of type code 1 with 64 bits are not supported";
  }
  SUBCASE("device") {
    p.array().device.type = 8;
    why = "devices of type 8 are not supported";
  }
  SUBCASE("dimensions") {
    p.array().ndim = 9;
    why = "9 dimensions: at most 8 are supported";
  }
  SUBCASE("negative dimensions") {
    p.array().ndim = -1;
    why = "-1 dimensions: at most 8 are supported";
  }
  SUBCASE("null data") {
    p.array().data = nullptr;
    why = "data is null, and the shape [2, 3] has elements";
  }
  SUBCASE("null shape") {
    p.array().shape = nullptr;
    why = "the shape is null";
  }
  SUBCASE("alignment") {
    p.array().byte_offset = 2;
    why = "the elements are not aligned for i32";
  }
  SUBCASE("strides") {
    p.strides = {std::numeric_limits<std::int64_t>::max(), 2};
    why = "the strides of [2, 3] reach too far";
  }
  SUBCASE("a far stride") {
    p.strides = {std::int64_t{1} << 60, 1};
    why = "the strides of [2, 3] reach too far";
  }
  SUBCASE("below the address space") {
    p.strides = {-(std::int64_t{1} << 46), 1};
    why = "the elements of [2, 3] lie outside the address space";
  }
  SUBCASE("above the address space") {
    p.array().byte_offset = std::numeric_limits<std::uint64_t>::max() -
                            reinterpret_cast<std::uintptr_t>(p.elements.data()) - 7;
    why = "the elements of [2, 3] lie outside the address space";
  }
  SUBCASE("an offset that overflows") {
    p.array().byte_offset = std::numeric_limits<std::uint64_t>::max();
    why = "the elements of [2, 3] lie outside the address space";
  }
  SUBCASE("a count that overflows, without strides") {
    constexpr std::int64_t most = std::numeric_limits<std::int64_t>::max();
    p.shape = {most, most};
    p.array().strides = nullptr;
    CHECK_THROWS_AS(ebb::from_dlpack(owner, &p.managed), std::invalid_argument);
    CHECK(p.deleted == 1);
    return;
  }
  CHECK_THROWS_WITH(ebb::from_dlpack(owner, &p.managed), ("[from_dlpack] " + why).c_str());
  CHECK(p.deleted == 1);
  CHECK(domain->stats().storages_live == 0);
}

TEST_CASE_FIXTURE(Fixture, "dlpack in: sizes, owners, versions and null are checked") {
  Producer<dlpack::Managed> p;
  p.shape = {-1, 3};
  CHECK_THROWS_AS(ebb::from_dlpack(owner, &p.managed), std::invalid_argument);
  CHECK(p.deleted == 1);
  p.shape = {2, 3};
  CHECK_THROWS_AS(ebb::from_dlpack(ebb::Owner{}, &p.managed), std::invalid_argument);
  CHECK(p.deleted == 2);
  Producer<dlpack::ManagedVersioned> later;
  later.managed.version = {2, 0};
  CHECK_THROWS_WITH(ebb::from_dlpack(owner, &later.managed),
                    "[from_dlpack] version 2 of DLPack is not supported, only 1");
  CHECK(later.deleted == 1);
  dlpack::Managed* none = nullptr;
  CHECK_THROWS_AS(ebb::from_dlpack(owner, none), std::invalid_argument);
}

TEST_CASE_FIXTURE(Fixture, "dlpack in: a tensor that grows leaves the foreign memory") {
  Producer<dlpack::Managed> p;
  Tensor x = ebb::from_dlpack(owner, &p.managed);
  x.resize_({4, 3});
  CHECK(p.deleted == 1);
  CHECK(x.data<std::int32_t>()[5] == 6);
}

TEST_CASE("dlpack out: the deleter may be called on any thread, after the runtime") {
  dlpack::Managed* survivor = nullptr;
  {
    ebb::Runtime rt({.log = [](ebb::LogLevel, std::string_view) {}});
    survivor = ebb::to_dlpack(ebb::full(rt, {1000}, 7));
  }
  CHECK(static_cast<float*>(survivor->array.data)[999] == 7);
  std::jthread([&] { survivor->deleter(survivor); }).join();
}

TEST_CASE_FIXTURE(Fixture, "dlpack: another declaration of the structs serves as well") {
  auto* const theirs = ebb::to_dlpack<TheirManaged>(counting({3}));
  CHECK(theirs->dl_tensor.ndim == 1);
  CHECK(static_cast<std::int32_t*>(theirs->dl_tensor.data)[2] == 3);
  CHECK(to_string(ebb::from_dlpack(owner, theirs)) == "i32[3] cpu\n[1, 2, 3]");
}
