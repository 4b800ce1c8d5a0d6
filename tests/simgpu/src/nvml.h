/* Shared by the parts of libnvidia-ml.so.1. */
#ifndef VEOSIM_NVML_H
#define VEOSIM_NVML_H
#include "veosim.h"

enum nvml_code {
    NVML_SUCCESS = 0,
    NVML_UNINITIALIZED = 1,
    NVML_INVALID_ARGUMENT = 2,
    NVML_NOT_SUPPORTED = 3,
    NVML_NO_PERMISSION = 4,
    NVML_NOT_FOUND = 6,
    NVML_INSUFFICIENT_SIZE = 7,
    NVML_GPU_IS_LOST = 15,
    NVML_ARGUMENT_VERSION_MISMATCH = 25
};
typedef void *nvml_device;

int nvml_ready(const char *function);
int nvml_is_mig(nvml_device handle);
struct veosim_device *nvml_behind(nvml_device handle);
int nvml_text(char *out, unsigned n, const char *value);

#define NVML_ENTER()                        \
    do {                                    \
        int code_ = nvml_ready(__func__);   \
        if (code_) return code_;            \
    } while (0)
#define NVML_NEED(condition) \
    do {                     \
        if (!(condition)) return NVML_INVALID_ARGUMENT; \
    } while (0)
/* Declares `d`, the device behind handle `h`, or returns the reason it is not there. */
#define NVML_DEVICE(h, d)                             \
    struct veosim_device *d;                          \
    NVML_ENTER();                                     \
    d = nvml_behind(h);                               \
    if (!d) return NVML_INVALID_ARGUMENT;             \
    if (d->lost) return NVML_GPU_IS_LOST
/* For figures that exist for whole devices only. */
#define NVML_WHOLE(h) \
    do {              \
        if (nvml_is_mig(h)) return NVML_NOT_SUPPORTED; \
    } while (0)
#endif
