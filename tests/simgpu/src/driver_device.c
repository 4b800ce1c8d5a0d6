/* libcuda.so.1: initialisation, devices, contexts, modules, errors, look-up. */
#define _GNU_SOURCE
#include "core.h"
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NEED_DEVICE(d)                                  \
    do {                                                \
        if (core_ready()) return CUDA_NOT_INITIALIZED;  \
        if (!core_valid(d)) return CUDA_INVALID_DEVICE; \
    } while (0)

VEOSIM_API int cuInit(unsigned flags) {
    int code = veosim_fault(__func__);
    (void)flags;
    if (!code) code = core_initialise();
    if (code) return code;
    return veosim()->devices ? CUDA_OK : CUDA_NO_DEVICE;
}
VEOSIM_API int cuDriverGetVersion(int *v) {
    *v = veosim()->cuda_version;
    return CUDA_OK;
}

/* ---- devices ---- */

VEOSIM_API int cuDeviceGetCount(int *n) {
    CORE_ENTER();
    *n = (int)veosim()->devices;
    return CUDA_OK;
}
VEOSIM_API int cuDeviceGet(int *d, int index) {
    NEED_DEVICE(index);
    *d = index;
    return CUDA_OK;
}
VEOSIM_API int cuDeviceGetName(char *b, int n, int d) {
    NEED_DEVICE(d);
    snprintf(b, (size_t)n, "%s", core_device(d)->name);
    return CUDA_OK;
}
VEOSIM_API int cuDeviceGetUuid(unsigned char *out, int d) { /* the whole device's */
    NEED_DEVICE(d);
    core_uuid(out, core_device(d)->uuid);
    return CUDA_OK;
}
VEOSIM_API int cuDeviceGetUuid_v2(unsigned char *out, int d) { /* the MIG instance's */
    NEED_DEVICE(d);
    core_uuid(out, core_device(d)->mig_mode > 0 ? core_device(d)->mig_uuid : core_device(d)->uuid);
    return CUDA_OK;
}
VEOSIM_API int cuDeviceTotalMem_v2(size_t *bytes, int d) {
    NEED_DEVICE(d);
    *bytes = core_device(d)->mig_mode > 0 ? core_device(d)->mig_total_bytes
                                          : core_device(d)->total_bytes;
    return CUDA_OK;
}
VEOSIM_API int cuDeviceComputeCapability(int *major, int *minor, int d) {
    NEED_DEVICE(d);
    *major = (int)core_device(d)->capability_major;
    *minor = (int)core_device(d)->capability_minor;
    return CUDA_OK;
}
VEOSIM_API int cuDeviceGetPCIBusId(char *b, int n, int d) {
    NEED_DEVICE(d);
    snprintf(b, (size_t)n, "%s", core_device(d)->bus_id);
    return CUDA_OK;
}

/* Attributes by number, as the public headers have them; the rest is 0 ("no"). */
static const struct {
    int attribute, value;
} attributes[] = {
    {1, 1024}, {2, 1024}, {3, 1024}, {4, 64}, {5, 0x7fffffff}, {6, 65535}, {7, 65535},
    {8, 49152}, {9, 65536}, {10, 32}, {11, 0x7fffffff}, {12, 65536}, {13, 1410000}, {14, 512},
    {15, 1}, {19, 1}, {31, 1}, {36, 1215000}, {37, 5120}, {38, 40 << 20}, {39, 2048}, {40, 3},
    {41, 1}, {78, 1}, {81, 167936}, {82, 65536}, {83, 1}, {90, 1}, {95, 1}, {97, 166912},
    {102, 1}, {106, 32}, {111, 1024}, {115, 1},
};
VEOSIM_API int cuDeviceGetAttribute(int *value, int attribute, int d) {
    const struct veosim_device *device;
    unsigned domain, bus = 0, slot = 0;
    NEED_DEVICE(d);
    device = core_device(d);
    sscanf(device->bus_id, "%x:%x:%x", &domain, &bus, &slot);
    *value = 0;
    for (size_t i = 0; i < sizeof attributes / sizeof *attributes; i++)
        if (attributes[i].attribute == attribute) *value = attributes[i].value;
    if (attribute == 16) *value = (int)device->multiprocessors;
    if (attribute == 18) *value = (int)device->integrated;
    if (attribute == 33) *value = (int)bus;
    if (attribute == 34) *value = (int)slot;
    if (attribute == 75) *value = (int)device->capability_major;
    if (attribute == 76) *value = (int)device->capability_minor;
    return CUDA_OK;
}

/* ---- contexts: one a device, the primary ---- */

struct context {
    int device;
};
static struct context primary[VEOSIM_DEVICES];
static __thread int has_context;

static struct context *context_of(int d) {
    primary[d].device = d;
    return &primary[d];
}
VEOSIM_API int cuDevicePrimaryCtxRetain(struct context **c, int d) {
    int code;
    CORE_ENTER();
    code = core_open(d);
    if (!code) *c = context_of(d);
    return code;
}
VEOSIM_API int cuDevicePrimaryCtxRelease_v2(int d) {
    (void)d;
    return CUDA_OK;
}
VEOSIM_API int cuDevicePrimaryCtxReset_v2(int d) {
    CORE_ENTER();
    NEED_DEVICE(d);
    core_close(d);
    return CUDA_OK;
}
VEOSIM_API int cuDevicePrimaryCtxSetFlags_v2(int d, unsigned flags) {
    (void)d, (void)flags;
    return CUDA_OK;
}
VEOSIM_API int cuDevicePrimaryCtxGetState(int d, unsigned *flags, int *active) {
    NEED_DEVICE(d);
    *flags = 0;
    *active = core_is_open(d);
    return CUDA_OK;
}
VEOSIM_API int cuCtxGetCurrent(struct context **c) {
    CORE_ENTER();
    *c = has_context || core_is_open(core_current()) ? context_of(core_current()) : NULL;
    return CUDA_OK;
}
VEOSIM_API int cuCtxSetCurrent(struct context *c) {
    CORE_ENTER();
    has_context = c != NULL;
    return c ? core_set_current(c->device) : CUDA_OK;
}
VEOSIM_API int cuCtxPushCurrent_v2(struct context *c) { return cuCtxSetCurrent(c); }
VEOSIM_API int cuCtxPopCurrent_v2(struct context **c) {
    if (c) *c = context_of(core_current());
    has_context = 0;
    return CUDA_OK;
}
VEOSIM_API int cuCtxCreate_v2(struct context **c, unsigned flags, int d) {
    int code;
    (void)flags;
    CORE_ENTER();
    code = core_set_current(d);
    has_context = !code;
    if (!code) *c = context_of(d);
    return code;
}
VEOSIM_API int cuCtxDestroy_v2(struct context *c) {
    (void)c;
    return CUDA_OK;
}
VEOSIM_API int cuCtxGetDevice(int *d) {
    *d = core_current();
    return CUDA_OK;
}
VEOSIM_API int cuCtxGetFlags(unsigned *flags) {
    *flags = 0;
    return CUDA_OK;
}
VEOSIM_API int cuCtxGetApiVersion(struct context *c, unsigned *v) {
    (void)c;
    *v = 3020;
    return CUDA_OK;
}
VEOSIM_API int cuCtxGetLimit(size_t *value, int limit) {
    (void)limit;
    *value = 8 << 20;
    return CUDA_OK;
}
VEOSIM_API int cuCtxSetLimit(int limit, size_t value) {
    (void)limit, (void)value;
    return CUDA_OK;
}
VEOSIM_API int cuCtxSynchronize(void) {
    CORE_ENTER();
    core_synchronize(core_current());
    return CUDA_OK;
}
VEOSIM_API int cuCtxGetStreamPriorityRange(int *least, int *greatest) {
    if (least) *least = 0;
    if (greatest) *greatest = -5;
    return CUDA_OK;
}

/* ---- modules and kernels: loaded, counted, never run ---- */

VEOSIM_API int cuModuleLoadData(void **m, const void *image) {
    (void)image;
    CORE_ENTER();
    *m = malloc(8);
    return CUDA_OK;
}
VEOSIM_API int cuModuleLoadDataEx(void **m, const void *image, unsigned n, int *options,
                                  void **values) {
    (void)n, (void)options, (void)values;
    return cuModuleLoadData(m, image);
}
VEOSIM_API int cuModuleLoadFatBinary(void **m, const void *image) {
    return cuModuleLoadData(m, image);
}
VEOSIM_API int cuModuleUnload(void *m) {
    free(m);
    return CUDA_OK;
}
VEOSIM_API int cuModuleGetFunction(void **f, void *m, const char *name) {
    (void)name;
    *f = m;
    return CUDA_OK;
}
VEOSIM_API int cuFuncGetAttribute(int *value, int attribute, void *f) {
    (void)f;
    *value = attribute == 0 ? 1024 : attribute == 4 ? 32 : 0;
    return CUDA_OK;
}
VEOSIM_API int cuFuncSetAttribute(void *f, int attribute, int value) {
    (void)f, (void)attribute, (void)value;
    return CUDA_OK;
}
VEOSIM_API int cuOccupancyMaxActiveBlocksPerMultiprocessor(int *n, void *f, int size,
                                                           size_t shared) {
    (void)f, (void)size, (void)shared;
    *n = 2;
    return CUDA_OK;
}
VEOSIM_API int cuLaunchKernel(void *f, unsigned gx, unsigned gy, unsigned gz, unsigned bx,
                              unsigned by, unsigned bz, unsigned shared, void *stream,
                              void **arguments, void **extra) {
    (void)f, (void)gx, (void)gy, (void)gz, (void)bx, (void)by, (void)bz, (void)shared;
    (void)stream, (void)arguments, (void)extra;
    CORE_ENTER();
    core_launch();
    return CUDA_OK;
}
VEOSIM_API int cuLaunchKernelEx(const void *config, void *f, void **arguments, void **extra) {
    (void)config, (void)f, (void)arguments, (void)extra;
    CORE_ENTER();
    core_launch();
    return CUDA_OK;
}

/* ---- errors and look-up ---- */

static const struct {
    int code;
    const char *name, *text;
} errors[] = {
    {0, "CUDA_SUCCESS", "no error"},
    {1, "CUDA_ERROR_INVALID_VALUE", "invalid argument"},
    {2, "CUDA_ERROR_OUT_OF_MEMORY", "out of memory"},
    {3, "CUDA_ERROR_NOT_INITIALIZED", "initialization error"},
    {100, "CUDA_ERROR_NO_DEVICE", "no CUDA-capable device is detected"},
    {101, "CUDA_ERROR_INVALID_DEVICE", "invalid device ordinal"},
    {500, "CUDA_ERROR_NOT_FOUND", "named symbol not found"},
    {600, "CUDA_ERROR_NOT_READY", "device not ready"},
    {700, "CUDA_ERROR_ILLEGAL_ADDRESS", "an illegal memory access was encountered"},
    {719, "CUDA_ERROR_LAUNCH_FAILED", "unspecified launch failure"},
    {801, "CUDA_ERROR_NOT_SUPPORTED", "operation not supported"},
    {999, "CUDA_ERROR_UNKNOWN", "unknown error"},
};
static int error_index(int code) {
    for (size_t i = 0; i < sizeof errors / sizeof *errors; i++)
        if (errors[i].code == code) return (int)i;
    return (int)(sizeof errors / sizeof *errors) - 1;
}
VEOSIM_API int cuGetErrorName(int code, const char **out) {
    *out = errors[error_index(code)].name;
    return CUDA_OK;
}
VEOSIM_API int cuGetErrorString(int code, const char **out) {
    *out = errors[error_index(code)].text;
    return CUDA_OK;
}

static int not_supported(void) {
    veosim_trace("call of a driver function that the simulator does not have");
    return CUDA_NOT_SUPPORTED;
}
void *core_lookup(const char *name) {
    static void *self;
    static const char *const suffixes[] = {"_v3", "_v2", ""};
    Dl_info where;
    char text[128];
    if (!self && dladdr((void *)core_lookup, &where))
        self = dlopen(where.dli_fname, RTLD_NOW | RTLD_NOLOAD);
    for (int i = 0; self && i < 3; i++) {
        void *found;
        snprintf(text, sizeof text, "%s%s", name, suffixes[i]);
        if ((found = dlsym(self, text))) return found;
    }
    snprintf(text, sizeof text, "no driver function %s", name);
    veosim_trace(text);
    return (void *)not_supported;
}
VEOSIM_API int cuGetProcAddress_v2(const char *name, void **f, int version, uint64_t flags,
                                   int *status) {
    (void)version, (void)flags;
    *f = core_lookup(name);
    if (status) *status = 0;
    return CUDA_OK;
}
VEOSIM_API int cuGetProcAddress(const char *name, void **f, int version, uint64_t flags) {
    return cuGetProcAddress_v2(name, f, version, flags, NULL);
}
/* Undocumented tables, which real runtimes ask for: deliberately not found. */
VEOSIM_API int cuGetExportTable(const void **table, const unsigned char *id) {
    (void)id;
    *table = NULL;
    veosim_trace("an export table was asked for: a vendor runtime will not run here");
    return CUDA_NOT_FOUND;
}

VEOSIM_GUARDED
