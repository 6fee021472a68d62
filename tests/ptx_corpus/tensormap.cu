// Tensor maps edited on the device.
#include <cstdint>
__global__ void edit(uint8_t* global_map, uint64_t address, uint32_t extent) {
#if __CUDA_ARCH_FEAT_SM90_ALL || __CUDA_ARCH_FEAT_SM100_ALL
  __shared__ __align__(128) uint8_t map[128];
  const uint32_t s = (uint32_t)__cvta_generic_to_shared(map);
  asm volatile("tensormap.replace.tile.global_address.shared::cta.b1024.b64 [%0], %1;" ::"r"(s), "l"(address));
  asm volatile("tensormap.replace.tile.global_dim.shared::cta.b1024.b32 [%0], 1, %1;" ::"r"(s), "r"(extent));
  __syncwarp();
  asm volatile("tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync.aligned [%0], [%1], 128;" ::"l"(global_map), "r"(s));
  asm volatile("fence.proxy.tensormap::generic.acquire.gpu [%0], 128;" ::"l"(global_map));
#endif
}
