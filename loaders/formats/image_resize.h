// SPDX-License-Identifier: Apache-2.0
// Scaling a picture, bilinear with antialias, in the whole numbers that Pillow uses. Used by the
// transforms. Any thread.
#pragma once

#include <ebb/loaders/image.h>

namespace ebb::inline v0::detail {

// Returns view scaled to height x width, in the context's scratch; view itself when it has that
// size already. Throws OutOfMemory.
ImageView resize(const ImageView& view, std::int64_t height, std::int64_t width,
                 const StageContext& context);

}  // namespace ebb::inline v0::detail
