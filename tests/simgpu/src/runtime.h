/* Shared by the parts of libcudart. CUDA 12 and 13 differ in a few structures; the
 * 12 is compiled with CUDART_12. */
#ifndef VEOSIM_RUNTIME_H
#define VEOSIM_RUNTIME_H
#include "core.h"

typedef void *stream_t;
typedef void *event_t;

/* Keep an error for cudaGetLastError ("not ready" is none), and pass it on. */
int runtime_result(int code);
int runtime_enter(const char *function);
#define RUNTIME_ENTER()                      \
    do {                                     \
        int code_ = runtime_enter(__func__); \
        if (code_) return code_;             \
    } while (0)
/* A runtime function that is only a driver function under another name. */
#define RUNTIME_CALL(call) \
    do {                   \
        RUNTIME_ENTER();   \
        return runtime_result(call); \
    } while (0)
#endif
