/* libnvrtc: "compiles" anything to a few bytes, so that kernel wrappers get past it. */
#include "veosim.h"
#include <stdlib.h>
#include <string.h>

VEOSIM_API int nvrtcVersion(int *major, int *minor) {
    *major = NVRTC_MAJOR;
    *minor = 0;
    return 0;
}
VEOSIM_API const char *nvrtcGetErrorString(int code) {
    return code ? "NVRTC_ERROR_SIMULATED" : "NVRTC_SUCCESS";
}
VEOSIM_API int nvrtcGetNumSupportedArchs(int *n) {
    *n = 1;
    return 0;
}
VEOSIM_API int nvrtcGetSupportedArchs(int *list) {
    list[0] = 80;
    return 0;
}
VEOSIM_API int nvrtcCreateProgram(void **program, const char *source, const char *name, int n,
                                  const char *const *headers, const char *const *names) {
    (void)source, (void)name, (void)n, (void)headers, (void)names;
    *program = malloc(1);
    return 0;
}
VEOSIM_API int nvrtcDestroyProgram(void **program) {
    free(*program);
    *program = NULL;
    return 0;
}
VEOSIM_API int nvrtcCompileProgram(void *program, int n, const char *const *options) {
    (void)program, (void)n, (void)options;
    return veosim_fault(__func__);
}
VEOSIM_API int nvrtcAddNameExpression(void *program, const char *expression) {
    (void)program, (void)expression;
    return 0;
}
VEOSIM_API int nvrtcGetLoweredName(void *program, const char *expression, const char **lowered) {
    (void)program;
    *lowered = expression;
    return 0;
}

static const char product[8] = "SIMGPU";
#define PRODUCT(what)                                              \
    VEOSIM_API int nvrtcGet##what##Size(void *program, size_t *n) { \
        (void)program;                                             \
        *n = sizeof product;                                       \
        return 0;                                                  \
    }                                                              \
    VEOSIM_API int nvrtcGet##what(void *program, char *out) {      \
        (void)program;                                             \
        memcpy(out, product, sizeof product);                      \
        return 0;                                                  \
    }
PRODUCT(PTX)
PRODUCT(CUBIN)
PRODUCT(ProgramLog)
PRODUCT(LTOIR)
PRODUCT(OptiXIR)

VEOSIM_GUARDED
