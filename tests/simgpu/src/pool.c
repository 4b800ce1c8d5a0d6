/* The attributes of the stream-ordered pools, by number as the public headers have them. */
#include "core.h"

static uint64_t *pool_field(int device, int attribute) {
    struct core_pool *pool = core_pool(device);
    switch (attribute) {
    case 4: return &pool->threshold;
    case 5: return &pool->reserved;
    case 6: return &pool->reserved_high;
    case 7: return &pool->used;
    case 8: return &pool->used_high;
    default: return NULL;
    }
}
int core_pool_get(int device, int attribute, void *value) {
    uint64_t *field = pool_field(device, attribute);
    if (field) *(uint64_t *)value = *field;
    else if (attribute >= 1 && attribute <= 3) *(int *)value = 1; /* the reuse policies */
    else return CUDA_INVALID_VALUE;
    return CUDA_OK;
}
int core_pool_set(int device, int attribute, const void *value) {
    uint64_t *field = pool_field(device, attribute);
    if (attribute >= 1 && attribute <= 3) return CUDA_OK;
    if (!field || attribute == 5 || attribute == 7) return CUDA_INVALID_VALUE;
    /* a high-water mark can only be reset */
    *field = attribute == 4 ? *(const uint64_t *)value
                            : attribute == 6 ? core_pool(device)->reserved : core_pool(device)->used;
    return CUDA_OK;
}
