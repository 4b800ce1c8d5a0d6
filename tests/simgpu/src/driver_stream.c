/* libcuda.so.1: streams and events. Streams are one in-order queue a device, and
 * done at once unless the device's events are held. */
#include "core.h"
#include <stdlib.h>
#include <time.h>

struct stream {
    int device;
};
struct event {
    struct timespec recorded;
    uint64_t work;
    int device;
};
#define IS_HANDLE(s) ((uintptr_t)(s) > 2) /* 0 to 2 are the default streams */

static int device_of(const struct stream *s) {
    return IS_HANDLE(s) ? s->device : core_current();
}

VEOSIM_API int cuStreamCreate(struct stream **s, unsigned flags) {
    int code;
    (void)flags;
    CORE_ENTER();
    if ((code = core_open(core_current()))) return code;
    *s = malloc(sizeof **s);
    (*s)->device = core_current();
    return CUDA_OK;
}
VEOSIM_API int cuStreamCreateWithPriority(struct stream **s, unsigned flags, int priority) {
    (void)priority;
    return cuStreamCreate(s, flags);
}
VEOSIM_API int cuStreamDestroy_v2(struct stream *s) {
    if (IS_HANDLE(s)) free(s);
    return CUDA_OK;
}
VEOSIM_API int cuStreamSynchronize(struct stream *s) {
    CORE_ENTER();
    core_synchronize(device_of(s));
    return CUDA_OK;
}
VEOSIM_API int cuStreamQuery(struct stream *s) {
    CORE_ENTER();
    return core_is_idle(device_of(s)) ? CUDA_OK : CUDA_NOT_READY;
}
VEOSIM_API int cuStreamWaitEvent(struct stream *s, struct event *e, unsigned flags) {
    (void)s, (void)e, (void)flags;
    return CUDA_OK;
}
VEOSIM_API int cuStreamIsCapturing(struct stream *s, int *status) {
    (void)s;
    *status = 0;
    return CUDA_OK;
}
VEOSIM_API int cuStreamGetCaptureInfo_v2(struct stream *s, int *status, uint64_t *id, void **graph,
                                         const void **dependencies, size_t *n) {
    (void)s;
    *status = 0;
    if (id) *id = 0;
    if (graph) *graph = NULL;
    if (dependencies) *dependencies = NULL;
    if (n) *n = 0;
    return CUDA_OK;
}
VEOSIM_API int cuStreamGetPriority(struct stream *s, int *priority) {
    (void)s;
    *priority = 0;
    return CUDA_OK;
}
VEOSIM_API int cuStreamGetDevice(struct stream *s, int *device) {
    *device = device_of(s);
    return CUDA_OK;
}
VEOSIM_API int cuLaunchHostFunc(struct stream *s, void (*f)(void *), void *data) {
    (void)s;
    CORE_ENTER();
    f(data);
    return CUDA_OK;
}
VEOSIM_API int cuStreamAddCallback(struct stream *s, void (*f)(void *, int, void *), void *data,
                                   unsigned flags) {
    (void)flags;
    CORE_ENTER();
    f(s, 0, data);
    return CUDA_OK;
}

VEOSIM_API int cuEventCreate(struct event **e, unsigned flags) {
    (void)flags;
    CORE_ENTER();
    *e = calloc(1, sizeof **e);
    (*e)->device = core_current();
    return CUDA_OK;
}
VEOSIM_API int cuEventDestroy_v2(struct event *e) {
    free(e);
    return CUDA_OK;
}
VEOSIM_API int cuEventRecord(struct event *e, struct stream *s) {
    (void)s;
    CORE_ENTER();
    clock_gettime(CLOCK_MONOTONIC, &e->recorded);
    e->work = core_submit();
    e->device = core_current();
    return CUDA_OK;
}
VEOSIM_API int cuEventRecordWithFlags(struct event *e, struct stream *s, unsigned flags) {
    (void)flags;
    return cuEventRecord(e, s);
}
VEOSIM_API int cuEventQuery(struct event *e) {
    CORE_ENTER();
    return core_is_done(e->device, e->work) ? CUDA_OK : CUDA_NOT_READY;
}
VEOSIM_API int cuEventSynchronize(struct event *e) {
    CORE_ENTER();
    core_synchronize(e->device);
    return CUDA_OK;
}
VEOSIM_API int cuEventElapsedTime(float *ms, struct event *from, struct event *to) {
    CORE_ENTER();
    *ms = (float)((double)(to->recorded.tv_sec - from->recorded.tv_sec) * 1e3 +
                  (double)(to->recorded.tv_nsec - from->recorded.tv_nsec) / 1e6);
    return CUDA_OK;
}
VEOSIM_API int cuEventElapsedTime_v2(float *ms, struct event *from, struct event *to) {
    return cuEventElapsedTime(ms, from, to);
}
