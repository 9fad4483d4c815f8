// SPDX-License-Identifier: Apache-2.0
// Mapped files and sealed segments: modes, offsets, descriptors, and a file that is cut while it is
// mapped. [alloc.map]
#include "support/child.h"
#include "support/sanitized.h"
#include "support/temporary_folder.h"

#include <ebb/alloc/error.h>
#include <ebb/alloc/mapped.h>

#include <doctest/doctest.h>

#include <array>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>
#include <system_error>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

using ebb::Bytes;
using ebb::MapMode;
using ebb::Mapped;

namespace {

// A file of the test's own.
struct TestFile {
  explicit TestFile(const std::string& contents = {})
      : path(folder.write("mapped", contents).string()) {}

  std::string contents() const {
    std::ifstream file(path);
    return {std::istreambuf_iterator<char>(file), {}};
  }

  ebb::test::TempFolder folder;
  std::string path;
};

std::string_view text_of(const Mapped& mapped) {
  return {static_cast<const char*>(mapped.data.get()), mapped.bytes.count()};
}

char* bytes_of(const Mapped& mapped) {
  return static_cast<char*>(mapped.data.get());
}

int open_descriptors() {
  int count = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    ++count;
  }
  return count;
}

template <class Error, class F>
std::string message_of(F f) {
  try {
    f();
  } catch (const Error& error) {
    return error.what();
  }
  return "nothing was thrown";
}

bool contains(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE("mapped: a file reads as it is, whole or from any byte on") {
  const std::string long_text(10000, 'x');
  const TestFile file("hello, tide" + long_text + "end");
  CHECK(text_of(ebb::map_file(file.path)) == "hello, tide" + long_text + "end");
  CHECK(text_of(ebb::map_file(file.path, {.offset = 7, .bytes = Bytes{4}})) == "tide");
  CHECK(text_of(ebb::map_file(file.path, {.offset = 10011})) == "end");
  const Mapped rest = ebb::map_file(file.path, {.offset = 10014});
  CHECK(rest.bytes == Bytes{0});
  CHECK(rest.data);
}

TEST_CASE("mapped: private writes stay in the process, shared ones reach the file") {
  const TestFile file("abc");
  {
    const Mapped own = ebb::map_file(file.path, {.mode = MapMode::private_copy});
    bytes_of(own)[0] = 'X';
    CHECK(text_of(own) == "Xbc");
  }
  CHECK(file.contents() == "abc");
  {
    const Mapped shared = ebb::map_file(file.path, {.mode = MapMode::shared});
    bytes_of(shared)[0] = 'X';
  }
  CHECK(file.contents() == "Xbc");
}

TEST_CASE("mapped: a file that is to grow has its room reserved") {
  const TestFile file("abc");
  const std::size_t size = 3 << 20;
  {
    const Mapped grown =
        ebb::map_file(file.path, {.mode = MapMode::shared, .bytes = Bytes{size}, .create = true});
    CHECK(text_of(grown).substr(0, 4) == std::string_view("abc\0", 4));
    CHECK(ebb::is_whole(grown.data));
    bytes_of(grown)[size - 1] = 'z';
  }
  CHECK(std::filesystem::file_size(file.path) == size);
  CHECK(file.contents().back() == 'z');
}

TEST_CASE("mapped: a full file system is an exception, not a signal") {
  // A limit on the size of files stands in for the full disk.
  const TestFile file;
  const int status = ebb::test::run_in_child([&] {
    std::signal(SIGXFSZ, SIG_IGN);
    const rlimit limit{1 << 20, 1 << 20};
    ::setrlimit(RLIMIT_FSIZE, &limit);
    const std::string message = message_of<std::system_error>([&] {
      ebb::map_file(file.path, {.mode = MapMode::shared, .bytes = Bytes{16 << 20}, .create = true});
    });
    return contains(message, "[map_file] cannot reserve") && contains(message, file.path) ? 0 : 1;
  });
  CHECK(ebb::test::exited_with_0(status));
}

TEST_CASE("mapped: bad requests name the file and what is wrong") {
  const TestFile file("abc");
  CHECK(contains(message_of<std::system_error>([] { ebb::map_file("/no/such/file"); }),
                 "/no/such/file"));
  CHECK(contains(message_of<std::system_error>([] { ebb::map_file("/tmp"); }), "/tmp"));
  const auto refused = [&](const ebb::MapOptions& options) {
    return contains(message_of<std::invalid_argument>([&] { ebb::map_file(file.path, options); }),
                    file.path);
  };
  CHECK(refused({.offset = 4}));
  CHECK(refused({.offset = 1, .bytes = Bytes{3}}));
  CHECK(refused({.bytes = Bytes{~std::size_t{0}}}));
  CHECK(refused({.offset = ~std::uint64_t{0}}));
  CHECK(refused({.create = true}));
  CHECK(refused({.mode = MapMode::shared, .create = true}));
  CHECK(file.contents() == "abc");
}

TEST_CASE("mapped: the descriptor can be read back from such a pointer and from no other") {
  const TestFile file("abc");
  const int before = open_descriptors();
  {
    Mapped mapped = ebb::map_file(file.path);
    const int descriptor = ebb::descriptor_of(mapped.data);
    REQUIRE(descriptor >= 0);
    char first = 0;
    CHECK(::pread(descriptor, &first, 1, 0) == 1);
    CHECK(first == 'a');
    const ebb::DataPtr moved = std::move(mapped.data);
    CHECK(ebb::descriptor_of(moved) == descriptor);
    CHECK(open_descriptors() == before + 1);
  }
  CHECK(open_descriptors() == before);
  int value = 0;
  static constexpr ebb::PtrOps borrowed{nullptr, "borrowed"};
  const ebb::DataPtr other(&value, nullptr, borrowed, ebb::cpu);
  CHECK(ebb::descriptor_of(other) == -1);
  CHECK(ebb::descriptor_of(ebb::DataPtr()) == -1);
  CHECK_THROWS_AS(ebb::is_whole(other), std::invalid_argument);
}

TEST_CASE("mapped: a file that was cut says so, and what lies before the cut stays readable") {
  const std::size_t page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  const TestFile file(std::string(3 * page, 'x'));
  const Mapped mapped = ebb::map_file(file.path);
  CHECK(ebb::is_whole(mapped.data));
  REQUIRE(::truncate(file.path.c_str(), static_cast<off_t>(page) + 5) == 0);
  CHECK_FALSE(ebb::is_whole(mapped.data));
  CHECK(bytes_of(mapped)[page + 4] == 'x');
  CHECK(bytes_of(mapped)[page + 5] == 0);  // the rest of a page that is still there in part
  if (!ebb::test::is_sanitized()) {
    const int status = ebb::test::run_in_child([&] {
      return static_cast<int>(*static_cast<volatile char*>(bytes_of(mapped) + 2 * page));
    });
    CHECK(WIFSIGNALED(status));
    CHECK(WTERMSIG(status) == SIGBUS);
  }
  REQUIRE(::truncate(file.path.c_str(), static_cast<off_t>(3 * page)) == 0);
  CHECK(ebb::is_whole(mapped.data));
}

TEST_CASE("segment: zeros that its descriptor opens elsewhere, and that nobody can cut") {
  const Mapped segment = ebb::make_segment(Bytes{10000}, "test");
  CHECK(segment.bytes == Bytes{10000});
  CHECK(bytes_of(segment)[9999] == 0);
  bytes_of(segment)[9999] = 'a';
  const int descriptor = ebb::descriptor_of(segment.data);
  CHECK(::ftruncate(descriptor, 0) != 0);
  CHECK(::ftruncate(descriptor, 1 << 20) != 0);
  {
    const Mapped again = ebb::open_segment(descriptor);
    CHECK(again.bytes == segment.bytes);
    CHECK(again.data.get() != segment.data.get());
    CHECK(ebb::descriptor_of(again.data) != descriptor);
    CHECK(bytes_of(again)[9999] == 'a');
    bytes_of(again)[0] = 'b';
    const Mapped own = ebb::open_segment(descriptor, MapMode::private_copy);
    bytes_of(own)[0] = 'c';
  }
  CHECK(bytes_of(segment)[0] == 'b');
}

TEST_CASE("segment: what could be cut, or is none, is refused") {
  const int open = ::memfd_create("loose", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  CHECK(contains(message_of<std::invalid_argument>([&] { ebb::open_segment(open); }), "sealed"));
  ::close(open);
  const TestFile file("abc");
  const int ordinary = ::open(file.path.c_str(), O_RDWR | O_CLOEXEC);
  CHECK_THROWS_AS(ebb::open_segment(ordinary), std::invalid_argument);
  ::close(ordinary);
  CHECK_THROWS_AS(ebb::open_segment(-1), std::system_error);
  CHECK_THROWS_AS(ebb::make_segment(Bytes{0}), std::invalid_argument);
  const int before = open_descriptors();
  try {
    ebb::make_segment(Bytes{std::size_t{1} << 50});
    FAIL("a petabyte was found");
  } catch (const ebb::OutOfMemory& error) {
    CHECK(error.info().asked == Bytes{std::size_t{1} << 50});
    CHECK(error.info().resource == "shared memory");
  }
  CHECK(open_descriptors() == before);
}

TEST_CASE("mapped: a file that could not be made leaves nothing behind") {
  const TestFile place;
  const std::string path = place.path + "-new";
  CHECK_THROWS_AS(
      ebb::map_file(
          path, {.mode = MapMode::shared, .bytes = Bytes{std::size_t{1} << 61}, .create = true}),
      std::system_error);
  CHECK_FALSE(std::filesystem::exists(path));
  // One that was there stays, as it was.
  const TestFile old("before");
  CHECK_THROWS_AS(ebb::map_file(old.path, {.mode = MapMode::shared,
                                           .bytes = Bytes{std::size_t{1} << 61},
                                           .create = true}),
                  std::system_error);
  CHECK(old.contents() == "before");
}

TEST_CASE("mapped: what is no file is an error at once") {
  const TestFile place;
  const std::string pipe = place.path + "-pipe";
  REQUIRE(::mkfifo(pipe.c_str(), 0600) == 0);
  CHECK_THROWS_AS(ebb::map_file(pipe), std::system_error);
  CHECK_THROWS_AS(ebb::map_file("/tmp"), std::system_error);
  std::filesystem::remove(pipe);
}
