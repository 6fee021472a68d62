#pragma once
#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "tilewright/layout/layout.h"

namespace tw {

// Shared memory has 32 banks of 4 bytes; a bank serves one word per wavefront, to all lanes that ask for it.
inline constexpr int bank_count = 32;
inline constexpr int bank_bytes = 4;

// One access of a warp: the logical element each lane starts at (inactive: below 0) and the bytes each lane
// moves, 1, 2, 4, 8 or 16.
struct WarpAccess {
  std::array<int64_t, 32> element;
  int bytes;
};

// Lanes of one phase that need different words of one bank.
struct BankConflict {
  int phase;
  int bank;
  int words;  // distinct, 2 or more
  std::vector<int> lanes;
  bool operator==(const BankConflict&) const = default;
};

struct BankReport {
  int wavefronts = 0;
  int ideal = 0;  // wavefronts if the same words lay in distinct banks
  std::vector<BankConflict> conflicts;
  bool conflict_free() const { return wavefronts == ideal; }
};

// The wavefronts of a warp's access to shared memory. Lanes are served in phases: all 32 for up to 4 bytes a
// lane, 16 for 8 bytes, 8 for 16 bytes. Each phase takes as many wavefronts as its busiest bank has distinct
// words. A user error when an address is no multiple of `bytes`.
BankReport bank_conflicts(std::span<const int64_t> byte_address, int bytes);
// The same for elements of `element_bits` bits in a buffer of this layout, aligned to 128 bytes.
BankReport bank_conflicts(const Layout& layout, const WarpAccess& access, int element_bits);

// The access of a warp that walks over dimension `along` of a tile: lane l moves the l-th vector of `bytes`
// bytes (along the last dimension) in that direction, going on in the other dimensions, last first, where the
// dimension ends. Lanes beyond the tile are inactive.
WarpAccess warp_access(std::span<const int64_t> shape, size_t along, int element_bits, int bytes);

// "32 wavefronts where 4 would do: bank 0 has 8 words in phase 0 (lanes 0 1 2 3 4 5 6 7), ..."
std::string to_string(const BankReport& report);

// The widest vector, in bytes (1, 2, 4, 8 or 16; 0 when an element is no whole byte and cannot be joined to
// others), with which every aligned run of elements can be moved at once: bounded by contiguity, by the
// alignment of its places, by the chunk a swizzle keeps together, and by the buffer's own alignment.
int vector_width(const Layout& layout, int element_bits, int64_t base_alignment = 16);

}  // namespace tw
