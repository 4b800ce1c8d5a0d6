/* What libcuda, the owner of the simulation, offers to the runtime and to CuPy's door. */
#ifndef VEOSIM_CORE_H
#define VEOSIM_CORE_H
#include "veosim.h"

/* CUDA's codes; the driver's and the runtime's agree in these. */
enum core_code {
    CUDA_OK = 0,
    CUDA_INVALID_VALUE = 1,
    CUDA_OUT_OF_MEMORY = 2,
    CUDA_NOT_INITIALIZED = 3,
    CUDA_NO_DEVICE = 100,
    CUDA_INVALID_DEVICE = 101,
    CUDA_NOT_FOUND = 500,
    CUDA_NOT_READY = 600,
    CUDA_NOT_SUPPORTED = 801,
    CUDA_UNKNOWN = 999
};
enum core_kind { CORE_DEVICE = 1, CORE_HOST, CORE_POOL, CORE_MANAGED, CORE_REGISTERED };

/* First thing in every function: the injected code, "not initialised" in a fork of a
 * process that uses CUDA, "unknown" on a lost device, or 0. The runtime initialises by
 * itself; the driver waits for cuInit. */
VEOSIM_API int core_enter(const char *function);
VEOSIM_API int core_enter_driver(const char *function);
VEOSIM_API int core_initialise(void);
VEOSIM_API int core_ready(void);
#define CORE_ENTER()                             \
    do {                                         \
        int code_ = core_enter_driver(__func__); \
        if (code_) return code_;                 \
    } while (0)

VEOSIM_API int core_current(void);           /* this thread's device */
VEOSIM_API int core_set_current(int device); /* 0, or invalid device, or out of memory */
VEOSIM_API int core_valid(int device);
VEOSIM_API int core_open(int device); /* the context: 0 or out of memory */
VEOSIM_API int core_is_open(int device);
VEOSIM_API void core_close(int device); /* frees all that this process has there */
VEOSIM_API struct veosim_device *core_device(int device);

VEOSIM_API int core_alloc(void **out, size_t bytes, int kind);
VEOSIM_API int core_free(void *p, int kind);
VEOSIM_API int core_register(void *p, size_t bytes);
VEOSIM_API int core_find(const void *p, void **base, size_t *bytes, int *device, int *kind);
VEOSIM_API void core_memory(int device, size_t *free, size_t *total);
VEOSIM_API void core_copy(void *to, const void *from, size_t bytes);

/* Physical memory of the virtual memory interface: a charge without an address. */
VEOSIM_API int core_charge(int device, size_t bytes);
VEOSIM_API void core_discharge(int device, size_t bytes);
VEOSIM_API void *core_reserve(size_t bytes, size_t align);
VEOSIM_API void core_unreserve(void *p, size_t bytes);
VEOSIM_API void core_map(void *p, size_t bytes, int device);
VEOSIM_API void core_unmap(void *p);

struct core_pool { /* the stream-ordered allocator's default pool, one a device */
    uint64_t used, used_high, reserved, reserved_high, threshold;
};
VEOSIM_API struct core_pool *core_pool(int device);
VEOSIM_API void core_pool_trim(int device, uint64_t keep);
VEOSIM_API int core_pool_get(int device, int attribute, void *value);
VEOSIM_API int core_pool_set(int device, int attribute, const void *value);

/* Work: everything is done at once, unless the device's events are held. */
VEOSIM_API uint64_t core_submit(void); /* the number of this piece of work */
VEOSIM_API int core_is_done(int device, uint64_t work);
VEOSIM_API int core_is_idle(int device);
VEOSIM_API void core_synchronize(int device); /* everything up to now is done */
VEOSIM_API void core_launch(void);

VEOSIM_API void *core_lookup(const char *driver_function);
VEOSIM_API void core_uuid(unsigned char out[16], const char *text);
#endif
