/* CuPy's door. CuPy links its CUDA runtime statically, but its Cython modules call each
 * other through a table of C functions. veosim_door.py puts these functions into that
 * table before CuPy is imported, so that CuPy's own pools, hooks, streams and arrays run
 * over the simulated driver. The last argument of each is Cython's skip_dispatch.
 *
 * A failure is raised by CuPy's own check_status. Faults are named "cupy:<function>". */
#include "core.h"
#include <string.h>

typedef struct _object PyObject;
PyObject *Py_BuildValue(const char *, ...);
PyObject *PyBytes_FromStringAndSize(const char *, intptr_t);
PyObject *PyObject_CallFunction(PyObject *, const char *, ...);
unsigned long long PyLong_AsUnsignedLongLongMask(PyObject *);

int cuDeviceGetAttribute(int *, int, int);
int cuStreamCreate(void **, unsigned);
int cuStreamDestroy_v2(void *);
int cuStreamQuery(void *);
int cuStreamSynchronize(void *);
int cuEventCreate(void **, unsigned);
int cuEventDestroy_v2(void *);
int cuEventRecord(void *, void *);
int cuEventQuery(void *);
int cuEventSynchronize(void *);
int cuEventElapsedTime(float *, void *, void *);

VEOSIM_API PyObject *(*cupy_check_status)(int, int);
VEOSIM_API PyObject *cupy_pointer_attributes; /* CuPy's class of that name */

static PyObject *none(int code) { return code ? cupy_check_status(code, 0) : Py_BuildValue(""); }
static intptr_t handle(int code, void *value) {
    if (!code) return (intptr_t)value;
    cupy_check_status(code, 0);
    return 0;
}
static int number(int code, int value) {
    if (!code) return value;
    cupy_check_status(code, 0);
    return -1;
}

#define RUNTIME(type, name) VEOSIM_API type cupy_runtime_##name
#define DRIVER(type, name) VEOSIM_API type cupy_driver_##name
#define NONE(name, ...)                          \
    do {                                         \
        int code_ = core_enter("cupy:" name);    \
        return none(code_ ? code_ : (__VA_ARGS__)); \
    } while (0)

/* ---- devices ---- */

RUNTIME(PyObject *, _ensure_context)(void) { return none(core_open(core_current())); }
RUNTIME(int, driverGetVersion)(int skip) { return (void)skip, veosim()->cuda_version; }
RUNTIME(int, getDevice)(int skip) {
    return (void)skip, number(core_enter("cupy:getDevice"), core_current());
}
RUNTIME(int, getDeviceCount)(int skip) {
    int code = core_enter("cupy:getDeviceCount");
    (void)skip;
    if (!code && !veosim()->devices) code = CUDA_NO_DEVICE;
    return number(code, (int)veosim()->devices);
}
RUNTIME(PyObject *, setDevice)(int d, int skip) {
    (void)skip;
    NONE("setDevice", core_set_current(d));
}
RUNTIME(int, deviceGetAttribute)(int attribute, int d, int skip) {
    int value = 0, code = cuDeviceGetAttribute(&value, attribute, d);
    return (void)skip, number(code, value);
}
RUNTIME(PyObject *, deviceGetPCIBusId)(int d, int skip) {
    (void)skip;
    return core_valid(d) ? Py_BuildValue("s", core_device(d)->bus_id) : none(CUDA_INVALID_DEVICE);
}
RUNTIME(PyObject *, getDeviceProperties)(int d, int skip) {
    const struct veosim_device *device;
    unsigned char uuid[16];
    (void)skip;
    if (!core_valid(d)) return none(CUDA_INVALID_DEVICE);
    device = core_device(d);
    core_uuid(uuid, device->mig_mode > 0 ? device->mig_uuid : device->uuid);
    return Py_BuildValue("{s:y,s:N,s:K,s:i,s:i,s:i,s:i,s:i}", "name", device->name, "uuid",
                         PyBytes_FromStringAndSize((char *)uuid, sizeof uuid), "totalGlobalMem",
                         (unsigned long long)device->total_bytes, "major",
                         device->capability_major, "minor", device->capability_minor,
                         "multiProcessorCount", device->multiprocessors, "warpSize", 32,
                         "integrated", device->integrated);
}
static int synchronize(void) { return core_synchronize(core_current()), CUDA_OK; }
RUNTIME(PyObject *, deviceSynchronize)(int skip) {
    (void)skip;
    NONE("deviceSynchronize", synchronize());
}
RUNTIME(int, deviceCanAccessPeer)(int a, int b, int skip) { return (void)skip, a != b; }
RUNTIME(PyObject *, deviceEnablePeerAccess)(int d, int skip) {
    return (void)skip, (void)d, none(CUDA_OK);
}
RUNTIME(PyObject *, _deviceEnsurePeerAccess)(int d, int skip) {
    return (void)skip, (void)d, none(CUDA_OK);
}

/* ---- memory ---- */

static intptr_t allocate(const char *function, size_t n, int kind) {
    void *p = NULL;
    int code = core_enter(function);
    if (!code) code = core_alloc(&p, n, kind);
    return handle(code, p);
}
RUNTIME(intptr_t, malloc)(size_t n, int skip) {
    return (void)skip, allocate("cupy:malloc", n, CORE_DEVICE);
}
RUNTIME(intptr_t, mallocManaged)(size_t n, int skip, void *optional) {
    return (void)skip, (void)optional, allocate("cupy:mallocManaged", n, CORE_MANAGED);
}
RUNTIME(intptr_t, mallocAsync)(size_t n, intptr_t stream, int skip) {
    return (void)skip, (void)stream, allocate("cupy:mallocAsync", n, CORE_POOL);
}
RUNTIME(intptr_t, mallocFromPoolAsync)(size_t n, intptr_t pool, intptr_t stream, int skip) {
    return (void)skip, (void)pool, (void)stream, allocate("cupy:mallocAsync", n, CORE_POOL);
}
RUNTIME(intptr_t, hostAlloc)(size_t n, unsigned flags, int skip) {
    return (void)skip, (void)flags, allocate("cupy:hostAlloc", n, CORE_HOST);
}
RUNTIME(PyObject *, free)(intptr_t p, int skip) {
    (void)skip;
    NONE("free", core_free((void *)p, CORE_DEVICE));
}
RUNTIME(PyObject *, freeAsync)(intptr_t p, intptr_t stream, int skip) {
    (void)skip, (void)stream;
    NONE("freeAsync", (core_submit(), core_free((void *)p, CORE_POOL)));
}
RUNTIME(PyObject *, freeHost)(intptr_t p, int skip) {
    (void)skip;
    NONE("freeHost", core_free((void *)p, CORE_HOST));
}
RUNTIME(PyObject *, hostRegister)(intptr_t p, size_t n, unsigned flags, int skip) {
    (void)skip, (void)flags;
    NONE("hostRegister", core_register((void *)p, n));
}
RUNTIME(PyObject *, hostUnregister)(intptr_t p, int skip) {
    (void)skip;
    NONE("hostUnregister", core_free((void *)p, CORE_REGISTERED));
}
RUNTIME(PyObject *, memGetInfo)(int skip) {
    size_t free = 0, total = 0;
    int code = core_enter("cupy:memGetInfo");
    (void)skip;
    if (!code) code = core_open(core_current());
    if (code) return none(code);
    core_memory(core_current(), &free, &total);
    return Py_BuildValue("(KK)", (unsigned long long)free, (unsigned long long)total);
}
RUNTIME(int, pointerGetMemoryType)(intptr_t p, int skip) {
    int kind;
    (void)skip;
    if (core_find((void *)p, NULL, NULL, NULL, &kind)) return 0;
    return kind == CORE_HOST || kind == CORE_REGISTERED ? 1 : kind == CORE_MANAGED ? 3 : 2;
}
RUNTIME(PyObject *, pointerGetAttributes)(intptr_t p, int skip) {
    int type = cupy_runtime_pointerGetMemoryType(p, skip), device = -2;
    core_find((void *)p, NULL, NULL, &device, NULL);
    return PyObject_CallFunction(cupy_pointer_attributes, "iLLi", device,
                                 (long long)(type ? p : 0), (long long)(type > 1 ? 0 : p), type);
}

/* ---- copies and fills ---- */

static int copy(intptr_t to, intptr_t from, size_t n) {
    return core_copy((void *)to, (const void *)from, n), CUDA_OK;
}
static int fill(intptr_t p, int value, size_t n) {
    return core_submit(), memset((void *)p, value, n), CUDA_OK;
}
RUNTIME(PyObject *, memcpy)(intptr_t to, intptr_t from, size_t n, int kind, int skip) {
    (void)skip, (void)kind;
    NONE("memcpy", copy(to, from, n));
}
RUNTIME(PyObject *, memcpyAsync)(intptr_t to, intptr_t from, size_t n, int kind, intptr_t stream,
                                 int skip) {
    (void)skip, (void)kind, (void)stream;
    NONE("memcpyAsync", copy(to, from, n));
}
RUNTIME(PyObject *, memcpyPeer)(intptr_t to, int a, intptr_t from, int b, size_t n, int skip) {
    (void)skip, (void)a, (void)b;
    NONE("memcpyPeer", copy(to, from, n));
}
RUNTIME(PyObject *, memcpyPeerAsync)(intptr_t to, int a, intptr_t from, int b, size_t n,
                                     intptr_t stream, int skip) {
    (void)skip, (void)a, (void)b, (void)stream;
    NONE("memcpyPeerAsync", copy(to, from, n));
}
RUNTIME(PyObject *, memset)(intptr_t p, int value, size_t n, int skip) {
    (void)skip;
    NONE("memset", fill(p, value, n));
}
RUNTIME(PyObject *, memsetAsync)(intptr_t p, int value, size_t n, intptr_t stream, int skip) {
    (void)skip, (void)stream;
    NONE("memsetAsync", fill(p, value, n));
}

/* ---- stream-ordered pools ---- */

static int device_of(intptr_t pool) { return (int)((struct core_pool *)pool - core_pool(0)); }
RUNTIME(intptr_t, deviceGetDefaultMemPool)(int d, int skip) {
    return (void)skip, handle(core_valid(d) ? CUDA_OK : CUDA_INVALID_DEVICE, core_pool(d));
}
RUNTIME(intptr_t, deviceGetMemPool)(int d, int skip) {
    return cupy_runtime_deviceGetDefaultMemPool(d, skip);
}
RUNTIME(PyObject *, deviceSetMemPool)(int d, intptr_t pool, int skip) {
    (void)skip;
    return none((struct core_pool *)pool == core_pool(d) ? CUDA_OK : CUDA_NOT_SUPPORTED);
}
RUNTIME(PyObject *, memPoolTrimTo)(intptr_t pool, size_t keep, int skip) {
    return (void)skip, core_pool_trim(device_of(pool), keep), none(CUDA_OK);
}
RUNTIME(PyObject *, memPoolGetAttribute)(intptr_t pool, int attribute, int skip) {
    union {
        int policy;
        uint64_t bytes;
    } value = {.bytes = 0};
    int code = core_pool_get(device_of(pool), attribute, &value);
    (void)skip;
    if (code) return none(code);
    return attribute < 4 ? Py_BuildValue("i", value.policy)
                         : Py_BuildValue("K", (unsigned long long)value.bytes);
}

RUNTIME(PyObject *, memPoolSetAttribute)(intptr_t pool, int attribute, PyObject *value,
                                         int skip) {
    uint64_t bytes = PyLong_AsUnsignedLongLongMask(value);
    (void)skip;
    return none(core_pool_set(device_of(pool), attribute, &bytes));
}

/* ---- streams and events ---- */

static intptr_t new_stream(const char *function, unsigned flags) {
    void *s = NULL;
    int code = core_enter(function);
    if (!code) code = cuStreamCreate(&s, flags);
    return handle(code, s);
}
RUNTIME(intptr_t, streamCreate)(int skip) {
    return (void)skip, new_stream("cupy:streamCreate", 0);
}
RUNTIME(intptr_t, streamCreateWithFlags)(unsigned flags, int skip) {
    return (void)skip, new_stream("cupy:streamCreateWithFlags", flags);
}
RUNTIME(intptr_t, streamCreateWithPriority)(unsigned flags, int priority, int skip) {
    return (void)skip, (void)priority, new_stream("cupy:streamCreateWithPriority", flags);
}
RUNTIME(PyObject *, streamDestroy)(intptr_t s, int skip) {
    return (void)skip, none(cuStreamDestroy_v2((void *)s));
}
RUNTIME(PyObject *, streamSynchronize)(intptr_t s, int skip) {
    (void)skip;
    NONE("streamSynchronize", cuStreamSynchronize((void *)s));
}
/* CuPy's queries answer with the code; they raise nothing. */
static PyObject *answer(const char *function, int (*query)(void *), intptr_t of) {
    int code = core_enter(function);
    return Py_BuildValue("i", code ? code : query((void *)of));
}
RUNTIME(PyObject *, streamQuery)(intptr_t s, int skip) {
    return (void)skip, answer("cupy:streamQuery", cuStreamQuery, s);
}
RUNTIME(PyObject *, streamWaitEvent)(intptr_t s, intptr_t e, int skip, void *optional) {
    return (void)s, (void)e, (void)skip, (void)optional, none(CUDA_OK);
}
RUNTIME(int, streamIsCapturing)(intptr_t s, int skip) { return (void)s, (void)skip, 0; }
RUNTIME(unsigned, streamGetFlags)(intptr_t s, int skip) { return (void)s, (void)skip, 0; }
RUNTIME(int, streamGetPriority)(intptr_t s, int skip) { return (void)s, (void)skip, 0; }
static intptr_t new_event(unsigned flags) {
    void *e = NULL;
    int code = core_enter("cupy:eventCreate");
    if (!code) code = cuEventCreate(&e, flags);
    return handle(code, e);
}
RUNTIME(intptr_t, eventCreate)(int skip) { return (void)skip, new_event(0); }
RUNTIME(intptr_t, eventCreateWithFlags)(unsigned flags, int skip) {
    return (void)skip, new_event(flags);
}
RUNTIME(PyObject *, eventDestroy)(intptr_t e, int skip) {
    return (void)skip, none(cuEventDestroy_v2((void *)e));
}
RUNTIME(PyObject *, eventRecord)(intptr_t e, intptr_t s, int skip) {
    (void)skip;
    NONE("eventRecord", cuEventRecord((void *)e, (void *)s));
}
RUNTIME(PyObject *, eventQuery)(intptr_t e, int skip) {
    return (void)skip, answer("cupy:eventQuery", cuEventQuery, e);
}
RUNTIME(PyObject *, eventSynchronize)(intptr_t e, int skip) {
    (void)skip;
    NONE("eventSynchronize", cuEventSynchronize((void *)e));
}
RUNTIME(float, eventElapsedTime)(intptr_t from, intptr_t to, int skip) {
    float ms = 0;
    int code = cuEventElapsedTime(&ms, (void *)from, (void *)to);
    (void)skip;
    if (code) cupy_check_status(code, 0);
    return code ? -1 : ms;
}

/* ---- cupy_backends.cuda.api.driver ---- */

DRIVER(intptr_t, ctxGetCurrent)(int skip) {
    return (void)skip, handle(core_open(core_current()), core_device(core_current()));
}
DRIVER(int, ctxGetDevice)(int skip) { return (void)skip, core_current(); }
DRIVER(PyObject *, ctxSetCurrent)(intptr_t c, int skip) {
    return (void)c, (void)skip, none(CUDA_OK);
}
DRIVER(intptr_t, streamGetCtx)(intptr_t s, int skip) {
    return (void)s, cupy_driver_ctxGetCurrent(skip);
}
DRIVER(intptr_t, moduleLoadData)(PyObject *image, int skip) {
    return (void)image, (void)skip, handle(CUDA_OK, &cupy_check_status);
}
DRIVER(PyObject *, moduleUnload)(intptr_t m, int skip) {
    return (void)m, (void)skip, none(CUDA_OK);
}
DRIVER(intptr_t, moduleGetFunction)(intptr_t m, PyObject *name, int skip) {
    return (void)name, (void)skip, m;
}
DRIVER(int, funcGetAttribute)(int attribute, intptr_t f, int skip) {
    return (void)f, (void)skip, attribute == 0 ? 1024 : 0;
}
DRIVER(PyObject *, funcSetAttribute)(intptr_t f, int attribute, int value, int skip) {
    return (void)f, (void)attribute, (void)value, (void)skip, none(CUDA_OK);
}
DRIVER(int, occupancyMaxActiveBlocksPerMultiprocessor)(intptr_t f, int size, size_t shared,
                                                       int skip) {
    return (void)f, (void)size, (void)shared, (void)skip, 2;
}
DRIVER(PyObject *, occupancyMaxPotentialBlockSize)(intptr_t f, size_t shared, int limit,
                                                   int skip) {
    return (void)f, (void)shared, (void)limit, (void)skip, Py_BuildValue("(ii)", 216, 1024);
}
static int launch(void) { return core_launch(), CUDA_OK; }
DRIVER(PyObject *, launchKernel)(intptr_t f, unsigned gx, unsigned gy, unsigned gz, unsigned bx,
                                 unsigned by, unsigned bz, unsigned shared, intptr_t stream,
                                 intptr_t arguments, intptr_t extra, int skip) {
    (void)f, (void)gx, (void)gy, (void)gz, (void)bx, (void)by, (void)bz, (void)shared;
    (void)stream, (void)arguments, (void)extra, (void)skip;
    NONE("launchKernel", launch());
}
