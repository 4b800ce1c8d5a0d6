/* libcuda.so.1: memory. */
#include "core.h"
#include <stdlib.h>
#include <string.h>

typedef uintptr_t address;

VEOSIM_API int cuMemGetInfo_v2(size_t *free, size_t *total) {
    int code;
    CORE_ENTER();
    code = core_open(core_current());
    if (!code) core_memory(core_current(), free, total);
    return code;
}

/* ---- allocate and free ---- */

VEOSIM_API int cuMemAlloc_v2(address *p, size_t n) {
    CORE_ENTER();
    return n ? core_alloc((void **)p, n, CORE_DEVICE) : CUDA_INVALID_VALUE;
}
VEOSIM_API int cuMemFree_v2(address p) {
    CORE_ENTER();
    return core_free((void *)p, CORE_DEVICE);
}
VEOSIM_API int cuMemAllocManaged(address *p, size_t n, unsigned flags) {
    (void)flags;
    CORE_ENTER();
    return n ? core_alloc((void **)p, n, CORE_MANAGED) : CUDA_INVALID_VALUE;
}
VEOSIM_API int cuMemAllocHost_v2(void **p, size_t n) {
    CORE_ENTER();
    return core_alloc(p, n, CORE_HOST);
}
VEOSIM_API int cuMemHostAlloc(void **p, size_t n, unsigned flags) {
    (void)flags;
    CORE_ENTER();
    return core_alloc(p, n, CORE_HOST);
}
VEOSIM_API int cuMemFreeHost(void *p) {
    CORE_ENTER();
    return core_free(p, CORE_HOST);
}
VEOSIM_API int cuMemHostGetDevicePointer_v2(address *out, void *p, unsigned flags) {
    (void)flags;
    *out = (address)p;
    return CUDA_OK;
}
VEOSIM_API int cuMemHostRegister_v2(void *p, size_t n, unsigned flags) {
    (void)flags;
    CORE_ENTER();
    return core_register(p, n);
}
VEOSIM_API int cuMemHostUnregister(void *p) {
    CORE_ENTER();
    return core_free(p, CORE_REGISTERED);
}
VEOSIM_API int cuMemAllocAsync(address *p, size_t n, void *stream) {
    (void)stream;
    CORE_ENTER();
    return n ? core_alloc((void **)p, n, CORE_POOL) : CUDA_INVALID_VALUE;
}
VEOSIM_API int cuMemFreeAsync(address p, void *stream) {
    (void)stream;
    CORE_ENTER();
    core_submit();
    return core_free((void *)p, CORE_POOL);
}

/* ---- what an address is ---- */

VEOSIM_API int cuMemGetAddressRange_v2(address *base, size_t *n, address p) {
    void *start;
    size_t size;
    if (core_find((void *)p, &start, &size, NULL, NULL)) return CUDA_INVALID_VALUE;
    if (base) *base = (address)start;
    if (n) *n = size;
    return CUDA_OK;
}
VEOSIM_API int cuPointerGetAttribute(void *out, int attribute, address p) {
    int device, kind;
    if (core_find((void *)p, NULL, NULL, &device, &kind)) return CUDA_INVALID_VALUE;
    switch (attribute) {
    case 2: *(unsigned *)out = kind == CORE_HOST || kind == CORE_REGISTERED ? 1 : 2; break;
    case 3:
    case 4: *(address *)out = p; break;
    case 8: *(unsigned *)out = kind == CORE_MANAGED; break;
    case 9: *(int *)out = device; break;
    default: return CUDA_INVALID_VALUE;
    }
    return CUDA_OK;
}

/* ---- copies and fills ---- */

#define COPY(name, to_type, from_type)                                 \
    VEOSIM_API int name(to_type to, from_type from, size_t n) {        \
        CORE_ENTER();                                                  \
        core_copy((void *)to, (const void *)from, n);                  \
        return CUDA_OK;                                                \
    }
#define COPY_ASYNC(name, to_type, from_type)                           \
    VEOSIM_API int name(to_type to, from_type from, size_t n, void *stream) { \
        (void)stream;                                                  \
        CORE_ENTER();                                                  \
        core_copy((void *)to, (const void *)from, n);                  \
        return CUDA_OK;                                                \
    }
COPY(cuMemcpy, address, address)
COPY(cuMemcpyHtoD_v2, address, const void *)
COPY(cuMemcpyDtoH_v2, void *, address)
COPY(cuMemcpyDtoD_v2, address, address)
COPY_ASYNC(cuMemcpyAsync, address, address)
COPY_ASYNC(cuMemcpyHtoDAsync_v2, address, const void *)
COPY_ASYNC(cuMemcpyDtoHAsync_v2, void *, address)
COPY_ASYNC(cuMemcpyDtoDAsync_v2, address, address)

VEOSIM_API int cuMemsetD8_v2(address p, unsigned char value, size_t n) {
    CORE_ENTER();
    core_submit();
    memset((void *)p, value, n);
    return CUDA_OK;
}
VEOSIM_API int cuMemsetD8Async(address p, unsigned char value, size_t n, void *stream) {
    (void)stream;
    CORE_ENTER();
    core_submit();
    memset((void *)p, value, n);
    return CUDA_OK;
}
VEOSIM_API int cuMemsetD32Async(address p, unsigned value, size_t n, void *stream) {
    (void)stream;
    CORE_ENTER();
    core_submit();
    for (size_t i = 0; i < n; i++) ((unsigned *)p)[i] = value;
    return CUDA_OK;
}

/* ---- virtual memory: a reservation is an empty range, a handle is a charge ---- */

struct physical {
    size_t size;
    int device, references;
};
struct mapping {
    address base;
    struct physical *memory;
    struct mapping *next;
};
static struct mapping *mappings;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
#define PAGE (2u << 20)

VEOSIM_API int cuMemGetAllocationGranularity(size_t *out, const void *prop, int option) {
    (void)prop, (void)option;
    *out = PAGE;
    return CUDA_OK;
}
VEOSIM_API int cuMemAddressReserve(address *out, size_t n, size_t align, address hint,
                                   unsigned long long flags) {
    (void)hint, (void)flags;
    CORE_ENTER();
    *out = (address)core_reserve(n, align < PAGE ? PAGE : align);
    return *out ? CUDA_OK : CUDA_OUT_OF_MEMORY;
}
VEOSIM_API int cuMemAddressFree(address p, size_t n) {
    CORE_ENTER();
    core_unreserve((void *)p, n);
    return CUDA_OK;
}
VEOSIM_API int cuMemCreate(struct physical **out, size_t n, const void *prop,
                           unsigned long long flags) {
    int device = ((const int *)prop)[3], code; /* type, handle types, location {type, id} */
    (void)flags;
    CORE_ENTER();
    if (!core_valid(device)) return CUDA_INVALID_DEVICE;
    if ((code = core_charge(device, n))) return code;
    *out = malloc(sizeof **out);
    **out = (struct physical){n, device, 1};
    return CUDA_OK;
}
static void let_go(struct physical *memory) {
    if (--memory->references) return;
    core_discharge(memory->device, memory->size);
    free(memory);
}
VEOSIM_API int cuMemRelease(struct physical *memory) {
    CORE_ENTER();
    pthread_mutex_lock(&mutex);
    let_go(memory);
    pthread_mutex_unlock(&mutex);
    return CUDA_OK;
}
VEOSIM_API int cuMemMap(address p, size_t n, size_t offset, struct physical *memory,
                        unsigned long long flags) {
    struct mapping *m;
    (void)offset, (void)flags;
    CORE_ENTER();
    m = malloc(sizeof *m);
    pthread_mutex_lock(&mutex);
    *m = (struct mapping){p, memory, mappings};
    mappings = m;
    memory->references++;
    pthread_mutex_unlock(&mutex);
    core_map((void *)p, n, memory->device);
    return CUDA_OK;
}
VEOSIM_API int cuMemUnmap(address p, size_t n) {
    CORE_ENTER();
    pthread_mutex_lock(&mutex);
    for (struct mapping **link = &mappings; *link;) {
        struct mapping *m = *link;
        if (m->base < p || m->base >= p + n) {
            link = &m->next;
            continue;
        }
        core_unmap((void *)m->base);
        let_go(m->memory);
        *link = m->next;
        free(m);
    }
    pthread_mutex_unlock(&mutex);
    return CUDA_OK;
}
VEOSIM_API int cuMemSetAccess(address p, size_t n, const void *access, size_t count) {
    (void)p, (void)n, (void)access, (void)count;
    return CUDA_OK;
}

/* ---- the stream-ordered pools: the default one of each device ---- */

static int device_of(const void *pool) {
    return (int)((const struct core_pool *)pool - core_pool(0));
}
VEOSIM_API int cuDeviceGetDefaultMemPool(void **pool, int d) {
    if (!core_valid(d)) return CUDA_INVALID_DEVICE;
    *pool = core_pool(d);
    return CUDA_OK;
}
VEOSIM_API int cuDeviceGetMemPool(void **pool, int d) { return cuDeviceGetDefaultMemPool(pool, d); }
VEOSIM_API int cuDeviceSetMemPool(int d, void *pool) {
    return pool == core_pool(d) ? CUDA_OK : CUDA_NOT_SUPPORTED;
}
VEOSIM_API int cuMemPoolGetAttribute(void *pool, int attribute, void *value) {
    return core_pool_get(device_of(pool), attribute, value);
}
VEOSIM_API int cuMemPoolSetAttribute(void *pool, int attribute, void *value) {
    return core_pool_set(device_of(pool), attribute, value);
}
VEOSIM_API int cuMemPoolTrimTo(void *pool, size_t keep) {
    core_pool_trim(device_of(pool), keep);
    return CUDA_OK;
}
VEOSIM_API int cuMemPoolSetAccess(void *pool, const void *access, size_t count) {
    (void)pool, (void)access, (void)count;
    return CUDA_OK;
}
VEOSIM_API int cuMemAllocFromPoolAsync(address *p, size_t n, void *pool, void *stream) {
    (void)pool;
    return cuMemAllocAsync(p, n, stream);
}
