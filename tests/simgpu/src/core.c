/* Contexts, allocations and work of this process. Device memory is host memory that
 * is committed when it is touched. */
#define _GNU_SOURCE
#include "core.h"
#include "space.h"
#include <search.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

struct block {
    uintptr_t base;
    size_t size, requested;
    int device, kind, packed;
};

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static void *blocks; /* of struct block, by address */
static pid_t initialised_in;
static int opened[VEOSIM_DEVICES];
static uint64_t packed_bytes[VEOSIM_DEVICES];
static struct core_pool pools[VEOSIM_DEVICES];
static __thread int current;

static void lock(void) {
    pthread_mutex_lock(&mutex);
    veosim_lock(veosim());
}
static void unlock(void) {
    veosim_unlock(veosim());
    pthread_mutex_unlock(&mutex);
}

/* A fork of a process that has initialised CUDA can never use it. */
int core_initialise(void) {
    pid_t me = getpid();
    if (initialised_in && initialised_in != me) return CUDA_NOT_INITIALIZED;
    initialised_in = me;
    return CUDA_OK;
}
int core_ready(void) {
    return initialised_in && initialised_in == getpid() ? CUDA_OK : CUDA_NOT_INITIALIZED;
}
static int unless_lost(int code) {
    if (code) return code;
    return core_device(current)->lost ? CUDA_UNKNOWN : CUDA_OK;
}
int core_enter(const char *function) {
    int code = veosim_fault(function);
    return unless_lost(code ? code : core_initialise());
}
int core_enter_driver(const char *function) {
    int code = veosim_fault(function);
    return unless_lost(code ? code : core_ready());
}

/* ---- devices and contexts ---- */

int core_current(void) { return current; }
int core_valid(int device) { return device >= 0 && device < (int)veosim()->devices; }
struct veosim_device *core_device(int device) { return &veosim()->device[device]; }

static int open_locked(int device) {
    struct veosim_device *d = core_device(device);
    if (opened[device]) return CUDA_OK;
    if (veosim_charge(d, d->context_bytes)) return CUDA_OUT_OF_MEMORY;
    veosim_own(d, 1)->context_bytes = d->context_bytes;
    opened[device] = 1;
    space_give(space_take(4096, 4096), 4096); /* the range is reserved with the context */
    return CUDA_OK;
}

int core_open(int device) {
    int code;
    if (!core_valid(device)) return CUDA_INVALID_DEVICE;
    if (opened[device]) return CUDA_OK;
    lock();
    code = open_locked(device);
    unlock();
    return code;
}

int core_is_open(int device) { return opened[device]; }

int core_set_current(int device) {
    int code = core_open(device);
    if (!code) current = device;
    return code;
}

/* ---- the allocations of this process ---- */

static int by_address(const void *a, const void *b) {
    const struct block *x = a, *y = b; /* overlap counts as equal: look-up by range */
    if (x->base + x->size <= y->base) return -1;
    return y->base + y->size <= x->base ? 1 : 0;
}

static struct block *at(const void *p) {
    struct block key = {.base = (uintptr_t)p, .size = 1};
    struct block **found = tfind(&key, &blocks, by_address);
    return found ? *found : NULL;
}

static void enter(void *p, size_t size, size_t requested, int device, int kind, int packed) {
    struct block *b = malloc(sizeof *b);
    *b = (struct block){(uintptr_t)p, size, requested, device, kind, packed};
    tsearch(b, &blocks, by_address);
}

static uint64_t up(uint64_t n, uint64_t step) { return (n + step - 1) / step * step; }
static uint64_t granularity(const struct veosim_device *d) {
    return d->granularity_bytes ? d->granularity_bytes : 512;
}
static int is_host(int kind) { return kind == CORE_HOST || kind == CORE_REGISTERED; }

/* Small blocks share slabs of one granule, as drivers do. */
static int charge_packed(int device, size_t size) {
    struct veosim_device *d = core_device(device);
    uint64_t had = packed_bytes[device], step = granularity(d);
    uint64_t more = up(had + size, step) - up(had, step);
    if (more && veosim_charge(d, more)) return -1;
    packed_bytes[device] = had + size;
    return 0;
}
static void discharge_packed(int device, size_t size) {
    struct veosim_device *d = core_device(device);
    uint64_t had = packed_bytes[device], step = granularity(d);
    packed_bytes[device] = had - size;
    if (up(had, step) - up(had - size, step))
        veosim_discharge(d, up(had, step) - up(had - size, step));
}

static int charge_pool(int device, size_t size) {
    struct veosim_device *d = core_device(device);
    struct core_pool *pool = &pools[device];
    if (pool->used + size > pool->reserved) {
        uint64_t more = up(pool->used + size - pool->reserved, granularity(d));
        if (veosim_charge(d, more)) return -1;
        pool->reserved += more;
    }
    pool->used += size;
    if (pool->used > pool->used_high) pool->used_high = pool->used;
    if (pool->reserved > pool->reserved_high) pool->reserved_high = pool->reserved;
    return 0;
}

static size_t size_of(const struct veosim_device *d, size_t bytes, int kind, int packed) {
    if (is_host(kind)) return up(bytes, 4096);
    return up(bytes, packed || kind == CORE_POOL ? 512 : granularity(d));
}

static int charge(int device, size_t size, int kind, int packed) {
    if (is_host(kind)) return 0;
    if (kind == CORE_POOL) return charge_pool(device, size);
    if (packed) return charge_packed(device, size);
    return veosim_charge(core_device(device), size);
}

static void discharge(const struct block *b) {
    if (is_host(b->kind)) return;
    if (b->kind == CORE_POOL) pools[b->device].used -= b->size; /* stays reserved */
    else if (b->packed) discharge_packed(b->device, b->size);
    else veosim_discharge(core_device(b->device), b->size);
}

static void count(int device, int kind, long long requested, int allocations) {
    struct veosim_process *p = veosim_own(core_device(device), 1);
    if (!p) return;
    if (is_host(kind)) {
        p->pinned_bytes += (uint64_t)requested;
        return;
    }
    p->requested_bytes += (uint64_t)requested;
    p->allocations += (uint64_t)allocations;
}

static void *commit(size_t size, int kind) {
    void *p;
    if (!is_host(kind)) return space_take(up(size, 4096), size < 2u << 20 ? 4096 : 2u << 20);
    p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return p == MAP_FAILED ? NULL : p;
}
static void uncommit(const struct block *b) {
    if (b->kind == CORE_HOST) munmap((void *)b->base, b->size);
    else if (b->kind != CORE_REGISTERED) space_give((void *)b->base, up(b->size, 4096));
}

static int alloc_locked(void **out, size_t bytes, int kind) {
    struct veosim_device *d = core_device(current);
    int packed = !is_host(kind) && kind != CORE_POOL && bytes <= granularity(d) / 2;
    size_t size = size_of(d, bytes, kind, packed);
    int code = open_locked(current);
    void *p;
    if (code) return code;
    if (charge(current, size, kind, packed)) return CUDA_OUT_OF_MEMORY;
    p = commit(size, kind);
    if (!p) {
        struct block b = {0, size, bytes, current, kind, packed};
        discharge(&b);
        return CUDA_OUT_OF_MEMORY;
    }
    enter(p, size, bytes, current, kind, packed);
    count(current, kind, (long long)bytes, 1);
    d->mallocs++;
    *out = p;
    return CUDA_OK;
}

int core_alloc(void **out, size_t bytes, int kind) {
    int code;
    *out = NULL;
    if (!bytes) return CUDA_OK;
    if (bytes > (1ull << 46)) return CUDA_OUT_OF_MEMORY;
    lock();
    code = alloc_locked(out, bytes, kind);
    unlock();
    return code;
}

static void remove_locked(struct block *b) {
    discharge(b);
    count(b->device, b->kind, -(long long)b->requested, -1);
    core_device(b->device)->frees++;
    uncommit(b);
    tdelete(b, &blocks, by_address);
    free(b);
}

int core_free(void *p, int kind) {
    struct block *b;
    int good;
    if (!p) return CUDA_OK;
    lock();
    b = at(p);
    good = b && b->base == (uintptr_t)p && is_host(b->kind) == is_host(kind);
    if (good) remove_locked(b);
    unlock();
    return good ? CUDA_OK : CUDA_INVALID_VALUE;
}

int core_register(void *p, size_t bytes) {
    int code;
    lock();
    code = at(p) ? CUDA_INVALID_VALUE : open_locked(current);
    if (!code) {
        enter(p, bytes, bytes, current, CORE_REGISTERED, 0);
        count(current, CORE_REGISTERED, (long long)bytes, 0);
    }
    unlock();
    return code;
}

int core_find(const void *p, void **base, size_t *bytes, int *device, int *kind) {
    struct block *b;
    lock();
    b = at(p);
    if (b) {
        if (base) *base = (void *)b->base;
        if (bytes) *bytes = b->requested;
        if (device) *device = b->device;
        if (kind) *kind = b->kind;
    }
    unlock();
    return b ? 0 : -1;
}

struct search {
    int device;
    struct block *found;
};
static void look(const void *node, VISIT visit, void *closure) {
    struct search *s = closure;
    struct block *b = *(struct block *const *)node;
    if ((visit == postorder || visit == leaf) && b->device == s->device) s->found = b;
}
static struct block *any_on(int device) {
    struct search s = {device, NULL};
    twalk_r(blocks, look, &s);
    return s.found;
}

void core_close(int device) {
    struct block *b;
    lock();
    while ((b = any_on(device))) remove_locked(b);
    if (opened[device]) {
        struct veosim_device *d = core_device(device);
        veosim_discharge(d, pools[device].reserved + veosim_own(d, 1)->context_bytes);
        memset(&pools[device], 0, sizeof pools[device]);
        memset(veosim_own(d, 1), 0, sizeof(struct veosim_process));
        opened[device] = 0;
    }
    unlock();
}

void core_memory(int device, size_t *free, size_t *total) {
    struct veosim_device *d = core_device(device);
    uint64_t used;
    lock();
    used = veosim_shown(d) + d->reserved_bytes;
    unlock();
    *total = d->mig_mode > 0 ? d->mig_total_bytes : d->total_bytes;
    *free = used < *total ? *total - used : 0;
}

void core_copy(void *to, const void *from, size_t bytes) {
    core_submit();
    __atomic_fetch_add(&core_device(current)->copies, 1, __ATOMIC_RELAXED);
    memmove(to, from, bytes);
}

/* ---- memory without an address, addresses without memory ---- */

int core_charge(int device, size_t bytes) {
    int code;
    lock();
    code = open_locked(device);
    if (!code && veosim_charge(core_device(device), bytes)) code = CUDA_OUT_OF_MEMORY;
    if (!code) count(device, CORE_DEVICE, (long long)bytes, 1);
    if (!code) core_device(device)->mallocs++;
    unlock();
    return code;
}
void core_discharge(int device, size_t bytes) {
    lock();
    veosim_discharge(core_device(device), bytes);
    count(device, CORE_DEVICE, -(long long)bytes, -1);
    core_device(device)->frees++;
    unlock();
}
void core_map(void *p, size_t bytes, int device) {
    pthread_mutex_lock(&mutex);
    enter(p, bytes, bytes, device, CORE_DEVICE, 0);
    pthread_mutex_unlock(&mutex);
}
void core_unmap(void *p) {
    struct block *b;
    pthread_mutex_lock(&mutex);
    b = at(p);
    if (b) {
        madvise((void *)b->base, b->size, MADV_REMOVE);
        tdelete(b, &blocks, by_address);
        free(b);
    }
    pthread_mutex_unlock(&mutex);
}

void *core_reserve(size_t bytes, size_t align) {
    void *p;
    pthread_mutex_lock(&mutex);
    p = space_take(bytes, align);
    pthread_mutex_unlock(&mutex);
    return p;
}
void core_unreserve(void *p, size_t bytes) {
    pthread_mutex_lock(&mutex);
    space_give(p, bytes);
    pthread_mutex_unlock(&mutex);
}

/* ---- the stream-ordered pool ---- */

struct core_pool *core_pool(int device) { return &pools[device]; }

void core_pool_trim(int device, uint64_t keep) {
    struct core_pool *pool = &pools[device];
    uint64_t least;
    lock();
    least = up(pool->used > keep ? pool->used : keep, granularity(core_device(device)));
    if (pool->reserved > least) {
        veosim_discharge(core_device(device), pool->reserved - least);
        pool->reserved = least;
    }
    unlock();
}
