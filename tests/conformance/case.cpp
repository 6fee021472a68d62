#include "case.h"

#include <algorithm>
#include <bit>
#include <charconv>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <regex>
#include <sstream>

#include "tilewright/base/error.h"

namespace tw::conformance {
namespace {

using Json = nlohmann::ordered_json;
namespace fs = std::filesystem;

uint64_t mask_of(Element type) { return type.bits == 64 ? ~uint64_t{0} : (uint64_t{1} << type.bits) - 1; }

double value_of(Element type, uint64_t bits) {
  return type.bits == 32 ? double{std::bit_cast<float>(static_cast<uint32_t>(bits))}
                         : std::bit_cast<double>(bits);
}

// The whole of `token` as a number; nothing when it is none, or out of the type's range.
template <class T>
std::optional<T> parse_number(std::string_view token, auto... base) {
  T value{};
  auto [end, error] = std::from_chars(token.data(), token.data() + token.size(), value, base...);
  if (error != std::errc() || end != token.data() + token.size()) return std::nullopt;
  return value;
}

template <class T>
T number(std::string_view token, auto... base) {
  if (std::optional<T> value = parse_number<T>(token, base...)) return *value;
  user_error({}, "'{}' is no value of this type", token);
}

std::optional<uint64_t> floating_bits(Element type, std::string_view token) {
  if (type.bits == 32) {
    std::optional<float> value = parse_number<float>(token);
    return value ? std::optional<uint64_t>(std::bit_cast<uint32_t>(*value)) : std::nullopt;
  }
  std::optional<double> value = parse_number<double>(token);
  return value ? std::optional<uint64_t>(std::bit_cast<uint64_t>(*value)) : std::nullopt;
}

uint64_t bits_of(Element type, std::string_view token) {
  if (token.starts_with("0x")) return number<uint64_t>(token.substr(2), 16);
  if (type.kind == Element::Kind::floating) {
    if (std::optional<uint64_t> bits = floating_bits(type, token)) return *bits;
    user_error({}, "'{}' is no value of this type", token);
  }
  if (type.kind == Element::Kind::bits) user_error({}, "'{}': bit patterns are hexadecimal", token);
  if (token.starts_with("-")) return static_cast<uint64_t>(number<int64_t>(token)) & mask_of(type);
  return number<uint64_t>(token);
}

std::string read_file(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) user_error({}, "cannot read {}", path);
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

Elements decode(Element type, const Json& lines) {
  return conformance::decode(type, lines.get<std::vector<std::string>>());
}

uint64_t hexadecimal(const Json& rule, const char* key, uint64_t otherwise) {
  return rule.contains(key) ? number<uint64_t>(rule[key].get<std::string>().substr(2), 16) : otherwise;
}

Elements generate(Element type, uint64_t count, const Json& rule) {
  const std::string kind = rule.at("kind");
  const uint64_t start = rule.value("seed", uint64_t{0}) * 0x10000000;
  Elements elements(count);
  if (kind == "index") {
    const int64_t first = rule.value("start", int64_t{0}), step = rule.value("step", int64_t{1});
    for (uint64_t i = 0; i < count; ++i)
      elements[i] = (static_cast<uint64_t>(first) + i * static_cast<uint64_t>(step)) & mask_of(type);
  } else if (kind == "choice") {
    const Elements table = decode(type, rule.at("table"));
    for (uint64_t i = 0; i < count; ++i) elements[i] = table[splitmix64(start + i + 1) % table.size()];
  } else if (kind == "bits") {
    const uint64_t keep = hexadecimal(rule, "and", mask_of(type)), force = hexadecimal(rule, "or", 0);
    for (uint64_t i = 0; i < count; ++i)
      elements[i] = ((splitmix64(start + i + 1) & keep) | force) & mask_of(type);
  } else {
    user_error({}, "unknown generator '{}'", kind);
  }
  return elements;
}

Array read_array(const Json& json) {
  Array array;
  array.name = json.at("name");
  array.type = element_from_name(json.at("type").get<std::string>());
  array.count = json.at("count");
  if (json.contains("values")) array.contents = decode(array.type, json["values"]);
  else if (json.contains("generator")) array.contents = generate(array.type, array.count, json["generator"]);
  if (array.contents && array.contents->size() != array.count)
    user_error({}, "array '{}' has {} values, its count is {}", array.name, array.contents->size(),
               array.count);
  if (json.contains("compare") && json["compare"].is_object())
    array.tolerance = {json["compare"].at("relative"), json["compare"].at("absolute")};
  return array;
}

template <size_t n>
size_t position(const char* const (&names)[n], const std::string& name) {
  for (size_t i = 0; i < n; ++i)
    if (name == names[i]) return i;
  user_error({}, "a tensor map has no '{}'", name);
}

Map read_map(const Json& json) {
  using Spec = sim::TensorMapSpec;
  Map map{.array = json.at("array")};
  Spec& s = map.spec;
  s.type = static_cast<Spec::Type>(position(
      {"u8", "u16", "u32", "s32", "u64", "s64", "f16", "f32", "f64", "bf16", "f32_ftz", "tf32", "tf32_ftz"},
      json.at("type")));
  s.rank = static_cast<uint32_t>(json.at("dims").size());
  for (uint32_t i = 0; i < s.rank; ++i) {
    s.dims.at(i) = json["dims"][i];
    s.strides.at(i) = i == 0 ? s.element_bytes() : json.at("strides").at(i - 1).get<uint64_t>();
    s.box.at(i) = json.at("box").at(i);
    s.element_strides.at(i) = json.at("element_strides").at(i);
  }
  s.swizzle = static_cast<Spec::Swizzle>(position({"none", "32B", "64B", "128B"}, json.at("swizzle")));
  s.nan_fill = position({"zero", "nan"}, json.at("fill")) == 1;
  return map;
}

// Arrays of integers on one line, as generate.py and record.py write them.
std::string with_short_arrays(const std::string& text) {
  static const std::regex array(R"(\[\s+-?\d+(,\s+-?\d+)*\s+\])");
  static const std::regex blanks(R"(\s+)");
  std::string result;
  auto end = text.begin();
  for (std::sregex_iterator i(text.begin(), text.end(), array), none; i != none; ++i) {
    result.append(end, text.begin() + i->position());
    std::string line = std::regex_replace(i->str(), blanks, " ");  // "[ 1, 2 ]"
    result += "[" + line.substr(2, line.size() - 4) + "]";
    end = text.begin() + i->position() + i->length();
  }
  return result.append(end, text.end());
}

sim::Dim3 read_dim(const Json& json) { return {json.at(0), json.at(1), json.at(2)}; }

bool matches(const Array& output, uint64_t want, uint64_t got) {
  if (!output.tolerance) return want == got;
  const double w = value_of(output.type, want), g = value_of(output.type, got);
  if (std::isnan(w) || std::isnan(g)) return std::isnan(w) && std::isnan(g);
  return w == g || std::abs(g - w) <= output.tolerance->relative * std::abs(w) + output.tolerance->absolute;
}

}  // namespace

Element element_from_name(std::string_view name) {
  using Kind = Element::Kind;
  for (auto [letter, kind] : {std::pair{'b', Kind::bits}, std::pair{'u', Kind::unsigned_integer},
                              std::pair{'s', Kind::signed_integer}, std::pair{'f', Kind::floating}})
    for (int bits : {8, 16, 32, 64})
      if (name == format("{}{}", letter, bits) && (kind != Kind::floating || bits >= 32)) return {kind, bits};
  user_error({}, "'{}' is no element type; there are b8 to b64, u8 to u64, s8 to s64, f32 and f64", name);
}

Elements decode(Element type, std::span<const std::string> lines) {
  Elements elements;
  for (const std::string& line : lines) {
    std::istringstream tokens(line);
    for (std::string token; tokens >> token;) {
      const size_t star = token.find('*');
      const uint64_t bits = bits_of(type, std::string_view(token).substr(0, star));
      const size_t repeat =
          star == std::string::npos ? 1 : number<size_t>(std::string_view(token).substr(star + 1));
      elements.insert(elements.end(), repeat, bits);
    }
  }
  return elements;
}

std::string token_of(Element type, uint64_t bits) {
  switch (type.kind) {
    case Element::Kind::bits: return format("{:#x}", bits);
    case Element::Kind::unsigned_integer: return format("{}", bits);
    case Element::Kind::signed_integer: {
      const int unused = 64 - type.bits;
      return format("{}", static_cast<int64_t>(bits << unused) >> unused);
    }
    case Element::Kind::floating: break;
  }
  const double value = value_of(type, bits);
  if (!std::isfinite(value)) return format("{:#x}", bits);
  if (std::abs(value) < 1e7 && value == std::trunc(value))
    return value == 0 && std::signbit(value) ? "-0" : format("{}", static_cast<int64_t>(value));
  for (int digits = 1;; ++digits) {
    std::string text = format("{:.{}g}", value, digits);
    if (floating_bits(type, text) == bits) return text;  // rounded up, the largest numbers leave the range
  }
}

std::vector<std::string> encode(Element type, std::span<const uint64_t> elements) {
  std::vector<std::string> lines;
  for (size_t i = 0; i < elements.size();) {
    size_t end = i;
    while (end < elements.size() && elements[end] == elements[i]) ++end;
    std::string token = token_of(type, elements[i]);
    if (end - i > 1) token += format("*{}", end - i);
    if (lines.empty() || lines.back().size() + 1 + token.size() > 100) lines.push_back(token);
    else lines.back() += " " + token;
    i = end;
  }
  return lines;
}

uint64_t splitmix64(uint64_t n) {
  uint64_t z = n * 0x9E3779B97F4A7C15;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EB;
  return z ^ (z >> 31);
}

std::vector<std::byte> to_bytes(Element type, std::span<const uint64_t> elements) {
  std::vector<std::byte> bytes;
  bytes.reserve(elements.size() * static_cast<size_t>(type.bytes()));
  for (uint64_t element : elements)
    for (int i = 0; i < type.bytes(); ++i) bytes.push_back(static_cast<std::byte>(element >> (8 * i)));
  return bytes;
}

Elements from_bytes(Element type, std::span<const std::byte> bytes) {
  const size_t width = static_cast<size_t>(type.bytes());
  Elements elements(bytes.size() / width);
  for (size_t i = 0; i < elements.size() * width; ++i)
    elements[i / width] |= std::to_integer<uint64_t>(bytes[i]) << (8 * (i % width));
  return elements;
}

bool Case::recorded() const {
  return !fault.empty() ||
         std::ranges::all_of(outputs, [](const Array& output) { return output.expected.has_value(); });
}

std::vector<std::string> case_names(const std::string& root) {
  std::vector<std::string> names;
  for (const fs::directory_entry& entry : fs::recursive_directory_iterator(root))
    if (entry.path().extension() == ".ptx")
      names.push_back(entry.path().lexically_relative(root).replace_extension().generic_string());
  std::ranges::sort(names);
  return names;
}

Case load_case(const std::string& root, const std::string& name) {
  const std::string base = root + "/" + name;
  const Json json = Json::parse(read_file(base + ".json"));
  Case result{
      .name = name, .ptx_path = base + ".ptx", .ptx = read_file(base + ".ptx"), .entry = json.at("entry")};
  result.launch = {.grid = read_dim(json.at("grid")),
                   .block = read_dim(json.at("block")),
                   .cluster = read_dim(json.at("cluster")),
                   .dynamic_shared = json.at("dynamic_shared"),
                   .params = {}};
  result.breaks = json.value("breaks", "");
  const Json& expected = json.at("expected");
  if (expected.is_object()) result.fault = expected.value("fault", "");
  for (const Json& input : json.at("inputs")) result.inputs.push_back(read_array(input));
  for (const Json& description : json.at("outputs")) {
    Array& output = result.outputs.emplace_back(read_array(description));
    if (expected.is_null() || !result.fault.empty()) continue;
    output.expected = decode(output.type, expected.at(output.name));
    if (output.expected->size() != output.count)
      user_error({}, "{}: output '{}' has {} expected values, its count is {}", name, output.name,
                 output.expected->size(), output.count);
  }
  if (json.contains("maps"))
    for (const Json& map : json["maps"]) result.maps.push_back(read_map(map));
  return result;
}

std::string mismatch(const Array& output, const Elements& got) {
  size_t wrong = 0, first = 0;
  for (size_t i = got.size(); i-- > 0;)
    if (!matches(output, (*output.expected)[i], got[i])) ++wrong, first = i;
  if (wrong == 0) return "";
  return format("{}[{}] is {}, expected {} ({} of {} differ)", output.name, first,
                token_of(output.type, got[first]), token_of(output.type, (*output.expected)[first]), wrong,
                output.count);
}

void record_case(const std::string& root, const std::string& name, std::span<const Elements> outputs,
                 const Recording& recording) {
  const std::string path = root + "/" + name + ".json";
  Json json = Json::parse(read_file(path));
  json["recorded"] = {{"device", recording.device}, {"driver", recording.driver}, {"date", recording.date}};
  Json expected = Json::object();
  for (size_t i = 0; i < outputs.size(); ++i) {
    const Json& description = json["outputs"][i];
    expected[description["name"].get<std::string>()] =
        encode(element_from_name(description["type"].get<std::string>()), outputs[i]);
  }
  json["expected"] = expected;
  std::ofstream(path, std::ios::binary) << with_short_arrays(json.dump(1)) << "\n";
}

}  // namespace tw::conformance
