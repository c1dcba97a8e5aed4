// XSA_HOST_DEVICE marks the functions that CPU and CUDA share. On the host they are always inlined
// and internal: the CPU kernel compiles them once per instruction set, and the linker must never
// merge those copies.
#pragma once

#if defined(__CUDACC__)
#define XSA_HOST_DEVICE __host__ __device__ __forceinline__ static
#else
#define XSA_HOST_DEVICE __attribute__((always_inline)) static inline
#endif
