// SPDX-License-Identifier: Apache-2.0
// The version of ebb, as macros for the preprocessor and as what the linked library says.
// Used by hosts and by the ebb command. Any thread.
#pragma once

#define EBB_VERSION_MAJOR 0
#define EBB_VERSION_MINOR 1
#define EBB_VERSION_PATCH 0
#define EBB_VERSION "0.1.0"

namespace ebb::inline v0 {

// Returns the version of the library that is linked, which can differ from EBB_VERSION, the
// headers'. Never null.
const char* version() noexcept;

}  // namespace ebb::inline v0
