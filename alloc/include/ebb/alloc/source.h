// SPDX-License-Identifier: Apache-2.0
// Where a heap gets address space and pages from. Used by heaps only.
// Implementations must allow calls from several threads at once.
#pragma once

#include <ebb/alloc/bytes.h>
#include <ebb/alloc/device.h>

#include <cstddef>

namespace ebb::inline v0 {

// A range of addresses. Empty when begin is null.
struct Range {
  std::byte* begin = nullptr;
  Bytes bytes;

  std::byte* end() const { return begin + bytes.count(); }
  explicit operator bool() const { return begin != nullptr; }
};

// Address space first, pages on commit. Ranges for commit and decommit are multiples of page_size
// and lie within one reserved range. Nothing throws: a refusal is an empty range or false.
class Source {
 public:
  Source() = default;
  Source(const Source&) = delete;
  Source& operator=(const Source&) = delete;
  Source(Source&&) = delete;
  Source& operator=(Source&&) = delete;
  virtual ~Source() = default;

  // Returns reserved address space of at least bytes, aligned to a page; no page is used yet.
  virtual Range reserve(Bytes bytes) noexcept = 0;
  // Gives back a whole range that reserve returned, with its pages.
  virtual void release(Range range) noexcept = 0;
  // Makes the pages of range usable. Fresh and decommitted CPU pages read as zeros.
  virtual bool commit(Range range) noexcept = 0;
  // Gives the pages of range back; the addresses stay reserved.
  virtual void decommit(Range range) noexcept = 0;

  virtual Bytes page_size() const noexcept = 0;
  virtual Device device() const noexcept = 0;
  virtual const char* name() const noexcept = 0;
};

// Returns the source of anonymous pages of the operating system, one for the whole process; it
// has no state. Pages are committed by touching them, so commit is no system call, and a page lies
// on the node of the thread that touches it first: the heap's owner. Never huge pages, whatever the
// system's default: a heap that touches one byte of one would hold 2 MiB.
Source& system_source() noexcept;

// The same with huge pages where the system has them: for large and long-lived memory. The first
// touch of each 2 MiB takes long, and what is reserved counts small pages.
Source& huge_page_source() noexcept;

}  // namespace ebb::inline v0
