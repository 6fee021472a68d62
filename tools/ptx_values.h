#pragma once
#include <cstddef>
#include <string>
#include <vector>

#include "tools/ptx_launch.h"

// Between numbers and the bytes of a buffer.
namespace tw::tools {

// `values` in storage format, one after the other. Floating types round to nearest even; integers must fit.
std::vector<std::byte> encode_values(DType dtype, const std::vector<double>& values);
std::vector<double> decode_values(DType dtype, const std::vector<std::byte>& bytes, int64_t elements);

// A file with `elements` elements: raw bytes in storage format, or numbers in text where its name ends in
// .txt.
std::vector<std::byte> read_values(const std::string& path, DType dtype, int64_t elements,
                                   const SourceLoc& loc);
void write_values(const std::string& path, DType dtype, const std::vector<std::byte>& bytes,
                  int64_t elements);

// The logical elements before the launch, in storage format; empty where nothing is said.
std::vector<std::byte> initial_bytes(const BufferSpec& spec);

// Logical row-major elements to their places, and back.
std::vector<std::byte> scatter(const BufferSpec& spec, const std::vector<std::byte>& logical,
                               std::vector<std::byte> storage);
std::vector<std::byte> gather(const BufferSpec& spec, const std::vector<std::byte>& storage);

}  // namespace tw::tools
