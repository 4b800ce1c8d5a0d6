/* libcudart: memory. */
#include "runtime.h"
#include <string.h>

int cuMemGetInfo_v2(size_t *, size_t *);

VEOSIM_API int cudaMemGetInfo(size_t *free, size_t *total) {
    int code;
    RUNTIME_ENTER();
    code = core_open(core_current());
    if (!code) core_memory(core_current(), free, total);
    return runtime_result(code);
}

/* ---- allocate and free ---- */

VEOSIM_API int cudaMalloc(void **p, size_t n) { RUNTIME_CALL(core_alloc(p, n, CORE_DEVICE)); }
VEOSIM_API int cudaFree(void *p) {
    int code;
    RUNTIME_ENTER();
    code = core_open(core_current()); /* cudaFree(0) is how programs open a context */
    return runtime_result(code ? code : core_free(p, CORE_DEVICE));
}
VEOSIM_API int cudaMallocManaged(void **p, size_t n, unsigned flags) {
    (void)flags;
    RUNTIME_CALL(core_alloc(p, n, CORE_MANAGED));
}
VEOSIM_API int cudaMallocAsync(void **p, size_t n, stream_t s) {
    (void)s;
    RUNTIME_CALL(core_alloc(p, n, CORE_POOL));
}
VEOSIM_API int cudaFreeAsync(void *p, stream_t s) {
    (void)s;
    RUNTIME_ENTER();
    core_submit();
    return runtime_result(core_free(p, CORE_POOL));
}
VEOSIM_API int cudaHostAlloc(void **p, size_t n, unsigned flags) {
    (void)flags;
    RUNTIME_CALL(core_alloc(p, n, CORE_HOST));
}
VEOSIM_API int cudaMallocHost(void **p, size_t n) { RUNTIME_CALL(core_alloc(p, n, CORE_HOST)); }
VEOSIM_API int cudaFreeHost(void *p) { RUNTIME_CALL(core_free(p, CORE_HOST)); }
VEOSIM_API int cudaHostRegister(void *p, size_t n, unsigned flags) {
    (void)flags;
    RUNTIME_CALL(core_register(p, n));
}
VEOSIM_API int cudaHostUnregister(void *p) { RUNTIME_CALL(core_free(p, CORE_REGISTERED)); }
VEOSIM_API int cudaHostGetDevicePointer(void **out, void *p, unsigned flags) {
    (void)flags;
    *out = p;
    return CUDA_OK;
}

/* ---- what an address is ---- */

#ifdef CUDART_12
#define ATTRIBUTES_SIZE 24
#else
#define ATTRIBUTES_SIZE 88
#endif
VEOSIM_API int cudaPointerGetAttributes(void *out, const void *p) {
    struct {
        int type, device;
        const void *on_device, *on_host;
    } found = {0, -2, NULL, p}; /* not registered: plain host memory */
    int kind;
    RUNTIME_ENTER();
    if (!core_find(p, NULL, NULL, &found.device, &kind)) {
        int host = kind == CORE_HOST || kind == CORE_REGISTERED;
        found.type = host ? 1 : kind == CORE_MANAGED ? 3 : 2;
        found.on_device = p;
        found.on_host = host ? p : NULL;
    }
    memset(out, 0, ATTRIBUTES_SIZE);
    memcpy(out, &found, sizeof found);
    return CUDA_OK;
}

/* ---- copies and fills ---- */

VEOSIM_API int cudaMemcpy(void *to, const void *from, size_t n, int kind) {
    (void)kind;
    RUNTIME_ENTER();
    core_copy(to, from, n);
    return CUDA_OK;
}
VEOSIM_API int cudaMemcpyAsync(void *to, const void *from, size_t n, int kind, stream_t s) {
    (void)kind, (void)s;
    RUNTIME_ENTER();
    core_copy(to, from, n);
    return CUDA_OK;
}
VEOSIM_API int cudaMemcpyPeerAsync(void *to, int to_device, const void *from, int from_device,
                                   size_t n, stream_t s) {
    (void)to_device, (void)from_device, (void)s;
    RUNTIME_ENTER();
    core_copy(to, from, n);
    return CUDA_OK;
}
VEOSIM_API int cudaMemcpy2DAsync(void *to, size_t to_pitch, const void *from, size_t from_pitch,
                                 size_t width, size_t height, int kind, stream_t s) {
    (void)kind, (void)s;
    RUNTIME_ENTER();
    for (size_t row = 0; row < height; row++)
        core_copy((char *)to + row * to_pitch, (const char *)from + row * from_pitch, width);
    return CUDA_OK;
}
VEOSIM_API int cudaMemset(void *p, int value, size_t n) {
    RUNTIME_ENTER();
    core_submit();
    memset(p, value, n);
    return CUDA_OK;
}
VEOSIM_API int cudaMemsetAsync(void *p, int value, size_t n, stream_t s) {
    (void)s;
    RUNTIME_ENTER();
    core_submit();
    memset(p, value, n);
    return CUDA_OK;
}
VEOSIM_API int cudaMemcpyToSymbol(const void *symbol, const void *from, size_t n, size_t offset,
                                  int kind) {
    (void)symbol, (void)from, (void)n, (void)offset, (void)kind;
    return CUDA_OK;
}
VEOSIM_API int cudaGetSymbolAddress(void **out, const void *symbol) {
    *out = (void *)symbol;
    return CUDA_OK;
}

/* ---- the stream-ordered pools: the default one of each device ---- */

static int device_of(const void *pool) {
    return (int)((const struct core_pool *)pool - core_pool(0));
}
VEOSIM_API int cudaDeviceGetDefaultMemPool(void **pool, int d) {
    RUNTIME_ENTER();
    if (!core_valid(d)) return runtime_result(CUDA_INVALID_DEVICE);
    *pool = core_pool(d);
    return CUDA_OK;
}
VEOSIM_API int cudaDeviceGetMemPool(void **pool, int d) {
    return cudaDeviceGetDefaultMemPool(pool, d);
}
VEOSIM_API int cudaMemPoolGetAttribute(void *pool, int attribute, void *value) {
    RUNTIME_CALL(core_pool_get(device_of(pool), attribute, value));
}
VEOSIM_API int cudaMemPoolSetAttribute(void *pool, int attribute, void *value) {
    RUNTIME_CALL(core_pool_set(device_of(pool), attribute, value));
}
VEOSIM_API int cudaMemPoolSetAccess(void *pool, const void *access, size_t count) {
    (void)pool, (void)access, (void)count;
    return CUDA_OK;
}
VEOSIM_API int cudaMemPoolTrimTo(void *pool, size_t keep) {
    RUNTIME_ENTER();
    core_pool_trim(device_of(pool), keep);
    return CUDA_OK;
}
