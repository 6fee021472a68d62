#include <cxxabi.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "tilewright/base/error.h"
#include "tools/ptx_launch.h"

// What the text of an entry says about its launch.
namespace tw::tools {
namespace {

using Json = nlohmann::ordered_json;

// "float const*", "int" of "reduce(float const*, int)"; empty for a name without types.
std::vector<std::string> parameter_types(const std::string& signature) {
  std::vector<std::string> out;
  const size_t open = signature.find('('), close = signature.rfind(')');
  if (open == signature.npos || close == signature.npos) return out;
  int depth = 0;
  std::string type;
  for (char c : signature.substr(open + 1, close - open - 1) + ",") {
    if (c == '<' || c == '(') ++depth;
    if (c == '>' || c == ')') --depth;
    if (c == ',' && depth == 0) {
      out.push_back(std::exchange(type, ""));
    } else if (c != ' ' || !type.empty()) {
      type += c;
    }
  }
  return out;
}

// The element type behind a pointer, where it is one that buffers have.
std::string element_type(const std::string& pointer) {
  constexpr std::pair<std::string_view, std::string_view> names[] = {{"float", "f32"},
                                                                     {"double", "f64"},
                                                                     {"__half", "f16"},
                                                                     {"__nv_bfloat16", "bf16"},
                                                                     {"__nv_fp8_e4m3", "e4m3"},
                                                                     {"__nv_fp8_e5m2", "e5m2"},
                                                                     {"int", "i32"},
                                                                     {"unsigned int", "u32"},
                                                                     {"long", "i64"},
                                                                     {"unsigned long", "u64"},
                                                                     {"long long", "i64"},
                                                                     {"unsigned long long", "u64"},
                                                                     {"short", "i16"},
                                                                     {"unsigned short", "u16"},
                                                                     {"signed char", "i8"},
                                                                     {"char", "i8"},
                                                                     {"unsigned char", "u8"}};
  const size_t end = pointer.find('*');
  std::string base = pointer.substr(0, end);
  if (const size_t at = base.find(" const"); at != base.npos) base.resize(at);
  for (const auto& [cpp, type] : names)
    if (cpp == base) return std::string(type);
  return "f32";
}

bool is_tensor_map(const ptx::Variable& p) {
  return p.is_array && p.size_bytes() == sim::kTensorMapBytes && p.alignment() >= sim::kTensorMapAlign;
}

// Parameters that the body turns into addresses of global memory: nvcc says .u64 of a pointer, no more.
std::set<std::string> pointers(const ptx::Function& entry) {
  std::set<std::string> out;
  std::map<uint32_t, std::string> loaded;  // by register
  for (const ptx::Statement& s : entry.body) {
    const auto* i = std::get_if<ptx::Instruction>(&s);
    if (!i || i->operands.size() != 2) continue;
    const auto *to = i->operands[0].as<ptx::RegOperand>(), *from = i->operands[1].as<ptx::RegOperand>();
    const auto* address = i->operands[1].as<ptx::Address>();
    if (i->text() == "ld.param.u64" && to && address && address->offset == 0) {
      if (const auto* symbol = address->base.front().as<ptx::Symbol>()) loaded[to->reg.index] = symbol->name;
    } else if (i->text() == "cvta.to.global.u64" && from && loaded.contains(from->reg.index)) {
      out.insert(loaded[from->reg.index]);
    }
  }
  for (const ptx::Variable& p : entry.params)
    for (const std::string& a : p.attributes)
      if (a.starts_with(".ptr")) out.insert(p.name);
  return out;
}

// On one line, with blanks between values.
std::string one_line(const Json& json) {
  std::string out;
  bool quoted = false;
  for (char c : json.dump()) {  // no string here holds an escaped quote
    quoted ^= c == '"';
    out += c;
    if (!quoted && (c == ',' || c == ':')) out += ' ';
  }
  return out;
}

Json extents(const ptx::Function& entry, std::string_view directive) {
  const std::vector<int64_t> v = entry.directive(directive);
  return v.empty() ? Json{1, 1, 1} : Json(v);
}

}  // namespace

std::string demangled(const std::string& name) {
  int status = 0;
  const std::unique_ptr<char, void (*)(void*)> text(
      abi::__cxa_demangle(name.c_str(), nullptr, nullptr, &status), std::free);
  return status == 0 ? text.get() : name;
}

std::string parameter_text(const ptx::Variable& p) {
  std::string text;
  if (p.is_array && p.align) text += format(".align {} ", p.align);
  text += format(".{} ", ptx::name(p.type));
  for (const std::string& a : p.attributes) text += a + " ";
  text += p.name;
  if (p.is_array) text += format("[{}]", p.size_bytes() / static_cast<uint64_t>(ptx::bytes(p.type)));
  return text;
}

namespace {

// Whether it is meant for a dependent launch.
bool waits_for_grid(const ptx::Function& entry) {
  return std::any_of(entry.body.begin(), entry.body.end(), [](const ptx::Statement& s) {
    const auto* i = std::get_if<ptx::Instruction>(&s);
    return i && i->opcode() == "griddepcontrol" && i->has("wait");
  });
}

// What a parameter is filled with; buffers that this needs are added.
Json template_argument(const ptx::Variable& p, const std::string& type, bool pointer, const std::string& name,
                       Json& buffers) {
  Json argument{{"parameter", p.name}};
  if (is_tensor_map(p)) {
    buffers[name] = {{"type", "f16"}, {"shape", {64, 64}}, {"init", "random:1"}};
    argument["tensor_map"] = {{"buffer", name}, {"box", {64, 64}}, {"swizzle", "128B"}};
  } else if (pointer) {
    buffers[name] = {{"type", element_type(type)}, {"shape", {1}}, {"init", "zeros"}, {"print", false}};
    argument["buffer"] = name;
  } else if (p.is_array) {
    argument["bytes"] = std::string(2 * p.size_bytes(), '0');
  } else {
    argument["value"] = 0;
  }
  return argument;
}

}  // namespace

std::string launch_template(const ptx::Function& entry) {
  const std::vector<std::string> types = parameter_types(demangled(entry.name));
  const std::set<std::string> known_pointers = pointers(entry);
  Json buffers = Json::object();
  std::string arguments, text;
  for (size_t i = 0; i < entry.params.size(); ++i) {
    const ptx::Variable& p = entry.params[i];
    const std::string type = types.size() == entry.params.size() ? types[i] : "";
    const std::string name =
        p.name.starts_with(entry.name + "_") ? p.name.substr(entry.name.size() + 1) : p.name;
    const bool pointer = known_pointers.contains(p.name) || (!type.empty() && type.back() == '*');
    arguments +=
        format("{}\n    {}", i ? "," : "", one_line(template_argument(p, type, pointer, name, buffers)));
  }
  const bool dependent = waits_for_grid(entry);
  if (dependent)
    for (Json& buffer : buffers) buffer["grid_before"] = "nothing";
  text = format("{{\n  \"entry\": {},\n  \"grid\": [1, 1, 1],\n", Json(entry.name).dump());
  text += format("  \"cluster\": {},\n", one_line(extents(entry, "reqnctapercluster")));
  text += format("  \"block\": {},\n",
                 one_line(extents(entry, entry.directive("reqntid").empty() ? "maxntid" : "reqntid")));
  text += "  \"dynamic_shared\": 0,\n";
  if (dependent) text += "  \"dependent\": true,\n";
  text += "  \"buffers\": {";
  for (const auto& [name, buffer] : buffers.items())
    text += format("{}\n    {}: {}", text.back() == '{' ? "" : ",", Json(name).dump(), one_line(buffer));
  return text + "\n  },\n  \"arguments\": [" + arguments + "\n  ]\n}\n";
}

}  // namespace tw::tools
