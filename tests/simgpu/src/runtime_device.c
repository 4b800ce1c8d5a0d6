/* libcudart: versions, errors, devices. */
#include "runtime.h"
#include <stdio.h>
#include <string.h>

int cuDeviceGetAttribute(int *, int, int);

static __thread int last;

int runtime_result(int code) {
    if (code && code != CUDA_NOT_READY) last = code;
    return code;
}
int runtime_enter(const char *function) { return runtime_result(core_enter(function)); }

#ifdef CUDART_12
#define RUNTIME_VERSION 12080
#else
#define RUNTIME_VERSION 13000
#endif
VEOSIM_API int cudaRuntimeGetVersion(int *v) {
    *v = RUNTIME_VERSION;
    return CUDA_OK;
}
VEOSIM_API int cudaDriverGetVersion(int *v) {
    *v = veosim()->cuda_version;
    return CUDA_OK;
}

/* ---- errors ---- */

VEOSIM_API int cudaGetLastError(void) {
    int code = last;
    last = CUDA_OK;
    return code;
}
VEOSIM_API int cudaPeekAtLastError(void) { return last; }

static const struct {
    int code;
    const char *name, *text;
} errors[] = {
    {0, "cudaSuccess", "no error"},
    {1, "cudaErrorInvalidValue", "invalid argument"},
    {2, "cudaErrorMemoryAllocation", "out of memory"},
    {3, "cudaErrorInitializationError", "initialization error"},
    {35, "cudaErrorInsufficientDriver",
     "CUDA driver version is insufficient for CUDA runtime version"},
    {100, "cudaErrorNoDevice", "no CUDA-capable device is detected"},
    {101, "cudaErrorInvalidDevice", "invalid device ordinal"},
    {600, "cudaErrorNotReady", "device not ready"},
    {700, "cudaErrorIllegalAddress", "an illegal memory access was encountered"},
    {719, "cudaErrorLaunchFailure", "unspecified launch failure"},
    {801, "cudaErrorNotSupported", "operation not supported"},
    {999, "cudaErrorUnknown", "unknown error"},
};
static int error_index(int code) {
    for (size_t i = 0; i < sizeof errors / sizeof *errors; i++)
        if (errors[i].code == code) return (int)i;
    return (int)(sizeof errors / sizeof *errors) - 1;
}
VEOSIM_API const char *cudaGetErrorName(int code) { return errors[error_index(code)].name; }
VEOSIM_API const char *cudaGetErrorString(int code) { return errors[error_index(code)].text; }

/* ---- devices ---- */

VEOSIM_API int cudaGetDeviceCount(int *n) {
    RUNTIME_ENTER();
    *n = (int)veosim()->devices;
    return *n ? CUDA_OK : runtime_result(CUDA_NO_DEVICE);
}
VEOSIM_API int cudaGetDevice(int *d) {
    RUNTIME_ENTER();
    *d = core_current();
    return CUDA_OK;
}
VEOSIM_API int cudaSetDevice(int d) { RUNTIME_CALL(core_set_current(d)); }
VEOSIM_API int cudaDeviceSynchronize(void) {
    RUNTIME_ENTER();
    core_synchronize(core_current());
    return CUDA_OK;
}
VEOSIM_API int cudaDeviceReset(void) {
    RUNTIME_ENTER();
    core_close(core_current());
    return CUDA_OK;
}
VEOSIM_API int cudaDeviceGetAttribute(int *value, int attribute, int d) {
    RUNTIME_CALL(cuDeviceGetAttribute(value, attribute, d));
}
VEOSIM_API int cudaDeviceGetPCIBusId(char *b, int n, int d) {
    RUNTIME_ENTER();
    if (!core_valid(d)) return runtime_result(CUDA_INVALID_DEVICE);
    snprintf(b, (size_t)n, "%s", core_device(d)->bus_id);
    return CUDA_OK;
}
VEOSIM_API int cudaDeviceGetStreamPriorityRange(int *least, int *greatest) {
    if (least) *least = 0;
    if (greatest) *greatest = -5;
    return CUDA_OK;
}
VEOSIM_API int cudaDeviceCanAccessPeer(int *can, int a, int b) {
    *can = a != b;
    return CUDA_OK;
}
VEOSIM_API int cudaDeviceEnablePeerAccess(int d, unsigned flags) {
    (void)d, (void)flags;
    return CUDA_OK;
}

/* ---- properties: a structure whose layout the two versions do not share ---- */

#ifdef CUDART_12
#define AT(offset_13, offset_12) (offset_12)
#define PROPERTIES_SIZE 1032
#define cudaGetDeviceProperties cudaGetDeviceProperties_v2
#else
#define AT(offset_13, offset_12) (offset_13)
#define PROPERTIES_SIZE 1008
#endif
#define INT(offset_13, offset_12, value) (*(int *)(p + AT(offset_13, offset_12)) = (int)(value))
#define SIZE(offset_13, offset_12, value) \
    (*(size_t *)(p + AT(offset_13, offset_12)) = (size_t)(value))

VEOSIM_API int cudaGetDeviceProperties(void *properties, int index) {
    const struct veosim_device *d;
    unsigned domain = 0, bus = 0, slot = 0;
    char *p = properties;
    int mig;
    RUNTIME_ENTER();
    if (!core_valid(index)) return runtime_result(CUDA_INVALID_DEVICE);
    d = core_device(index);
    mig = d->mig_mode > 0;
    sscanf(d->bus_id, "%x:%x:%x", &domain, &bus, &slot);
    memset(p, 0, PROPERTIES_SIZE);
    snprintf(p, 256, "%s", d->name);
    core_uuid((unsigned char *)p + 256, mig ? d->mig_uuid : d->uuid);
    SIZE(288, 288, mig ? d->mig_total_bytes : d->total_bytes); /* totalGlobalMem */
    SIZE(296, 296, 49152);                                     /* sharedMemPerBlock */
    INT(304, 304, 65536);                                      /* regsPerBlock */
    INT(308, 308, 32);                                         /* warpSize */
    SIZE(312, 312, 0x7fffffff);                                /* memPitch */
    INT(320, 320, 1024);                                       /* maxThreadsPerBlock */
    INT(324, 324, 1024), INT(328, 328, 1024), INT(332, 332, 64);          /* maxThreadsDim */
    INT(336, 336, 0x7fffffff), INT(340, 340, 65535), INT(344, 344, 65535); /* maxGridSize */
    SIZE(352, 352, 65536);                                     /* totalConstMem */
    INT(360, 360, d->capability_major), INT(364, 364, d->capability_minor);
    SIZE(368, 368, 512);                                       /* textureAlignment */
    INT(384, 388, d->multiprocessors);
    INT(388, 396, d->integrated);
    INT(392, 400, 1);                                          /* canMapHostMemory */
    INT(560, 576, 1);                                          /* concurrentKernels */
    INT(568, 584, bus), INT(572, 588, slot), INT(576, 592, domain);
    INT(584, 600, 3);                                          /* asyncEngineCount */
    INT(588, 604, 1);                                          /* unifiedAddressing */
    INT(592, 612, 5120);                                       /* memoryBusWidth */
    INT(596, 616, 40 << 20);                                   /* l2CacheSize */
    INT(604, 624, 2048);                                       /* maxThreadsPerMultiProcessor */
    INT(608, 628, 1);                                          /* streamPrioritiesSupported */
    SIZE(624, 640, 167936);                                    /* sharedMemPerMultiprocessor */
    INT(632, 648, 65536);                                      /* regsPerMultiprocessor */
    INT(636, 652, 1);                                          /* managedMemory */
    INT(656, 676, 1);                                          /* concurrentManagedAccess */
    INT(668, 688, 1);                                          /* cooperativeLaunch */
    SIZE(672, 696, 166912);                                    /* sharedMemPerBlockOptin */
    INT(688, 712, 32);                                         /* maxBlocksPerMultiProcessor */
    SIZE(696, 720, 1024);                                      /* reservedSharedMemPerBlock */
    INT(720, 744, 1);                                          /* memoryPoolsSupported */
    return CUDA_OK;
}

/* ---- driver functions by name ---- */

VEOSIM_API int cudaGetDriverEntryPointByVersion(const char *name, void **f, unsigned version,
                                                unsigned long long flags, int *status) {
    (void)version, (void)flags;
    *f = core_lookup(name);
    if (status) *status = 0;
    return CUDA_OK;
}
VEOSIM_API int cudaGetDriverEntryPoint(const char *name, void **f, unsigned long long flags,
                                       int *status) {
    return cudaGetDriverEntryPointByVersion(name, f, 0, flags, status);
}

VEOSIM_GUARDED
