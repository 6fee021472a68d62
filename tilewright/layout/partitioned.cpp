#include <algorithm>

#include "tilewright/base/error.h"
#include "tilewright/layout/constructors.h"

namespace tw {
namespace {

constexpr int64_t partitions = 128;
constexpr int64_t bank_elements = 512;

}  // namespace

TileLayout partitioned_layout(std::string_view kinds, std::span<const int64_t> shape) {
  if (kinds.size() != shape.size() || kinds.find_first_not_of("PF") != std::string_view::npos)
    user_error({}, "'{}' does not name P or F for each of {} dimensions", kinds, shape.size());
  int64_t p = 1, f = 1;
  std::vector<Iter> out;
  for (size_t d = kinds.size(); d-- > 0;) {
    int64_t& stride = kinds[d] == 'P' ? p : f;
    out.push_back({shape[d], stride, kinds[d] == 'P' ? axis::P : axis::F});
    stride *= shape[d];
  }
  std::reverse(out.begin(), out.end());
  if (p <= partitions) return TileLayout(std::move(out));
  if (std::count(kinds.begin(), kinds.end(), 'P') != 1 || p % partitions != 0)
    user_error({}, "{} partitions: one P dimension of a multiple of {}, or {} in all", p, partitions,
               partitions);
  const auto wide = static_cast<std::ptrdiff_t>(kinds.find('P'));
  out[wide].extent = partitions;
  out.insert(out.begin() + wide, {p / partitions, f, axis::F});
  return TileLayout(std::move(out));
}

TileLayout to_banks(const TileLayout& layout) {
  std::vector<Iter> out;
  for (const Iter& it : layout.shard()) {
    if (it.axis != axis::F) {
      out.push_back(it);
    } else if (it.stride % bank_elements == 0) {
      out.push_back({it.extent, it.stride / bank_elements, axis::Bank});
    } else if (it.extent * it.stride <= bank_elements) {
      out.push_back(it);
    } else if (it.stride > 0 && bank_elements % it.stride == 0 &&
               it.extent % (bank_elements / it.stride) == 0) {
      const int64_t inside = bank_elements / it.stride;
      out.push_back({it.extent / inside, 1, axis::Bank});
      out.push_back({inside, it.stride, axis::F});
    } else {
      user_error({}, "{} free elements {} apart do not split into banks of {}", it.extent, it.stride,
                 bank_elements);
    }
  }
  return TileLayout(std::move(out), layout.replica(), layout.offset());
}

}  // namespace tw
