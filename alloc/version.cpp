// SPDX-License-Identifier: Apache-2.0
// The linked library's version, and the proof that header and build files agree on it.
// Used through ebb/alloc/version.h. Any thread.
#include <ebb/alloc/version.h>

#include <string_view>

namespace ebb::inline v0 {

#define EBB_TEXT_OF(x) #x
#define EBB_TEXT(x) EBB_TEXT_OF(x)

static_assert(std::string_view(EBB_VERSION) == EBB_PROJECT_VERSION,
              "ebb/alloc/version.h and meson.build differ");
static_assert(
    std::string_view(EBB_VERSION) ==
        EBB_TEXT(EBB_VERSION_MAJOR) "." EBB_TEXT(EBB_VERSION_MINOR) "." EBB_TEXT(EBB_VERSION_PATCH),
    "the macros of ebb/alloc/version.h differ");

const char* version() noexcept {
  return EBB_VERSION;
}

}  // namespace ebb::inline v0
