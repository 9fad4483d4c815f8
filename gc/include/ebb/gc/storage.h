// SPDX-License-Identifier: Apache-2.0
// A reference-counted block with weak references and finalizers: what tensors view. Handles may be
// copied and dropped on any thread; one handle is not shared between threads without a lock.
#pragma once

#include <ebb/alloc/data_ptr.h>
#include <ebb/alloc/heap.h>
#include <ebb/gc/birth.h>
#include <ebb/gc/elements.h>
#include <ebb/gc/owner.h>

#include <atomic>
#include <cstdint>
#include <utility>

namespace ebb::inline v0 {

class Domain;

namespace detail {

struct StorageCell;

// What a storage is, one bit each.
enum StorageFlag : std::uint8_t {
  storage_read_only = 1,
  storage_replaced = 2,  // it shrank or was swapped: views made earlier check themselves
  storage_elements = 4,  // it holds constructed ones, not plain bytes
  storage_deferred = 8,  // the last reference only enqueues it
  storage_revoked = 16,  // its memory was given up while it lives
  storage_tracked = 32,  // holds a weak reference of its own, so that a scan may lock it
  storage_moved = 64,    // was transferred: its number is not of the owner that it has now
  storage_marked = 128,  // may have a name or finalizers, or count as an adopted straggler
};

// The part of a storage that handles read inline. Type-stable: counts may be read at any time.
struct StorageHead : Cell {
  // Strong references below, weak ones above; all strong ones together hold one weak one. In one
  // word, so that who finds only_one there knows that nobody else can change it: the last
  // reference goes without a read-modify-write.
  static constexpr std::uint64_t one_strong = 1;
  static constexpr std::uint64_t one_weak = std::uint64_t{1} << 32;
  static constexpr std::uint64_t only_one = one_weak | one_strong;
  static constexpr std::uint32_t strong_in(std::uint64_t counts) noexcept {
    return static_cast<std::uint32_t>(counts);
  }

  std::atomic<std::uint64_t> counts{0};
  void* data = nullptr;  // written before the first handle exists
  Bytes bytes;
  Device device;
  // StorageFlags. Relaxed: what they say of the bytes is known to who may use those; a close may
  // set storage_revoked while others read.
  std::atomic<std::uint8_t> flags{0};
  // How many StorageHolders there are. Sequentially consistent with storage_revoked: either who
  // begins to hold sees the flag, or who sets it sees the holder and takes it back.
  std::atomic<std::uint32_t> holders{0};

  bool has(std::uint8_t any_of) const noexcept {
    return (flags.load(std::memory_order_relaxed) & any_of) != 0;
  }
  void set(StorageFlag flag) noexcept;
  // Takes a strong reference while one lives; the caller holds a weak one, or knows that the
  // storage has one of its own. Returns whether it did.
  bool try_retain() noexcept;
};

void storage_last_strong(StorageHead* head) noexcept;
void storage_drop_weak(StorageHead* head) noexcept;

}  // namespace detail

// A strong reference. With the last one the bytes are released at once and the finalizers run.
class Storage {
 public:
  constexpr Storage() noexcept = default;
  Storage(const Storage& other) noexcept : head_(other.head_) {
    if (head_ != nullptr) {
      head_->counts.fetch_add(detail::StorageHead::one_strong, std::memory_order_relaxed);
    }
  }
  Storage(Storage&& other) noexcept : head_(std::exchange(other.head_, nullptr)) {}
  Storage& operator=(const Storage& other) noexcept { return *this = Storage(other); }
  Storage& operator=(Storage&& other) noexcept {
    Storage taken(std::move(other));
    std::swap(head_, taken.head_);  // what was here goes now, not when other does
    return *this;
  }
  ~Storage() { reset(); }

  // Returns uninitialised bytes charged to owner, on the device of owner's stream: who uses them
  // there, on that stream, comes after whoever had them before. Throws OutOfMemory, DeviceError,
  // and std::invalid_argument for a device or stream that is not the runtime's.
  static Storage make(const Owner& owner, Bytes bytes, Align align, const Birth& birth);
  // Returns host memory that the device of owner's stream copies from and to by itself. What is
  // queued with it is declared by used_on: then its bytes are nobody else's before that is done.
  static Storage make_pinned(const Owner& owner, Bytes bytes, Align align, const Birth& birth);
  // Takes ownership of foreign memory; owner is charged bytes. On failure data is released.
  static Storage wrap(const Owner& owner, DataPtr data, Bytes bytes, const Birth& birth);

  // Returns count value-constructed elements charged to owner, in host memory. They are destroyed
  // with the last strong reference, on the thread that drops it, before the bytes go. Throws
  // OutOfMemory and what a constructor throws; then nothing is left behind. ops must be static.
  static Storage make_elements(Owner owner, const ElementOps& ops, std::size_t count,
                               const Birth& birth);
  // As wrap, for count elements that live in data: its release destroys them.
  static Storage wrap_elements(Owner owner, DataPtr data, const ElementOps& ops, std::size_t count,
                               const Birth& birth);

  void reset() noexcept {
    using Head = detail::StorageHead;
    // The release of other holders pairs with either acquire: what they did to the bytes is seen
    // before these are released.
    if (head_ != nullptr && (head_->counts.load(std::memory_order_acquire) == Head::only_one ||
                             Head::strong_in(head_->counts.fetch_sub(
                                 Head::one_strong, std::memory_order_acq_rel)) == 1)) {
      detail::storage_last_strong(head_);
    }
    head_ = nullptr;
  }

  explicit operator bool() const noexcept { return head_ != nullptr; }
  void* data() const noexcept { return head_->data; }
  Bytes bytes() const noexcept { return head_->bytes; }
  Device device() const noexcept { return head_->device; }
  bool read_only() const noexcept { return head_->has(detail::storage_read_only); }
  // Returns whether it has ever shrunk or been swapped: a view made before may pass its end.
  bool replaced() const noexcept { return head_->has(detail::storage_replaced); }
  // Returns whether its memory was given up because it outlived its iteration: bytes read as zeros.
  bool revoked() const noexcept { return head_->has(detail::storage_revoked); }
  // Returns whether access needs a closer look: it was replaced or revoked.
  bool suspect() const noexcept {
    return head_->has(detail::storage_replaced | detail::storage_revoked);
  }
  bool has_elements() const noexcept { return head_->has(detail::storage_elements); }
  // Returns the table of the elements, or null when the storage holds plain bytes.
  const ElementOps* element_ops() const noexcept;
  std::uint32_t use_count() const noexcept {
    return head_ == nullptr
               ? 0
               : detail::StorageHead::strong_in(head_->counts.load(std::memory_order_relaxed));
  }
  bool is_same(const Storage& other) const noexcept { return head_ == other.head_; }

  // Returns the lifetimes that it belongs to; valid as long as the storage.
  Domain& domain() const noexcept;
  // Returns the stream that it was made on; of what has none, the default one of its device.
  Stream stream() const noexcept;
  // Returns whether it is host memory that a device copies from and to by itself.
  bool is_pinned() const noexcept;
  // Says that stream, too, is used with the bytes: once the last reference has gone they are nobody
  // else's before what is queued there by then is done, and the iteration of this thread is not
  // retired before that. Any thread that holds a reference. Throws std::invalid_argument for a
  // stream of another device. [alloc.cuda]
  void used_on(Stream stream) const;
  // Logs a warning, once for each pair of places, when the running task's stream is of the
  // storage's device, and neither the one that it was made on nor one that used_on() has named. at
  // is where it is used. Called by access to elements at checks=full.
  void check_stream(const Place& at) const;

  // From now on tensors refuse to hand out writable data. Call before the storage is shared.
  void set_read_only() noexcept { head_->set(detail::storage_read_only); }
  // From now on its last reference does not release it but leaves that to the next close or open of
  // a loop, to a request for memory that would fail else, or to Domain::run_deferred: for what
  // takes long to release. It stays charged until then, so its iteration waits for it. Any thread
  // that holds a reference. [gc.defer]
  void defer_release() noexcept { head_->set(detail::storage_deferred); }
  // Throws RevokedError, with function in brackets, if it is revoked. Any thread.
  void require_memory(const char* function) const {
    if (revoked()) [[unlikely]] {
      check_revoked(function);
    }
  }
  // Sets the name that reports show; it must outlive the storage (use a literal). Any thread.
  void set_name(const char* name) noexcept;
  // Runs finalizer(context) after the bytes are released, in order of registration; the same pair
  // registered again is one. Any thread that holds a reference.
  void add_finalizer(void (*finalizer)(void* context) noexcept, void* context);

  // Makes the storage hold bytes (uninitialised from the old end on) or count elements (new ones
  // value-constructed). New memory is taken from the storage's own owner, whatever the old came
  // from; what fits is copied, and the old is released. Every handle sees the new address; raw
  // pointers into the old are dangling. On failure nothing has changed. Nobody else may use the
  // storage meanwhile. Throws OutOfMemory; std::invalid_argument for a storage that is read-only,
  // a loader's or not in host memory, when the owner's runtime has ended, and for the form that
  // does not fit the storage.
  void resize(Bytes bytes);
  void resize_elements(std::size_t count);
  // Exchanges all that two storages of one owner hold: memory, device, finalizers, names, what
  // reports say. Every handle of one sees what the other had. Nobody else may use either
  // meanwhile. Throws std::invalid_argument, and changes nothing, when the owners differ or are
  // loaders, or one is on a device.
  // NOLINTNEXTLINE(bugprone-exception-escape): between two owners it throws
  void swap(Storage& other);

  // Moves the charge to owner: keep and adopt are built on it. Any thread. [gc.count]
  void transfer(const Owner& owner) noexcept;
  // Returns who is charged now: kind and, for tests, the record.
  OwnerKind owner_kind() const noexcept;
  const OwnerRecord* owner_record() const noexcept;

 private:
  // make() for whoever it is; and once the thread's own heap has refused.
  static Storage make_on_device(const Owner& owner, Bytes bytes, Align align, const Birth& birth);
  static Storage make_in(const Owner& owner, Bytes bytes, Align align, const Birth& birth,
                         bool pinned);
  static Storage make_slowly(const Owner& owner, Bytes bytes, Align align, const Birth& birth);
  [[gnu::cold]] static Storage make_after_refusal(const Owner& owner, Bytes bytes, Align align,
                                                  const Birth& birth);
  friend class WeakStorage;
  friend class RawMemory;
  friend class StorageHolder;
  explicit Storage(detail::StorageHead* head) noexcept : head_(head) {}
  // Throws if the flag stays: a close sets it before it knows whether the memory can go.
  void check_revoked(const char* function) const;
  [[noreturn]] void fail_revoked(const char* function) const;

  detail::StorageHead* head_ = nullptr;
};

// A weak reference: does not keep the bytes.
class WeakStorage {
 public:
  constexpr WeakStorage() noexcept = default;
  explicit WeakStorage(const Storage& storage) noexcept : head_(storage.head_) { retain(); }
  WeakStorage(const WeakStorage& other) noexcept : head_(other.head_) { retain(); }
  WeakStorage(WeakStorage&& other) noexcept : head_(std::exchange(other.head_, nullptr)) {}
  WeakStorage& operator=(const WeakStorage& other) noexcept { return *this = WeakStorage(other); }
  WeakStorage& operator=(WeakStorage&& other) noexcept {
    WeakStorage taken(std::move(other));
    std::swap(head_, taken.head_);  // what was here goes now, not when other does
    return *this;
  }
  ~WeakStorage();

  // Returns a strong reference while one lives somewhere, else an empty one. No resurrection.
  Storage lock() const noexcept;
  // Returns whether lock() gives an empty one, from now on for ever. Its finalizers may not have
  // run to their end yet.
  bool expired() const noexcept {
    return head_ == nullptr ||
           detail::StorageHead::strong_in(head_->counts.load(std::memory_order_relaxed)) == 0;
  }

 private:
  void retain() noexcept {
    if (head_ != nullptr) {
      head_->counts.fetch_add(detail::StorageHead::one_weak, std::memory_order_relaxed);
    }
  }

  detail::StorageHead* head_ = nullptr;
};

// A strong reference that says who holds it: reports name the holder, and what is held is not
// revoked. For memory that others use by address: exports, loans, captures. Any thread.
class StorageHolder {
 public:
  StorageHolder() noexcept = default;
  // who must outlive the holder; use a literal. Throws RevokedError, with function in brackets,
  // when the storage was revoked; it is not from now on.
  StorageHolder(Storage storage, const char* who, const char* function);
  StorageHolder(StorageHolder&&) noexcept = default;
  StorageHolder& operator=(StorageHolder&& other) noexcept;
  StorageHolder(const StorageHolder&) = delete;
  StorageHolder& operator=(const StorageHolder&) = delete;
  ~StorageHolder() { release(); }

  const Storage& storage() const noexcept { return storage_; }

 private:
  friend class RawMemory;
  void release() noexcept;

  Storage storage_;
};

}  // namespace ebb::inline v0
