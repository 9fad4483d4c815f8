// SPDX-License-Identifier: Apache-2.0
// Mapping a part of an opened file. Any thread.
#include "file_map.h"

#include <ebb/alloc/mapped.h>

#include <stdexcept>
#include <system_error>
#include <utility>

namespace ebb::inline v0::detail {

std::shared_ptr<const std::byte> map_part(const PositionedFile& file, std::uint64_t offset,
                                          std::uint64_t bytes) {
  try {
    auto mapped = std::make_shared<Mapped>(
        map_file(file.source(), {.offset = offset, .bytes = Bytes{bytes}}));
    const auto* const data = static_cast<const std::byte*>(mapped->data.get());
    return {std::move(mapped), data};
  } catch (const std::system_error& error) {
    file.fail(LoadErrorKind::io, "map", offset, error.what());
  } catch (const std::invalid_argument& error) {  // the file is another one by now
    file.fail(LoadErrorKind::corrupt, "map", offset, error.what());
  }
}

}  // namespace ebb::inline v0::detail
