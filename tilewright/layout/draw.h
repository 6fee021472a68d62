#pragma once
#include <cstdint>
#include <span>
#include <string>

#include "tilewright/layout/layout.h"

namespace tw {

// What the colour of a cell shows. automatic: the thread where the layout has thread axes, the bank where it
// lies on `m` alone, else the first memory axis.
enum class Coloring : uint8_t { automatic, thread, bank, axis };

struct DrawOptions {
  Coloring coloring = Coloring::automatic;
  int element_bits = 32;   // for the banks
  std::string title = {};  // above the layout's text
  int max_rows = 64;       // what is cut off is said below the grid
  int max_columns = 64;
};

// Pictures of the map over a shape: a cell an element, with its coordinates (threads by axis initial: W
// warpid, w wid_in_wg, G wgid, L laneid, T thread; copies as a|b; the place on `m` bare, other axes by name).
// One dimension is wrapped into rows of 32; dimensions before the last are shown as rows. The SVG is
// self-contained.
std::string to_svg(const Layout& layout, std::span<const int64_t> shape, const DrawOptions& options = {});
std::string to_table(const Layout& layout, std::span<const int64_t> shape, const DrawOptions& options = {});

}  // namespace tw
