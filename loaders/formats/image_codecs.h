// SPDX-License-Identifier: Apache-2.0
// What the decoders share, and how image_decoders() gets those that this build has. Any thread.
#pragma once

#include <ebb/loaders/image_decoder.h>

#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <string_view>

namespace ebb::inline v0::detail {

std::shared_ptr<const ImageDecoder> png_decoder();
std::shared_ptr<const ImageDecoder> jpeg_decoder();
std::shared_ptr<const ImageDecoder> webp_decoder();

inline bool begins_with(std::span<const std::byte> bytes, std::string_view start) noexcept {
  return bytes.size() >= start.size() && std::memcmp(bytes.data(), start.data(), start.size()) == 0;
}

inline const std::uint8_t* octets(std::span<const std::byte> bytes) noexcept {
  return reinterpret_cast<const std::uint8_t*>(bytes.data());
}

// Makes grey pixels of coloured ones: grey.size() of them.
void colours_to_grey(const std::uint8_t* colours, std::span<std::uint8_t> grey) noexcept;
// Makes three equal channels of each grey pixel. colours begins with the grey ones, a third of it.
void spread_grey(std::span<std::uint8_t> colours) noexcept;

}  // namespace ebb::inline v0::detail
