// SPDX-License-Identifier: Apache-2.0
// The safetensors layout: a little-endian u64 length, that many bytes of JSON {name: {dtype, shape,
// data_offsets}}, then the numbers, row by row.
#include "weights.h"

#include "matrix_view.h"
#include "output_file.h"

#include <nlohmann/json.hpp>

#include <bit>
#include <cstring>
#include <stdexcept>

namespace ebb::inline v0::nn {

namespace {

using nlohmann::json;
static_assert(std::endian::native == std::endian::little, "the numbers are copied as they are");

constexpr std::size_t length_bytes = 8;

[[noreturn]] void fail(const std::string& path, const std::string& text) {
  throw std::runtime_error("[load_weights] " + path + ": " + text);
}

json shape_of(const Parameter& parameter) {
  const Shape& shape = parameter.value.shape();
  return shape[0] == 1 ? json::array({shape[1]}) : json::array({shape[0], shape[1]});
}

std::size_t bytes_of(const Parameter& parameter) {
  return static_cast<std::size_t>(parameter.value.elements()) * sizeof(float);
}

// Returns the header, and the rest of file in data.
json parse_header(const std::string& path, std::string_view file, std::string_view& data) {
  std::uint64_t length = 0;
  if (file.size() < length_bytes) {
    fail(path, "is too short to be a safetensors file");
  }
  std::memcpy(&length, file.data(), length_bytes);
  file.remove_prefix(length_bytes);
  if (length > file.size()) {
    fail(path, "is truncated, or no safetensors file: its header would have " +
                   std::to_string(length) + " bytes");
  }
  json header = json::parse(file.substr(0, length), nullptr, false);
  if (!header.is_object()) {
    fail(path, "is no safetensors file: its header is no JSON object");
  }
  header.erase("__metadata__");
  data = file.substr(length);
  return header;
}

// Returns the bytes of parameter's numbers.
std::string_view find(const std::string& path, const json& header, std::string_view data,
                      const Parameter& parameter) {
  const auto entry = header.find(parameter.name);
  if (entry == header.end() || !entry->is_object()) {
    fail(path, "has no " + parameter.name);
  }
  const json dtype = entry->value("dtype", json());
  const json shape = entry->value("shape", json());
  const json offsets = entry->value("data_offsets", json());
  const bool as_matrix = shape == json::array({parameter.value.size(0), parameter.value.size(1)});
  if (dtype != "F32" || (shape != shape_of(parameter) && !as_matrix)) {
    fail(path, parameter.name + " is " + dtype.dump() + " " + shape.dump() + ", wanted \"F32\" " +
                   shape_of(parameter).dump());
  }
  if (!offsets.is_array() || offsets.size() != 2 || !offsets[0].is_number_unsigned() ||
      !offsets[1].is_number_unsigned()) {
    fail(path, parameter.name + " has no data_offsets");
  }
  const auto begin = offsets[0].get<std::uint64_t>();
  const auto end = offsets[1].get<std::uint64_t>();
  if (begin > end || end > data.size() || end - begin != bytes_of(parameter)) {
    fail(path, parameter.name + " lies outside the file, or has the wrong size: is it truncated?");
  }
  return data.substr(begin, end - begin);
}

}  // namespace

void save_weights(const std::string& path, const Parameters& parameters) {
  json header = json::object();
  std::size_t offset = 0;
  for (const Parameter* parameter : parameters) {
    header[parameter->name] = {{"dtype", "F32"},
                               {"shape", shape_of(*parameter)},
                               {"data_offsets", {offset, offset + bytes_of(*parameter)}}};
    offset += bytes_of(*parameter);
  }
  std::string text = header.dump();
  text.append((length_bytes - text.size() % length_bytes) % length_bytes, ' ');
  const std::uint64_t length = text.size();
  std::string file(length_bytes, '\0');
  std::memcpy(file.data(), &length, length_bytes);
  file += text;
  for (const Parameter* parameter : parameters) {
    const Tensor host = parameter->value.to(cpu);
    const auto values = rows_of<const float>(host, "save_weights");
    for (std::int64_t i = 0; i < values.rows; ++i) {
      file.append(reinterpret_cast<const char*>(values.row(i)),
                  static_cast<std::size_t>(values.columns) * sizeof(float));
    }
  }
  write_file(path, file);
}

void load_weights(const std::string& path, const Parameters& parameters) {
  const std::string file = read_file(path);
  std::string_view data;
  const json header = parse_header(path, file, data);
  std::vector<std::string_view> found;
  found.reserve(parameters.size());
  for (const Parameter* parameter : parameters) {
    found.push_back(find(path, header, data, *parameter));
  }
  if (header.size() != parameters.size()) {
    fail(path, "holds " + std::to_string(header.size()) + " tensors, but the model has " +
                   std::to_string(parameters.size()));
  }
  for (std::size_t p = 0; p < parameters.size(); ++p) {
    const Tensor& value = parameters[p]->value;
    const Tensor host = empty(value.storage().domain().long_lived(), value.shape());
    std::memcpy(host.data<float>(), found[p].data(), found[p].size());
    value.copy_(host);
  }
}

}  // namespace ebb::inline v0::nn
