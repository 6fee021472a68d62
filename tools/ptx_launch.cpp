#include "tools/ptx_launch.h"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <limits>

#include "tilewright/base/error.h"
#include "tools/located_json.h"

namespace tw::tools {
namespace {

constexpr int64_t kMax32 = 0xffffffff, kMax64 = std::numeric_limits<int64_t>::max(), kMin64 = -kMax64 - 1;
constexpr int64_t kMaxElements = int64_t{1} << 40;

// A file that a launch file names, seen from where tw runs.
std::string resolve(const std::string& path, const std::string& folder) {
  const std::filesystem::path p(path);
  return p.is_absolute() || folder.empty() ? path : (std::filesystem::path(folder) / p).string();
}

DType read_dtype(const LocatedJson& json, std::string_view what) {
  try {
    const DType t = dtype_from_name(json.text(what));
    if (t == DType::b1) user_error(json.loc, "{} cannot be b1: memory has no elements of one bit", what);
    return t;
  } catch (const Error& e) {
    if (e.loc()) throw;
    user_error(json.loc, "{}: {}", what, e.message());
  }
}

std::vector<int64_t> row_major(const std::vector<int64_t>& shape) {
  std::vector<int64_t> strides(shape.size(), 1);
  for (size_t i = shape.size(); i-- > 1;) strides[i - 1] = strides[i] * shape[i];
  return strides;
}

// "random:7" and the like.
class InitialiserText {
 public:
  InitialiserText(const std::string& text, const SourceLoc& loc, const std::string& folder)
      : text_(text), loc_(loc), folder_(folder) {
    for (size_t at = 0;;) {
      const size_t colon = text.find(':', at);
      words_.push_back(text.substr(at, colon - at));
      if (colon == text.npos) break;
      at = colon + 1;
    }
  }

  Initialiser read() const {
    Initialiser init;
    const std::string& word = words_.front();
    if (word == "none") return take(init, Initialiser::Kind::none, 1);
    if (word == "zeros") return take(init, Initialiser::Kind::zeros, 1);
    if (word == "ones") return take(init, Initialiser::Kind::ones, 1);
    if (word == "file" && words_.size() > 1) {
      init.path = resolve(text_.substr(5), folder_);
      return take(init, Initialiser::Kind::file, words_.size());
    }
    if (word == "iota") {
      if (words_.size() > 1) init.start = number<double>(1);
      if (words_.size() > 2) init.step = number<double>(2);
      return take(init, Initialiser::Kind::iota, 3);
    }
    if (word == "random" && (words_.size() == 2 || words_.size() == 4)) {
      init.seed = number<uint64_t>(1);
      if (words_.size() == 4) init.low = number<int64_t>(2), init.high = number<int64_t>(3);
      if (init.low && *init.low > *init.high) unknown();
      return take(init, Initialiser::Kind::random, 4);
    }
    unknown();
  }

 private:
  [[noreturn]] void unknown() const {
    user_error(loc_,
               "initialiser '{}': expected none, zeros, ones, iota[:START[:STEP]], random:SEED[:LOW:HIGH] or "
               "file:PATH",
               text_);
  }
  Initialiser take(Initialiser& init, Initialiser::Kind kind, size_t words) const {
    if (words_.size() > words) unknown();
    init.kind = kind;
    return init;
  }
  template <class T>
  T number(size_t word) const {
    T value{};
    const std::string& w = words_[word];
    const auto [end, error] = std::from_chars(w.data(), w.data() + w.size(), value);
    if (error != std::errc{} || end != w.data() + w.size()) unknown();
    return value;
  }

  const std::string& text_;
  SourceLoc loc_;
  const std::string& folder_;
  std::vector<std::string> words_;
};

std::vector<double> read_numbers(const LocatedJson& json, std::string_view what) {
  std::vector<double> out;
  for (const LocatedJson& item : json.items(what)) out.push_back(item.number(what));
  if (out.empty()) user_error(json.loc, "{} needs at least one number", what);
  return out;
}

Initialiser read_initialiser(const LocatedJson& json, const std::string& folder) {
  if (!json.is<LocatedJson::Items>())
    return InitialiserText(json.text("an initialiser"), json.loc, folder).read();
  Initialiser init;
  init.kind = Initialiser::Kind::values;
  init.numbers = read_numbers(json, "an initialiser");
  return init;
}

Expectation read_expectation(const LocatedJson& json, const std::string& folder) {
  json.allow({"file", "buffer", "values", "tolerance"}, "\"expect\"");
  Expectation e;
  e.loc = json.loc;
  if (const auto* v = json.find("file")) e.file = resolve(v->text("the file to compare with"), folder);
  if (const auto* v = json.find("buffer")) e.buffer = v->text("the buffer to compare with");
  if (const auto* v = json.find("values")) e.numbers = read_numbers(*v, "\"values\"");
  if (const auto* v = json.find("tolerance")) e.tolerance = v->number("\"tolerance\"");
  if (!e.file.empty() + !e.buffer.empty() + !e.numbers.empty() != 1)
    user_error(json.loc, "\"expect\" takes one of \"file\", \"buffer\" and \"values\"");
  return e;
}

// Shape and strides, checked together: every element has a place.
void check_shape(BufferSpec& b) {
  if (b.shape.empty()) user_error(b.loc, "buffer '{}' needs at least one dimension", b.name);
  double elements = 1;
  for (int64_t e : b.shape) elements *= static_cast<double>(e);
  if (elements > static_cast<double>(kMaxElements))
    user_error(b.loc, "buffer '{}' has {} elements, more than a device can hold", b.name, elements);
  if (b.strides.empty()) b.strides = row_major(b.shape);
  if (b.strides.size() != b.shape.size())
    user_error(b.loc, "buffer '{}' has {} dimensions and {} strides", b.name, b.shape.size(),
               b.strides.size());
  double reach = 1;
  for (size_t i = 0; i < b.shape.size(); ++i)
    reach += static_cast<double>(b.shape[i] - 1) * static_cast<double>(b.strides[i]);
  if (reach > static_cast<double>(kMaxElements))
    user_error(b.loc, "buffer '{}' spans {} elements, more than a device can hold", b.name, reach);
  if (bits(b.dtype) < 8 && b.strides != row_major(b.shape))
    user_error(b.loc, "buffer '{}': elements of {} bits lie row-major, without strides", b.name,
               bits(b.dtype));
}

// The position of a name among `names`, which stand in the driver's order.
int64_t choice(const LocatedJson& json, std::string_view what,
               std::initializer_list<std::string_view> names) {
  const std::string& text = json.text(what);
  const auto at = std::find(names.begin(), names.end(), text);
  if (at != names.end()) return at - names.begin();
  std::string known;
  for (std::string_view n : names) known += format("{}{}", known.empty() ? "" : ", ", n);
  user_error(json.loc, "{} is \"{}\"; known: {}", what, text, known);
}

BufferSpec read_buffer(const std::string& name, const LocatedJson& json, const std::string& folder) {
  const std::string what = format("buffer '{}'", name);
  json.allow({"type", "shape", "strides", "init", "print", "keep", "expect", "grid_before"}, what);
  BufferSpec b;
  b.loc = json.loc;
  b.name = name;
  b.dtype = read_dtype(json.at("type", what), "\"type\"");
  b.shape = json.at("shape", what).integers("an extent of \"shape\"", 1, kMaxElements);
  if (const auto* v = json.find("strides")) b.strides = v->integers("a stride", 0, kMaxElements);
  check_shape(b);
  if (const auto* v = json.find("init")) b.init = read_initialiser(*v, folder);
  if (const auto* v = json.find("print")) b.print = v->boolean("\"print\"");
  if (const auto* v = json.find("keep")) b.keep = resolve(v->text("\"keep\""), folder);
  if (const auto* v = json.find("expect")) b.expect = read_expectation(*v, folder);
  if (const auto* v = json.find("grid_before"))
    b.grid_before =
        static_cast<BufferSpec::GridBefore>(choice(*v, "\"grid_before\"", {"nothing", "reads", "writes"}));
  return b;
}

using Map = sim::TensorMapSpec;

Map::Type map_type(DType t, const SourceLoc& loc) {
  switch (t) {
    case DType::u16:
    case DType::i16: return Map::Type::u16;
    case DType::u32: return Map::Type::u32;
    case DType::i32: return Map::Type::s32;
    case DType::u64: return Map::Type::u64;
    case DType::i64: return Map::Type::s64;
    case DType::f16: return Map::Type::f16;
    case DType::bf16: return Map::Type::bf16;
    case DType::f32: return Map::Type::f32;
    case DType::tf32: return Map::Type::tf32;
    case DType::f64: return Map::Type::f64;
    default: break;
  }
  if (bits(t) == 8) return Map::Type::u8;
  not_modelled(loc, "tensor maps of type {}", name(t));
}

template <class T>
void copy_to(std::array<T, sim::kMaxTensorRank>& to, const LocatedJson& json, std::string_view what,
             size_t count, int64_t low, int64_t high, size_t first = 0) {
  const std::vector<int64_t> values = json.integers(what, low, high);
  if (values.size() != count)
    user_error(json.loc, "{} has {} entries, the map's rank asks for {}", what, values.size(), count);
  for (size_t i = 0; i < count; ++i) to[first + i] = static_cast<T>(values[i]);
}

// What the buffer says: its dimensions and strides, innermost first.
void describe_buffer(Map& spec, const BufferSpec& buffer, const SourceLoc& loc) {
  if (buffer.shape.size() > sim::kMaxTensorRank)
    user_error(loc, "a tensor map has at most {} dimensions, buffer '{}' has {}", sim::kMaxTensorRank,
               buffer.name, buffer.shape.size());
  spec.type = map_type(buffer.dtype, loc);
  spec.rank = static_cast<uint32_t>(buffer.shape.size());
  for (size_t i = 0; i < spec.rank; ++i) {
    const size_t axis = spec.rank - 1 - i;
    spec.dims[i] = static_cast<uint64_t>(buffer.shape[axis]);
    spec.strides[i] = static_cast<uint64_t>(buffer.strides[axis]) * spec.element_bytes();
  }
}

TensorMapArgument read_tensor_map(const LocatedJson& json, const LaunchSpec& launch) {
  json.allow({"buffer", "dims", "strides", "box", "element_strides", "interleave", "swizzle", "l2_promotion",
              "oob_fill"},
             "\"tensor_map\"");
  const LocatedJson& buffer_name = json.at("buffer", "\"tensor_map\"");
  TensorMapArgument map;
  map.buffer = buffer_name.text("the buffer of a tensor map");
  const BufferSpec* buffer = launch.find(map.buffer);
  if (!buffer) user_error(buffer_name.loc, "there is no buffer '{}'", map.buffer);
  Map& spec = map.spec;
  describe_buffer(spec, *buffer, json.loc);
  if (const auto* v = json.find("dims")) {
    const auto rank = v->items("\"dims\"").size();
    if (rank < 1 || rank > sim::kMaxTensorRank)
      user_error(v->loc, "a tensor map has 1 to {} dimensions", sim::kMaxTensorRank);
    spec.rank = static_cast<uint32_t>(rank);
    copy_to(spec.dims, *v, "\"dims\"", rank, 1, int64_t{1} << 32);
    if (rank > 1) json.at("strides", "a tensor map with \"dims\"");
  }
  spec.strides[0] = spec.element_bytes();
  if (const auto* v = json.find("strides"))
    copy_to(spec.strides, *v, "\"strides\"", spec.rank - 1, 0, (int64_t{1} << 40) - 1, 1);
  copy_to(spec.box, json.at("box", "\"tensor_map\""), "\"box\"", spec.rank, 1, kMax32);
  if (const auto* v = json.find("element_strides"))
    copy_to(spec.element_strides, *v, "\"element_strides\"", spec.rank, 1, kMax32);
  if (const auto* v = json.find("interleave"))
    spec.interleave = static_cast<Map::Interleave>(choice(*v, "\"interleave\"", {"none", "16B", "32B"}));
  if (const auto* v = json.find("swizzle"))
    spec.swizzle = static_cast<Map::Swizzle>(choice(*v, "\"swizzle\"", {"none", "32B", "64B", "128B"}));
  if (const auto* v = json.find("l2_promotion"))
    spec.l2 = static_cast<Map::L2Promotion>(choice(*v, "\"l2_promotion\"", {"none", "64B", "128B", "256B"}));
  if (const auto* v = json.find("oob_fill"))
    spec.nan_fill = choice(*v, "\"oob_fill\"", {"zeros", "nan"}) == 1;
  if (const std::string broken = sim::broken_rule(spec); !broken.empty())
    user_error(json.loc, "tensor map of buffer '{}': {}", map.buffer, broken);
  return map;
}

std::vector<std::byte> read_hex(const LocatedJson& json) {
  std::vector<std::byte> out;
  int high = -1;
  for (char c : json.text("\"bytes\"")) {
    if (c == ' ' || c == '_') continue;
    const int digit = c >= '0' && c <= '9'   ? c - '0'
                      : c >= 'a' && c <= 'f' ? c - 'a' + 10
                      : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                             : -1;
    if (digit < 0) user_error(json.loc, "\"bytes\": '{}' is no hexadecimal digit", c);
    if (high >= 0) out.push_back(static_cast<std::byte>(high * 16 + digit));
    high = high < 0 ? digit : -1;
  }
  if (high >= 0) user_error(json.loc, "\"bytes\" has an odd number of hexadecimal digits");
  return out;
}

ArgumentSpec read_argument(const LocatedJson& json, const LaunchSpec& launch) {
  json.allow({"parameter", "value", "buffer", "offset", "bytes", "tensor_map"}, "an argument");
  ArgumentSpec a;
  a.loc = json.loc;
  if (const auto* v = json.find("parameter")) a.parameter = v->text("\"parameter\"");
  const auto *value = json.find("value"), *buffer = json.find("buffer"), *bytes = json.find("bytes"),
             *map = json.find("tensor_map");
  if (!!value + !!buffer + !!bytes + !!map != 1)
    user_error(json.loc, "an argument has one of \"value\", \"buffer\", \"bytes\" and \"tensor_map\"");
  if (json.find("offset") && !buffer) user_error(json.loc, "\"offset\" goes with \"buffer\"");
  if (value) {
    if (value->is<int64_t>()) a.value = ScalarArgument{value->integer("\"value\"", kMin64, kMax64)};
    else a.value = ScalarArgument{value->number("\"value\"")};
  } else if (buffer) {
    BufferArgument b{buffer->text("\"buffer\"")};
    if (!launch.find(b.buffer)) user_error(buffer->loc, "there is no buffer '{}'", b.buffer);
    if (const auto* v = json.find("offset")) b.offset = v->integer("\"offset\"", 0, kMax64);
    a.value = b;
  } else if (bytes) {
    a.value = BytesArgument{read_hex(*bytes)};
  } else {
    a.value = read_tensor_map(*map, launch);
  }
  return a;
}

sim::Dim3 read_dim3(const LocatedJson& json, std::string_view what) {
  const std::vector<int64_t> v = json.integers(what, 1, kMax32);
  if (v.empty() || v.size() > 3) user_error(json.loc, "{} has one to three extents", what);
  sim::Dim3 out;
  out.x = static_cast<uint32_t>(v[0]);
  if (v.size() > 1) out.y = static_cast<uint32_t>(v[1]);
  if (v.size() > 2) out.z = static_cast<uint32_t>(v[2]);
  return out;
}

ptx::Region read_region(const LocatedJson& json) {
  json.allow({"name", "begin", "end", "type", "shape", "stages", "barrier"}, "a name");
  ptx::Region r;
  r.loc = json.loc;
  r.name = json.at("name", "a name").text("\"name\"");
  r.begin = static_cast<uint64_t>(json.at("begin", "a name").integer("\"begin\"", 0, kMax32));
  r.end = static_cast<uint64_t>(json.at("end", "a name").integer("\"end\"", 0, kMax32));
  if (r.end <= r.begin)
    user_error(json.loc, "'{}' ends at {}, before it begins at {}", r.name, r.end, r.begin);
  if (const auto* v = json.find("type")) r.dtype = read_dtype(*v, "\"type\"");
  if (const auto* v = json.find("shape")) r.shape = v->integers("an extent of \"shape\"", 1, kMaxElements);
  if (const auto* v = json.find("stages")) {
    r.staged = true;
    r.shape.insert(r.shape.begin(), v->integer("\"stages\"", 1, kMax32));
  }
  if (const auto* v = json.find("barrier")) r.is_barrier = v->boolean("\"barrier\"");
  return r;
}

void read_names(const LocatedJson& json, ptx::DebugMap& names) {
  json.allow({"shared", "tensor_memory"}, "\"names\"");
  if (const auto* v = json.find("shared"))
    for (const LocatedJson& item : v->items("\"shared\"")) names.shared.push_back(read_region(item));
  if (const auto* v = json.find("tensor_memory"))
    for (const LocatedJson& item : v->items("\"tensor_memory\""))
      names.tensor_memory.push_back(read_region(item));
}

void check_expectations(const LaunchSpec& launch) {
  for (const BufferSpec& b : launch.buffers) {
    if (!b.expect || b.expect->buffer.empty()) continue;
    const BufferSpec* other = launch.find(b.expect->buffer);
    if (!other) user_error(b.expect->loc, "there is no buffer '{}'", b.expect->buffer);
    if (other->shape != b.shape)
      user_error(b.expect->loc, "buffers '{}' and '{}' have different shapes", b.name, other->name);
  }
}

// "f32[128, 64]" and, after '=', an initialiser.
BufferSpec buffer_from_text(const std::string& text, const std::string& name) {
  const size_t open = text.find('['), close = text.find(']'), equals = text.find('=');
  const SourceLoc loc;
  BufferSpec b;
  b.name = name;
  const auto refuse = [&] {
    user_error(
        loc, "argument '{}': expected a number, TYPE[EXTENT, ...] with =INITIALISER or not, or a JSON object",
        text);
  };
  if (open == text.npos || close == text.npos || close < open) refuse();
  if (equals == text.npos ? close + 1 != text.size() : close + 1 != equals) refuse();
  LocatedJson type, shape = parse_json(text.substr(open, close + 1 - open), "argument");
  type.value = text.substr(0, open);
  b.dtype = read_dtype(type, format("the type of argument '{}'", text));
  b.shape = shape.integers("an extent", 1, kMaxElements);
  check_shape(b);
  if (equals != text.npos) b.init = InitialiserText(text.substr(equals + 1), loc, "").read();
  return b;
}

}  // namespace

void add_argument(LaunchSpec& launch, const std::string& text, const std::string& name) {
  const char *begin = text.data(), *end = begin + text.size();
  ArgumentSpec a;
  int64_t integer = 0;
  double real = 0;
  if (text.starts_with("{")) {
    a = read_argument(parse_json(text, "argument"), launch);
  } else if (const auto [at, error] = std::from_chars(begin, end, integer);
             error == std::errc{} && at == end) {
    a.value = ScalarArgument{integer};
  } else if (const auto [at2, error2] = std::from_chars(begin, end, real);
             error2 == std::errc{} && at2 == end) {
    a.value = ScalarArgument{real};
  } else {
    launch.buffers.push_back(buffer_from_text(text, name));
    a.value = BufferArgument{name};
  }
  launch.arguments.push_back(std::move(a));
}

int64_t BufferSpec::elements() const {
  int64_t n = 1;
  for (int64_t e : shape) n *= e;
  return n;
}

bool BufferSpec::dense() const { return strides == row_major(shape); }

int64_t BufferSpec::extent() const {
  int64_t last = 0;
  for (size_t i = 0; i < shape.size(); ++i) last += (shape[i] - 1) * strides[i];
  return last + 1;
}

const BufferSpec* LaunchSpec::find(std::string_view buffer) const {
  for (const BufferSpec& b : buffers)
    if (b.name == buffer) return &b;
  return nullptr;
}

LaunchSpec parse_launch(std::string_view text, const std::string& file_name) {
  const LocatedJson json = parse_json(text, file_name);
  const std::string folder = std::filesystem::path(file_name).parent_path().string();
  json.allow(
      {"entry", "grid", "block", "cluster", "dynamic_shared", "dependent", "buffers", "arguments", "names"},
      "a launch file");
  LaunchSpec launch;
  launch.loc = json.loc;
  if (const auto* v = json.find("entry")) launch.entry = v->text("\"entry\"");
  if (const auto* v = json.find("grid")) launch.grid = read_dim3(*v, "\"grid\"");
  if (const auto* v = json.find("block")) launch.block = read_dim3(*v, "\"block\""), launch.has_block = true;
  if (const auto* v = json.find("cluster"))
    launch.cluster = read_dim3(*v, "\"cluster\""), launch.has_cluster = true;
  if (const auto* v = json.find("dynamic_shared"))
    launch.dynamic_shared = static_cast<uint32_t>(v->integer("\"dynamic_shared\"", 0, kMax32));
  if (const auto* v = json.find("dependent")) launch.dependent = v->boolean("\"dependent\"");
  if (const auto* v = json.find("buffers"))
    for (const auto& [name, buffer] : v->members("\"buffers\"")) {
      if (launch.find(name)) user_error(buffer.loc, "there are two buffers '{}'", name);
      launch.buffers.push_back(read_buffer(name, buffer, folder));
      if (launch.buffers.back().grid_before != BufferSpec::GridBefore::nothing && !launch.dependent)
        user_error(
            buffer.loc,
            "buffer '{}': \"grid_before\" says what the grid before a dependent launch does with it, but "
            "the launch file does not say \"dependent\": true; any other launch starts when that grid "
            "has ended",
            name);
    }
  check_expectations(launch);
  if (const auto* v = json.find("arguments"))
    for (const LocatedJson& argument : v->items("\"arguments\""))
      launch.arguments.push_back(read_argument(argument, launch));
  if (const auto* v = json.find("names")) read_names(*v, launch.names);
  return launch;
}

}  // namespace tw::tools
