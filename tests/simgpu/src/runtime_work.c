/* libcudart: streams, events, graphs, kernels. */
#include "runtime.h"
#include <stdlib.h>
#include <string.h>

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

VEOSIM_API int cudaStreamCreate(stream_t *s) { RUNTIME_CALL(cuStreamCreate(s, 0)); }
VEOSIM_API int cudaStreamCreateWithFlags(stream_t *s, unsigned flags) {
    RUNTIME_CALL(cuStreamCreate(s, flags));
}
VEOSIM_API int cudaStreamCreateWithPriority(stream_t *s, unsigned flags, int priority) {
    (void)priority;
    RUNTIME_CALL(cuStreamCreate(s, flags));
}
VEOSIM_API int cudaStreamDestroy(stream_t s) { RUNTIME_CALL(cuStreamDestroy_v2(s)); }
VEOSIM_API int cudaStreamQuery(stream_t s) { RUNTIME_CALL(cuStreamQuery(s)); }
VEOSIM_API int cudaStreamSynchronize(stream_t s) { RUNTIME_CALL(cuStreamSynchronize(s)); }
VEOSIM_API int cudaStreamWaitEvent(stream_t s, event_t e, unsigned flags) {
    (void)s, (void)e, (void)flags;
    return CUDA_OK;
}
VEOSIM_API int cudaStreamGetPriority(stream_t s, int *priority) {
    (void)s;
    *priority = 0;
    return CUDA_OK;
}
VEOSIM_API int cudaStreamAddCallback(stream_t s, void (*f)(stream_t, int, void *), void *data,
                                     unsigned flags) {
    (void)flags;
    RUNTIME_ENTER();
    f(s, 0, data);
    return CUDA_OK;
}
VEOSIM_API int cudaLaunchHostFunc(stream_t s, void (*f)(void *), void *data) {
    (void)s;
    RUNTIME_ENTER();
    f(data);
    return CUDA_OK;
}

VEOSIM_API int cudaEventCreate(event_t *e) { RUNTIME_CALL(cuEventCreate(e, 0)); }
VEOSIM_API int cudaEventCreateWithFlags(event_t *e, unsigned flags) {
    RUNTIME_CALL(cuEventCreate(e, flags));
}
VEOSIM_API int cudaEventDestroy(event_t e) { RUNTIME_CALL(cuEventDestroy_v2(e)); }
VEOSIM_API int cudaEventRecord(event_t e, stream_t s) { RUNTIME_CALL(cuEventRecord(e, s)); }
VEOSIM_API int cudaEventRecordWithFlags(event_t e, stream_t s, unsigned flags) {
    (void)flags;
    RUNTIME_CALL(cuEventRecord(e, s));
}
VEOSIM_API int cudaEventQuery(event_t e) { RUNTIME_CALL(cuEventQuery(e)); }
VEOSIM_API int cudaEventSynchronize(event_t e) { RUNTIME_CALL(cuEventSynchronize(e)); }
VEOSIM_API int cudaEventElapsedTime(float *ms, event_t from, event_t to) {
    RUNTIME_CALL(cuEventElapsedTime(ms, from, to));
}

/* ---- capture and graphs: one capture at a time, a graph is an empty shell ---- */

static struct {
    int active;
    unsigned long long id;
    stream_t stream;
} capture;

static int capturing(stream_t s) { return capture.active && s == capture.stream; }

VEOSIM_API int cudaStreamIsCapturing(stream_t s, int *status) {
    *status = capturing(s);
    return CUDA_OK;
}
static void begin_capture(stream_t s) {
    capture.active = 1;
    capture.id++;
    capture.stream = s;
}
VEOSIM_API int cudaStreamBeginCapture(stream_t s, int mode) {
    (void)mode;
    RUNTIME_ENTER();
    begin_capture(s);
    return CUDA_OK;
}
VEOSIM_API int cudaStreamBeginCaptureToGraph(stream_t s, void *graph, const void *dependencies,
                                             const void *data, size_t n, int mode) {
    (void)graph, (void)dependencies, (void)data, (void)n, (void)mode;
    RUNTIME_ENTER();
    begin_capture(s);
    return CUDA_OK;
}
VEOSIM_API int cudaStreamEndCapture(stream_t s, void **graph) {
    (void)s;
    RUNTIME_ENTER();
    capture.active = 0;
    *graph = malloc(8);
    return CUDA_OK;
}
static void capture_info(stream_t s, int *status, unsigned long long *id, void **graph,
                         const void **dependencies, size_t *n) {
    *status = capturing(s);
    if (id) *id = capture.id;
    if (graph) *graph = NULL;
    if (dependencies) *dependencies = NULL;
    if (n) *n = 0;
}
VEOSIM_API int cudaStreamGetCaptureInfo(stream_t s, int *status, unsigned long long *id,
                                        void **graph, const void **dependencies,
                                        const void **edges, size_t *n) {
    capture_info(s, status, id, graph, dependencies, n);
    if (edges) *edges = NULL;
    return CUDA_OK;
}
VEOSIM_API int cudaStreamGetCaptureInfo_v2(stream_t s, int *status, unsigned long long *id,
                                           void **graph, const void **dependencies, size_t *n) {
    capture_info(s, status, id, graph, dependencies, n);
    return CUDA_OK;
}
VEOSIM_API int cudaThreadExchangeStreamCaptureMode(int *mode) {
    (void)mode;
    return CUDA_OK;
}
VEOSIM_API int cudaGraphInstantiate(void **executable, void *graph, unsigned long long flags) {
    (void)graph, (void)flags;
    *executable = malloc(8);
    return CUDA_OK;
}
VEOSIM_API int cudaGraphInstantiateWithFlags(void **executable, void *graph,
                                             unsigned long long flags) {
    return cudaGraphInstantiate(executable, graph, flags);
}
VEOSIM_API int cudaGraphLaunch(void *executable, stream_t s) {
    (void)executable, (void)s;
    RUNTIME_ENTER();
    core_launch();
    return CUDA_OK;
}
VEOSIM_API int cudaGraphDestroy(void *graph) {
    free(graph);
    return CUDA_OK;
}
VEOSIM_API int cudaGraphExecDestroy(void *executable) {
    free(executable);
    return CUDA_OK;
}
VEOSIM_API int cudaGraphGetNodes(void *graph, void **nodes, size_t *n) {
    (void)graph, (void)nodes;
    *n = 0;
    return CUDA_OK;
}

/* ---- kernels: registered, counted, never run ---- */

typedef struct {
    unsigned x, y, z;
} dim3;
struct configuration {
    dim3 grid, block;
    size_t shared;
    stream_t stream;
};
static __thread struct configuration pushed[16];
static __thread int depth;

VEOSIM_API unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block, size_t shared, stream_t s) {
    if (depth < 16) pushed[depth++] = (struct configuration){grid, block, shared, s};
    return 0;
}
VEOSIM_API int __cudaPopCallConfiguration(dim3 *grid, dim3 *block, size_t *shared, void *s) {
    const struct configuration *top;
    if (!depth) return CUDA_INVALID_VALUE;
    top = &pushed[--depth];
    *grid = top->grid;
    *block = top->block;
    *shared = top->shared;
    *(stream_t *)s = top->stream;
    return CUDA_OK;
}
VEOSIM_API void **__cudaRegisterFatBinary(void *binary) {
    static void *handle[1];
    (void)binary;
    return handle;
}
VEOSIM_API void __cudaRegisterFatBinaryEnd(void **handle) { (void)handle; }
VEOSIM_API void __cudaUnregisterFatBinary(void **handle) { (void)handle; }
VEOSIM_API void __cudaRegisterFunction(void **handle, const char *f, char *device,
                                       const char *name, int limit, void *a, void *b, void *c,
                                       void *d, int *warp) {
    (void)handle, (void)f, (void)device, (void)name, (void)limit;
    (void)a, (void)b, (void)c, (void)d, (void)warp;
}
VEOSIM_API void __cudaRegisterVar(void **handle, char *v, char *device, const char *name,
                                  int external, size_t size, int constant, int global) {
    (void)handle, (void)v, (void)device, (void)name, (void)external;
    (void)size, (void)constant, (void)global;
}
VEOSIM_API char __cudaInitModule(void **handle) {
    (void)handle;
    return 1;
}
VEOSIM_API int __cudaGetKernel(void **kernel, const void *f) {
    *kernel = (void *)f;
    return CUDA_OK;
}
VEOSIM_API int cudaLaunchKernel(const void *f, dim3 grid, dim3 block, void **arguments,
                                size_t shared, stream_t s) {
    (void)f, (void)grid, (void)block, (void)arguments, (void)shared, (void)s;
    RUNTIME_ENTER();
    core_launch();
    return CUDA_OK;
}
VEOSIM_API int __cudaLaunchKernel(void *kernel, dim3 grid, dim3 block, void **arguments,
                                  size_t shared, stream_t s) {
    return cudaLaunchKernel(kernel, grid, block, arguments, shared, s);
}
VEOSIM_API int cudaLaunchKernelExC(const void *config, const void *f, void **arguments) {
    (void)config, (void)f, (void)arguments;
    RUNTIME_ENTER();
    core_launch();
    return CUDA_OK;
}
VEOSIM_API int cudaFuncGetAttributes(void *out, const void *f) {
    int *field = out;
    (void)f;
    memset(out, 0, 144);
    field[6] = 1024;          /* maxThreadsPerBlock */
    field[7] = 32;            /* numRegs */
    field[8] = field[9] = 80; /* ptxVersion, binaryVersion */
    field[11] = 49152;        /* maxDynamicSharedSizeBytes */
    return CUDA_OK;
}
VEOSIM_API int cudaFuncSetAttribute(const void *f, int attribute, int value) {
    (void)f, (void)attribute, (void)value;
    return CUDA_OK;
}
VEOSIM_API int cudaKernelSetAttributeForDevice(void *kernel, int attribute, int value, int d) {
    (void)kernel, (void)attribute, (void)value, (void)d;
    return CUDA_OK;
}
VEOSIM_API int cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int *n, const void *f,
                                                                      int size, size_t shared,
                                                                      unsigned flags) {
    (void)f, (void)size, (void)shared, (void)flags;
    *n = 2;
    return CUDA_OK;
}
VEOSIM_API int cudaProfilerStart(void) { return CUDA_OK; }
VEOSIM_API int cudaProfilerStop(void) { return CUDA_OK; }
