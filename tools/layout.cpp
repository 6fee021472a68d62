#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tilewright/base/format.h"
#include "tilewright/layout/draw.h"
#include "tilewright/layout/queries.h"
#include "tilewright/layout/text.h"
#include "tilewright/report/table.h"
#include "tools/command.h"

namespace tw::tools {

namespace {

struct Options {
  std::string text, shape, dtype = "f16", svg;
};

// "128x64" as extents.
Shape parse_shape(std::string_view text) {
  Shape shape;
  const char* at = text.data();
  const char* end = at + text.size();
  while (at <= end) {
    int64_t extent = 0;
    const auto [stop, error] = std::from_chars(at, end, extent);
    if (error != std::errc() || extent < 1 || (stop != end && *stop != 'x'))
      user_error({}, "a shape is positive extents joined by x, as in 128x64; got '{}'", text);
    shape.push_back(extent);
    at = stop + 1;
  }
  return shape;
}

// The shape to show a layout in when none is asked for: its iters when they are two, else as many of the last
// ones as make rows of at most 64.
Shape natural_shape(const TileLayout& tile) {
  const auto& shard = tile.shard();
  if (shard.size() == 2) return {shard[0].extent, shard[1].extent};
  int64_t columns = 1;
  for (size_t i = shard.size(); i > 0 && columns * shard[i - 1].extent <= 64; --i)
    columns *= shard[i - 1].extent;
  return {tile.size() / columns, columns};
}

Shape two_dimensional(const Shape& shape) { return {volume(shape) / shape.back(), shape.back()}; }

std::string text_of(const Shape& shape) {
  std::string out;
  for (const int64_t extent : shape) out += (out.empty() ? "" : "x") + std::to_string(extent);
  return out;
}

struct Access {
  std::string name;  // "rows"
  std::string what;  // for people
  WarpAccess lanes{};
  BankReport banks;
};

// A warp that moves vectors of `width` bytes along the rows, and one that moves them down the columns.
std::vector<Access> warp_accesses(const Layout& layout, const Shape& shape, int element_bits, int width) {
  const int64_t rows = shape[0], columns = shape[1], step = width * 8 / element_bits;
  const int64_t along = std::max<int64_t>(1, columns / step);  // vectors in a row
  std::vector<Access> out{{"rows", format("32 lanes along the rows, {} B each", width), {}, {}},
                          {"columns", format("32 lanes down the columns, {} B each", width), {}, {}}};
  for (int64_t lane = 0; lane < 32; ++lane) {
    const bool active = lane < rows * along;
    out[0].lanes.element[static_cast<size_t>(lane)] =
        active ? lane / along * columns + lane % along * step : -1;
    out[1].lanes.element[static_cast<size_t>(lane)] =
        active ? lane % rows * columns + lane / rows * step : -1;
  }
  for (Access& a : out) {
    a.lanes.bytes = width;
    a.banks = bank_conflicts(layout, a.lanes, element_bits);
  }
  return out;
}

std::string describe(const BankReport& r) {
  std::string out = r.conflict_free() ? format("{} wavefronts, no conflict", r.wavefronts)
                                      : format("{} wavefronts where {} would do", r.wavefronts, r.ideal);
  constexpr size_t shown = 2;
  for (size_t i = 0; i < r.conflicts.size() && i < shown; ++i) {
    const BankConflict& c = r.conflicts[i];
    std::string lanes;
    for (const int lane : c.lanes) lanes += " " + std::to_string(lane);
    out += format("\nbank {} of phase {}: lanes{} need {} words", c.bank, c.phase, lanes, c.words);
  }
  if (r.conflicts.size() > shown) out += format("\nand {} more banks", r.conflicts.size() - shown);
  return out;
}

nlohmann::ordered_json to_json(const Access& a) {
  auto conflicts = nlohmann::ordered_json::array();
  for (const BankConflict& c : a.banks.conflicts)
    conflicts.push_back({{"phase", c.phase}, {"bank", c.bank}, {"words", c.words}, {"lanes", c.lanes}});
  return {{"access", a.name},
          {"bytes", a.lanes.bytes},
          {"wavefronts", a.banks.wavefronts},
          {"ideal", a.banks.ideal},
          {"conflicts", conflicts}};
}

nlohmann::ordered_json mapping_json(const Layout& layout) {
  auto out = nlohmann::ordered_json::array();
  for (int64_t x = 0; x < layout.size(); ++x) {
    auto places = nlohmann::ordered_json::array();
    for (const Point& p : layout.apply(x)) {
      nlohmann::ordered_json place = nlohmann::ordered_json::object();
      for (const Axis a : layout.tile_layout().axes()) place[std::string(a.name())] = p[a];
      places.push_back(std::move(place));
    }
    out.push_back(std::move(places));
  }
  return out;
}

void show(const Session& session, const Options& o) {
  const Layout layout = parse_layout(o.text, "layout");
  const TileLayout& tile = layout.tile_layout();
  const DType dtype = dtype_from_name(o.dtype);
  const Shape asked = o.shape.empty() ? natural_shape(tile) : parse_shape(o.shape);
  if (volume(asked) != layout.size())
    user_error({}, "shape {} has {} elements, the layout {}", text_of(asked), volume(asked), layout.size());
  const Shape shape = two_dimensional(asked);
  DrawOptions draw;
  draw.element_bits = bits(dtype);
  if (!o.svg.empty()) write_file(o.svg, to_svg(layout, shape, draw));

  const auto axes = tile.axes();
  const bool memory_only = std::all_of(axes.begin(), axes.end(), [](Axis a) { return a == axis::m; });
  const int width = memory_only ? std::min(16, vector_width(layout, bits(dtype))) : 0;
  std::vector<Access> accesses;
  if (width > 0) accesses = warp_accesses(layout, shape, bits(dtype), width);

  if (session.json) {
    nlohmann::ordered_json extents = nlohmann::ordered_json::object();
    for (const Axis a : axes) extents[std::string(a.name())] = tile.extent(a);
    nlohmann::ordered_json j{{"layout", to_string(layout)},
                             {"canonical", to_string(layout.canonicalize())},
                             {"shape", asked},
                             {"elements", layout.size()},
                             {"copies", tile.copies()},
                             {"extents", extents},
                             {"injective", layout.is_injective()}};
    if (memory_only) j["vector_bytes"] = width;
    auto banks = nlohmann::ordered_json::array();
    for (const Access& a : accesses) banks.push_back(to_json(a));
    j["banks"] = banks;
    j["mapping"] = mapping_json(layout);
    return print_json(j);
  }

  std::string extents;
  for (const Axis a : axes)
    extents += format("{}{} {}", extents.empty() ? "" : ", ", a.name(), tile.extent(a));
  std::vector<std::pair<std::string, std::string>> lines{
      {"layout", to_string(layout)},
      {"canonical", to_string(layout.canonicalize())},
      {"shape", format("{}, {} elements{}", text_of(asked), layout.size(),
                       tile.copies() > 1 ? format(", {} copies of each", tile.copies()) : "")},
      {"extents", extents},
      {"injective", layout.is_injective() ? "yes" : "no: some place holds two elements"}};
  if (memory_only) {
    lines.emplace_back("vectors",
                       width > 0 ? format("{} B at once ({} {})", width, width * 8 / bits(dtype), o.dtype)
                                 : format("none: {} elements lie apart", o.dtype));
    for (const Access& a : accesses) lines.emplace_back("banks", a.what + ": " + describe(a.banks));
  }
  if (!o.svg.empty()) lines.emplace_back("drawing", o.svg);
  print(report::fields(lines));
  print("\n" + to_table(layout, shape, draw));
}

}  // namespace

void add_layout(CLI::App& app, Session& session) {
  auto* command =
      add_command(app, session, "layout", "where a layout puts each element, and its bank conflicts");
  auto o = std::make_shared<Options>();
  command->add_option("LAYOUT", o->text, "as in \"SW(3,3,3) o S[(8, 64) : (64, 1)]\"")->required();
  command->add_option("--shape", o->shape, "logical shape, as in 64x128 (default: rows of at most 64)");
  command->add_option("--dtype", o->dtype, "element type, for vectors and banks")->capture_default_str();
  command->add_option("--svg", o->svg, "also draw it to this file");
  command->callback([o, &session] { show(session, *o); });
}

}  // namespace tw::tools
