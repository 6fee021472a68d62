#include "tilewright/layout/queries.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <set>

#include "tilewright/base/error.h"
#include "tilewright/base/math.h"

namespace tw {
namespace {

struct Bank {
  std::set<int64_t> words;
  std::set<int> lanes;
};

}  // namespace

BankReport bank_conflicts(std::span<const int64_t> byte_address, int bytes) {
  if (byte_address.size() > 32) user_error({}, "a warp has 32 lanes, not {}", byte_address.size());
  if (bytes > 16 || !is_power_of_two(bytes))
    user_error({}, "a lane moves 1, 2, 4, 8 or 16 bytes, not {}", bytes);
  const int lanes = bytes <= 4 ? 32 : 128 / bytes;
  BankReport report;
  for (int phase = 0; phase * lanes < static_cast<int>(byte_address.size()); ++phase) {
    std::map<int, Bank> banks;
    std::set<int64_t> words;
    const int end = std::min((phase + 1) * lanes, static_cast<int>(byte_address.size()));
    for (int lane = phase * lanes; lane < end; ++lane) {
      const int64_t a = byte_address[lane];
      if (a < 0) continue;
      if (a % bytes != 0)
        user_error({}, "lane {}: address {} is no multiple of the {} bytes it moves", lane, a, bytes);
      for (int64_t w = a / bank_bytes; w <= (a + bytes - 1) / bank_bytes; ++w) {
        Bank& b = banks[static_cast<int>(w % bank_count)];
        b.words.insert(w);
        b.lanes.insert(lane);
        words.insert(w);
      }
    }
    int busiest = 0;
    for (const auto& [bank, b] : banks) {
      busiest = std::max(busiest, static_cast<int>(b.words.size()));
      if (b.words.size() > 1)
        report.conflicts.push_back(
            {phase, bank, static_cast<int>(b.words.size()), {b.lanes.begin(), b.lanes.end()}});
    }
    report.wavefronts += busiest;
    report.ideal += static_cast<int>(ceil_div<size_t>(words.size(), bank_count));
  }
  return report;
}

BankReport bank_conflicts(const Layout& layout, const WarpAccess& access, int element_bits) {
  std::array<int64_t, 32> address;
  for (size_t lane = 0; lane < address.size(); ++lane) {
    address[lane] = -1;
    if (access.element[lane] < 0) continue;
    const int64_t bit = layout.place(access.element[lane]) * element_bits;
    if (bit % 8 != 0) user_error({}, "lane {}: element {} starts inside a byte", lane, access.element[lane]);
    address[lane] = bit / 8;
  }
  return bank_conflicts(address, access.bytes);
}

WarpAccess warp_access(std::span<const int64_t> shape, size_t along, int element_bits, int bytes) {
  if (along >= shape.size()) user_error({}, "dimension {} of a tile of {} dimensions", along, shape.size());
  const int64_t vector = std::max(1, bytes * 8 / element_bits);
  if (shape.back() % vector != 0)
    user_error({}, "a row of {} elements of {} bits is no multiple of {} bytes", shape.back(), element_bits,
               bytes);
  Shape vectors(shape.begin(), shape.end());
  vectors.back() /= vector;
  Shape turned = vectors;  // the walked dimension varies fastest
  turned.erase(turned.begin() + static_cast<std::ptrdiff_t>(along));
  turned.push_back(vectors[along]);
  WarpAccess access{{}, bytes};
  const int64_t n = volume(vectors);
  for (int64_t lane = 0; lane < 32; ++lane) {
    int64_t& element = access.element[static_cast<size_t>(lane)];
    element = -1;
    if (lane >= n) continue;
    Shape c = delinearize(lane, turned);
    c.insert(c.begin() + static_cast<std::ptrdiff_t>(along), c.back());
    c.pop_back();
    element = linearize(c, vectors) * vector;
  }
  return access;
}

std::string to_string(const BankReport& report) {
  if (report.conflict_free()) return format("{} wavefronts, no bank conflict", report.wavefronts);
  std::string out = format("{} wavefronts where {} would do", report.wavefronts, report.ideal);
  constexpr size_t shown = 4;
  for (size_t i = 0; i < std::min(shown, report.conflicts.size()); ++i) {
    const BankConflict& c = report.conflicts[i];
    out += format("{} bank {} has {} words in phase {} (lanes", i == 0 ? ":" : ",", c.bank, c.words, c.phase);
    for (int lane : c.lanes) out += format(" {}", lane);
    out += ")";
  }
  if (report.conflicts.size() > shown) out += format(", and {} more", report.conflicts.size() - shown);
  return out;
}

int vector_width(const Layout& layout, int element_bits, int64_t base_alignment) {
  const int64_t run_bits = std::gcd(layout.aligned_run() * element_bits, 128);
  if (run_bits < 8) return 0;
  return static_cast<int>(std::gcd(run_bits / 8, base_alignment));
}

}  // namespace tw
