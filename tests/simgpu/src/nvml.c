/* libnvidia-ml.so.1: the part of NVML's interface that describes devices and
 * their memory. Declarations are our own, after the public documentation. */
#include "nvml.h"
#include <stdio.h>
#include <string.h>

static int inits;
static char mig_handle[VEOSIM_DEVICES];

int nvml_ready(const char *function) {
    int code = veosim_fault(function);
    if (code) return code;
    return inits > 0 ? NVML_SUCCESS : NVML_UNINITIALIZED;
}

int nvml_is_mig(nvml_device handle) {
    const char *h = handle;
    return h >= mig_handle && h < mig_handle + VEOSIM_DEVICES;
}

struct veosim_device *nvml_behind(nvml_device handle) {
    struct veosim_state *s = veosim();
    struct veosim_device *d = handle;
    if (nvml_is_mig(handle)) d = &s->device[(const char *)handle - mig_handle];
    return d >= s->device && d < s->device + s->devices ? d : NULL;
}

int nvml_text(char *out, unsigned n, const char *value) {
    if (!out) return NVML_INVALID_ARGUMENT;
    if (strlen(value) + 1 > n) return NVML_INSUFFICIENT_SIZE;
    strcpy(out, value);
    return NVML_SUCCESS;
}

/* ---- the library ---- */

static int begin(const char *function) {
    int code = veosim_fault(function);
    if (!code) inits++;
    return code;
}
VEOSIM_API int nvmlInitWithFlags(unsigned flags) {
    (void)flags;
    return begin(__func__);
}
VEOSIM_API int nvmlInit_v2(void) { return begin(__func__); }
VEOSIM_API int nvmlInit(void) { return begin(__func__); }
VEOSIM_API int nvmlShutdown(void) {
    NVML_ENTER();
    inits--;
    return NVML_SUCCESS;
}

VEOSIM_API const char *nvmlErrorString(int code) {
    static const char *const text[] = {
        [0] = "Success", [1] = "Uninitialized", [2] = "Invalid Argument",
        [3] = "Not Supported", [4] = "Insufficient Permissions", [6] = "Not Found",
        [7] = "Insufficient Size", [9] = "Driver Not Loaded", [10] = "Timeout",
        [12] = "NVML Shared Library Not Found", [13] = "Function Not Found",
        [15] = "GPU is lost", [16] = "GPU requires reset",
        [18] = "Driver/library version mismatch", [20] = "Insufficient Memory",
        [25] = "Argument version mismatch"};
    int known = code >= 0 && code < (int)(sizeof text / sizeof *text) && text[code];
    return known ? text[code] : "Unknown Error";
}

VEOSIM_API int nvmlSystemGetDriverVersion(char *b, unsigned n) {
    NVML_ENTER();
    return nvml_text(b, n, veosim()->driver_version);
}
VEOSIM_API int nvmlSystemGetNVMLVersion(char *b, unsigned n) {
    NVML_ENTER();
    return nvml_text(b, n, veosim()->nvml_version);
}
VEOSIM_API int nvmlSystemGetCudaDriverVersion(int *v) {
    NVML_ENTER();
    NVML_NEED(v);
    *v = veosim()->cuda_version;
    return NVML_SUCCESS;
}
VEOSIM_API int nvmlSystemGetCudaDriverVersion_v2(int *v) {
    NVML_ENTER();
    NVML_NEED(v);
    *v = veosim()->cuda_version;
    return NVML_SUCCESS;
}

/* ---- handles ---- */

static int hand(struct veosim_device *d, nvml_device *out) {
    if (d->lost) return NVML_GPU_IS_LOST;
    *out = d;
    return NVML_SUCCESS;
}
VEOSIM_API int nvmlDeviceGetCount_v2(unsigned *n) {
    NVML_ENTER();
    NVML_NEED(n);
    *n = veosim()->devices;
    return NVML_SUCCESS;
}
VEOSIM_API int nvmlDeviceGetCount(unsigned *n) { return nvmlDeviceGetCount_v2(n); }
VEOSIM_API int nvmlDeviceGetHandleByIndex_v2(unsigned i, nvml_device *out) {
    NVML_ENTER();
    NVML_NEED(out);
    if (i >= veosim()->devices) return NVML_INVALID_ARGUMENT;
    return hand(&veosim()->device[i], out);
}
VEOSIM_API int nvmlDeviceGetHandleByUUID(const char *uuid, nvml_device *out) {
    struct veosim_state *s = veosim();
    NVML_ENTER();
    NVML_NEED(uuid && out);
    for (unsigned i = 0; i < s->devices; i++) {
        struct veosim_device *d = &s->device[i];
        if (!strcmp(uuid, d->uuid)) return hand(d, out);
        if (d->mig_mode > 0 && !strcmp(uuid, d->mig_uuid)) {
            *out = &mig_handle[i];
            return d->lost ? NVML_GPU_IS_LOST : NVML_SUCCESS;
        }
    }
    return NVML_NOT_FOUND;
}
VEOSIM_API int nvmlDeviceGetHandleByPciBusId_v2(const char *id, nvml_device *out) {
    struct veosim_state *s = veosim();
    unsigned domain, bus, slot, a, b, c;
    NVML_ENTER();
    NVML_NEED(id && out);
    if (sscanf(id, "%x:%x:%x", &domain, &bus, &slot) != 3) return NVML_INVALID_ARGUMENT;
    for (unsigned i = 0; i < s->devices; i++)
        if (sscanf(s->device[i].bus_id, "%x:%x:%x", &a, &b, &c) == 3 && a == domain && b == bus &&
            c == slot)
            return hand(&s->device[i], out);
    return NVML_NOT_FOUND;
}

/* ---- identity ---- */

VEOSIM_API int nvmlDeviceGetName(nvml_device h, char *b, unsigned n) {
    NVML_DEVICE(h, d);
    return nvml_text(b, n, d->name);
}
VEOSIM_API int nvmlDeviceGetUUID(nvml_device h, char *b, unsigned n) {
    NVML_DEVICE(h, d);
    return nvml_text(b, n, nvml_is_mig(h) ? d->mig_uuid : d->uuid);
}
VEOSIM_API int nvmlDeviceGetIndex(nvml_device h, unsigned *i) {
    NVML_DEVICE(h, d);
    NVML_NEED(i);
    *i = nvml_is_mig(h) ? 0 : (unsigned)(d - veosim()->device);
    return NVML_SUCCESS;
}
VEOSIM_API int nvmlDeviceGetMinorNumber(nvml_device h, unsigned *i) {
    NVML_DEVICE(h, d);
    NVML_NEED(i);
    *i = (unsigned)(d - veosim()->device);
    return NVML_SUCCESS;
}
struct pci {
    char legacy[16];
    unsigned domain, bus, device, ids, subsystem;
    char id[32];
};
VEOSIM_API int nvmlDeviceGetPciInfo_v3(nvml_device h, struct pci *p) {
    NVML_DEVICE(h, d);
    NVML_NEED(p);
    memset(p, 0, sizeof *p);
    sscanf(d->bus_id, "%x:%x:%x", &p->domain, &p->bus, &p->device);
    snprintf(p->legacy, sizeof p->legacy, "%04X:%02X:%02X.0", p->domain & 0xffff, p->bus & 0xff,
             p->device & 0xff);
    strcpy(p->id, d->bus_id);
    return NVML_SUCCESS;
}
VEOSIM_API int nvmlDeviceGetCudaComputeCapability(nvml_device h, int *major, int *minor) {
    NVML_DEVICE(h, d);
    NVML_NEED(major && minor);
    *major = (int)d->capability_major;
    *minor = (int)d->capability_minor;
    return NVML_SUCCESS;
}

/* ---- MIG ---- */

VEOSIM_API int nvmlDeviceGetMigMode(nvml_device h, unsigned *current, unsigned *pending) {
    NVML_DEVICE(h, d);
    NVML_NEED(current && pending);
    if (d->mig_mode < 0) return NVML_NOT_SUPPORTED;
    *current = *pending = (unsigned)d->mig_mode;
    return NVML_SUCCESS;
}
VEOSIM_API int nvmlDeviceGetMaxMigDeviceCount(nvml_device h, unsigned *n) {
    NVML_DEVICE(h, d);
    NVML_NEED(n);
    *n = d->mig_mode < 0 ? 0 : 7;
    return NVML_SUCCESS;
}
VEOSIM_API int nvmlDeviceIsMigDeviceHandle(nvml_device h, unsigned *answer) {
    NVML_DEVICE(h, d);
    NVML_NEED(answer);
    *answer = (unsigned)nvml_is_mig(h);
    return NVML_SUCCESS;
}
VEOSIM_API int nvmlDeviceGetMigDeviceHandleByIndex(nvml_device h, unsigned i, nvml_device *out) {
    NVML_DEVICE(h, d);
    NVML_NEED(out);
    if (d->mig_mode < 0) return NVML_NOT_SUPPORTED;
    if (d->mig_mode == 0 || i > 0) return NVML_NOT_FOUND; /* one instance a device */
    *out = &mig_handle[d - veosim()->device];
    return NVML_SUCCESS;
}
VEOSIM_API int nvmlDeviceGetDeviceHandleFromMigDeviceHandle(nvml_device h, nvml_device *out) {
    NVML_DEVICE(h, d);
    NVML_NEED(out);
    if (!nvml_is_mig(h)) return NVML_INVALID_ARGUMENT;
    *out = d;
    return NVML_SUCCESS;
}
VEOSIM_API int nvmlDeviceGetGpuInstanceId(nvml_device h, unsigned *id) {
    NVML_DEVICE(h, d);
    NVML_NEED(id);
    *id = 1;
    return nvml_is_mig(h) ? NVML_SUCCESS : NVML_INVALID_ARGUMENT;
}
VEOSIM_API int nvmlDeviceGetComputeInstanceId(nvml_device h, unsigned *id) {
    NVML_DEVICE(h, d);
    NVML_NEED(id);
    *id = 0;
    return nvml_is_mig(h) ? NVML_SUCCESS : NVML_INVALID_ARGUMENT;
}

VEOSIM_GUARDED
