// Blackwell tensor memory: allocation, products, copies, loads and stores, cluster launch control.
#include <cstdint>
__global__ void __launch_bounds__(128) blackwell(uint32_t* out, uint64_t da, uint64_t db, uint32_t idesc) {
#if __CUDA_ARCH_FEAT_SM100_ALL
  __shared__ uint32_t slot;
  __shared__ __align__(16) uint64_t barrier[4];
  const uint32_t s = (uint32_t)__cvta_generic_to_shared(&slot), bar = (uint32_t)__cvta_generic_to_shared(barrier);
  asm volatile("tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%0], %1;" ::"r"(s), "r"(512));
  asm volatile("tcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned;");
  __syncthreads();
  const uint32_t t = slot;
  asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, %4, 0;\ntcgen05.mma.cta_group::1.kind::f16 [%0], %1, %2, %3, p;\n}" ::"r"(t), "l"(da), "l"(db), "r"(idesc), "r"(0));
  asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, %4, 0;\ntcgen05.mma.cta_group::1.kind::f16 [%0], %1, %2, %3, {%5, %6, %7, %8}, p;\n}" ::"r"(t), "l"(da), "l"(db), "r"(idesc), "r"(0), "r"(0), "r"(0), "r"(0), "r"(0));
  asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, %4, 0;\ntcgen05.mma.cta_group::1.kind::f8f6f4 [%0], [%1], %2, %3, p;\n}" ::"r"(t), "r"(t + 128), "l"(db), "r"(idesc), "r"(1));
  asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, %4, 0;\ntcgen05.mma.cta_group::1.kind::mxf8f6f4.block_scale.scale_vec::1X [%0], %1, %2, %3, [%5], [%6], p;\n}" ::"r"(t), "l"(da), "l"(db), "r"(idesc), "r"(1), "r"(t + 256), "r"(t + 260));
  asm volatile("tcgen05.cp.cta_group::1.32x128b.warpx4 [%0], %1;" ::"r"(t + 256), "l"(da));
  asm volatile("tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [%0];" ::"r"(bar));
  asm volatile("tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.multicast::cluster.b64 [%0], %1;" ::"r"(bar), "h"((uint16_t)3));
  asm volatile("tcgen05.fence::before_thread_sync;\ntcgen05.fence::after_thread_sync;");
  uint32_t r[8];
  asm volatile("tcgen05.ld.sync.aligned.32x32b.x8.b32 {%0, %1, %2, %3, %4, %5, %6, %7}, [%8];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]), "=r"(r[4]), "=r"(r[5]), "=r"(r[6]), "=r"(r[7]) : "r"(t));
  asm volatile("tcgen05.ld.sync.aligned.16x256b.x1.pack::16b.b32 {%0, %1, %2, %3}, [%4];" : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"(t));
  asm volatile("tcgen05.ld.sync.aligned.16x32bx2.x2.b32 {%0, %1}, [%2], 16;" : "=r"(r[4]), "=r"(r[5]) : "r"(t));
  asm volatile("tcgen05.wait::ld.sync.aligned;");
  asm volatile("tcgen05.st.sync.aligned.16x64b.x2.unpack::16b.b32 [%0], {%1, %2};" ::"r"(t), "r"(r[0]), "r"(r[1]));
  asm volatile("tcgen05.wait::st.sync.aligned;");
  asm volatile("clusterlaunchcontrol.try_cancel.async.shared::cta.mbarrier::complete_tx::bytes.b128 [%0], [%1];" ::"r"(bar), "r"(bar + 16));
  uint32_t x, y, z, ok;
  asm volatile("{\n.reg .pred p;\n.reg .b128 response;\nld.shared.b128 response, [%4];\nclusterlaunchcontrol.query_cancel.is_canceled.pred.b128 p, response;\nselp.u32 %3, 1, 0, p;\n@p clusterlaunchcontrol.query_cancel.get_first_ctaid.v4.b32.b128 {%0, %1, %2, _}, response;\n}" : "=r"(x), "=r"(y), "=r"(z), "=r"(ok) : "r"(bar) : "memory");
  for (int i = 0; i < 8; ++i) out[threadIdx.x * 8 + i] = r[i] + x + y + z + ok;
  asm volatile("tcgen05.dealloc.cta_group::1.sync.aligned.b32 %0, %1;" ::"r"(t), "r"(512));
#endif
}
__global__ void packed(float2* a, float* b) {
#if __CUDA_ARCH_FEAT_SM100_ALL
  float2 x = a[threadIdx.x], y = a[threadIdx.x + 1];
  unsigned long long p = *(unsigned long long*)&x, q = *(unsigned long long*)&y, r;
  asm("fma.rn.f32x2 %0, %1, %2, %1;" : "=l"(r) : "l"(p), "l"(q));
  a[threadIdx.x] = *(float2*)&r;
  unsigned e;
  asm("cvt.rs.satfinite.e4m3x4.f32 %0, {%1, %2, %3, %4}, %5;" : "=r"(e) : "f"(x.x), "f"(x.y), "f"(y.x), "f"(y.y), "r"(7));
  asm("max.f32 %0, %1, %2, %3;" : "=f"(b[0]) : "f"(x.x), "f"(x.y), "f"(y.x));
  b[1] = e;
#endif
}
