// Cooperative groups: blocks, tiles, coalesced threads, clusters, grids.
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
#include <cooperative_groups/memcpy_async.h>
namespace cg = cooperative_groups;
__global__ void groups(int* p, const int* q) {
  __shared__ int s[256];
  cg::thread_block block = cg::this_thread_block();
  auto tile = cg::tiled_partition<16>(block);
  p[0] = cg::reduce(tile, p[tile.thread_rank()], cg::plus<int>());
  if (threadIdx.x & 1) p[1] = cg::coalesced_threads().size();
  cg::memcpy_async(block, s, q, sizeof s);
  cg::wait(block);
  auto cluster = cg::this_cluster();
  int* other = cluster.map_shared_rank(s, cluster.block_rank() ^ 1);
  cluster.sync();
  p[threadIdx.x] = other[threadIdx.x];
  cg::this_grid().sync();
}
