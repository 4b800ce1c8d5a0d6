/* Addresses of device memory. As a CUDA driver does, the simulator reserves a range
 * once, when the first context is opened: allocating then does not move the size of
 * the process's address space. */
#ifndef VEOSIM_SPACE_H
#define VEOSIM_SPACE_H
#include <stddef.h>

/* Not thread safe: callers hold a lock. */
void *space_take(size_t size, size_t align); /* NULL: nothing left */
void space_give(void *p, size_t size);       /* its pages go back to the system */
#endif
