#include "tools/ptx_values.h"

#include <algorithm>
#include <bit>
#include <charconv>
#include <cmath>
#include <cstring>
#include <limits>

#include "tilewright/base/error.h"
#include "tilewright/base/formats.h"
#include "tilewright/runtime/random.h"
#include "tools/files.h"

namespace tw::tools {
namespace {

size_t storage_bytes(DType t, int64_t elements) {
  return (static_cast<size_t>(elements) * static_cast<size_t>(bits(t)) + 7) / 8;
}

bool packed(DType t) { return bits(t) < 8; }

// The code of one element, right-aligned.
uint64_t encode(DType t, double value) {
  if (t == DType::f64) return std::bit_cast<uint64_t>(value);
  if (is_float(t)) return from_double(t, value);
  const int width = bits(t);
  const double low = is_signed(t) ? -std::ldexp(1, width - 1) : 0,
               high = std::ldexp(1, is_signed(t) ? width - 1 : width);
  if (!(value >= low && value < high && value == std::floor(value)))
    user_error({}, "{} cannot hold {}", name(t), value);
  return is_signed(t) ? static_cast<uint64_t>(static_cast<int64_t>(value)) : static_cast<uint64_t>(value);
}

double decode(DType t, uint64_t code) {
  if (t == DType::f64) return std::bit_cast<double>(code);
  if (is_float(t)) return to_double(t, static_cast<uint32_t>(code));
  if (!is_signed(t)) return static_cast<double>(code);
  const int unused = 64 - bits(t);
  return static_cast<double>(static_cast<int64_t>(code << unused) >> unused);
}

std::vector<std::byte> pack(DType t, const std::vector<uint64_t>& codes) {
  std::vector<std::byte> out(storage_bytes(t, static_cast<int64_t>(codes.size())));
  if (packed(t)) {
    const std::vector<uint8_t> narrow(codes.begin(), codes.end());
    pack_codes(t, narrow.data(), out.data(), narrow.size());
    return out;
  }
  const size_t width = static_cast<size_t>(bits(t)) / 8;
  for (size_t i = 0; i < codes.size(); ++i) std::memcpy(&out[i * width], &codes[i], width);
  return out;
}

// Numbers between blanks, lines and commas; what follows '#' on a line is a comment.
std::vector<double> parse_numbers(const std::string& text, const std::string& path) {
  std::vector<double> out;
  uint32_t line = 1;
  for (const char *at = text.data(), *end = at + text.size(); at != end;) {
    if (*at == '#') {
      while (at != end && *at != '\n') ++at;
    } else if (*at == ' ' || *at == ',' || *at == '\t' || *at == '\r' || *at == '\n') {
      line += *at++ == '\n';
    } else {
      double value = 0;
      const auto [rest, error] = std::from_chars(at, end, value);
      if (error != std::errc{}) user_error({intern(path), line}, "expected a number");
      out.push_back(value);
      at = rest;
    }
  }
  return out;
}

bool is_text(const std::string& path) { return path.ends_with(".txt"); }

uint64_t random_bits(uint64_t seed, uint64_t index) {  // splitmix64, as in runtime/random.cpp
  uint64_t z = seed + (index + 1) * 0x9e3779b97f4a7c15;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
  z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
  return z ^ (z >> 31);
}

std::vector<std::byte> random_bytes(const BufferSpec& spec) {
  const Initialiser& init = spec.init;
  const auto count = static_cast<size_t>(spec.elements());
  if (is_float(spec.dtype)) {
    const std::vector<float> normal = random_normal(count, init.seed);
    return encode_values(spec.dtype, {normal.begin(), normal.end()});
  }
  std::vector<uint64_t> codes(count);
  for (size_t i = 0; i < count; ++i) {
    codes[i] = random_bits(init.seed, i);
    if (init.low) {
      const uint64_t choices = static_cast<uint64_t>(*init.high) - static_cast<uint64_t>(*init.low) + 1;
      codes[i] = static_cast<uint64_t>(*init.low) + codes[i] % std::max<uint64_t>(choices, 1);
    }
  }
  return pack(spec.dtype, codes);
}

}  // namespace

std::vector<std::byte> encode_values(DType dtype, const std::vector<double>& values) {
  std::vector<uint64_t> codes(values.size());
  for (size_t i = 0; i < values.size(); ++i) codes[i] = encode(dtype, values[i]);
  return pack(dtype, codes);
}

std::vector<double> decode_values(DType dtype, const std::vector<std::byte>& bytes, int64_t elements) {
  const auto count = static_cast<size_t>(elements);
  std::vector<double> out(count);
  if (packed(dtype)) {
    std::vector<uint8_t> codes(count);
    unpack_codes(dtype, bytes.data(), codes.data(), count);
    for (size_t i = 0; i < count; ++i) out[i] = decode(dtype, codes[i]);
    return out;
  }
  const size_t width = static_cast<size_t>(bits(dtype)) / 8;
  for (size_t i = 0; i < count; ++i) {
    uint64_t code = 0;
    std::memcpy(&code, &bytes[i * width], width);
    out[i] = decode(dtype, code);
  }
  return out;
}

std::vector<std::byte> read_values(const std::string& path, DType dtype, int64_t elements,
                                   const SourceLoc& loc) {
  std::string content;
  try {
    content = read_file(path);
  } catch (const Error& e) {
    user_error(loc, "{}", e.message());
  }
  if (is_text(path)) {
    const std::vector<double> numbers = parse_numbers(content, path);
    if (numbers.size() != static_cast<size_t>(elements))
      user_error(loc, "{} has {} numbers, the buffer {} elements", path, numbers.size(), elements);
    return encode_values(dtype, numbers);
  }
  const size_t wanted = storage_bytes(dtype, elements);
  if (content.size() != wanted)
    user_error(loc, "{} has {} bytes, {} elements of {} take {}", path, content.size(), elements, name(dtype),
               wanted);
  const auto* raw = reinterpret_cast<const std::byte*>(content.data());
  return {raw, raw + content.size()};
}

void write_values(const std::string& path, DType dtype, const std::vector<std::byte>& bytes,
                  int64_t elements) {
  if (!is_text(path)) return write_file(path, {reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  std::string text;
  for (double v : decode_values(dtype, bytes, elements)) text += format("{}\n", v);
  write_file(path, text);
}

std::vector<std::byte> initial_bytes(const BufferSpec& spec) {
  const auto count = static_cast<size_t>(spec.elements());
  std::vector<double> numbers(count);
  switch (spec.init.kind) {
    case Initialiser::Kind::none: return {};
    case Initialiser::Kind::zeros: break;
    case Initialiser::Kind::ones: numbers.assign(count, 1); break;
    case Initialiser::Kind::iota:
      for (size_t i = 0; i < count; ++i)
        numbers[i] = spec.init.start + spec.init.step * static_cast<double>(i);
      break;
    case Initialiser::Kind::random: return random_bytes(spec);
    case Initialiser::Kind::values:
      for (size_t i = 0; i < count; ++i) numbers[i] = spec.init.numbers[i % spec.init.numbers.size()];
      break;
    case Initialiser::Kind::file: return read_values(spec.init.path, spec.dtype, spec.elements(), spec.loc);
  }
  return encode_values(spec.dtype, numbers);
}

namespace {

// Calls f(logical index, storage index) for every element.
void each_element(const BufferSpec& spec, auto f) {
  std::vector<int64_t> at(spec.shape.size(), 0);
  const int64_t count = spec.elements();
  int64_t place = 0;
  for (int64_t i = 0; i < count; ++i) {
    f(static_cast<size_t>(i), static_cast<size_t>(place));
    for (size_t axis = spec.shape.size(); axis-- > 0;) {
      place += spec.strides[axis];
      if (++at[axis] < spec.shape[axis]) break;
      place -= at[axis] * spec.strides[axis];
      at[axis] = 0;
    }
  }
}

}  // namespace

std::vector<std::byte> scatter(const BufferSpec& spec, const std::vector<std::byte>& logical,
                               std::vector<std::byte> storage) {
  if (packed(spec.dtype)) return logical;  // always row-major
  const size_t width = static_cast<size_t>(bits(spec.dtype)) / 8;
  each_element(spec, [&](size_t from, size_t to) {
    std::memcpy(&storage[to * width], &logical[from * width], width);
  });
  return storage;
}

std::vector<std::byte> gather(const BufferSpec& spec, const std::vector<std::byte>& storage) {
  if (packed(spec.dtype)) return storage;
  const size_t width = static_cast<size_t>(bits(spec.dtype)) / 8;
  std::vector<std::byte> logical(static_cast<size_t>(spec.elements()) * width);
  each_element(spec, [&](size_t to, size_t from) {
    std::memcpy(&logical[to * width], &storage[from * width], width);
  });
  return logical;
}

}  // namespace tw::tools
