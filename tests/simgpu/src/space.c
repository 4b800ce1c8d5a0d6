#define _GNU_SOURCE
#include "space.h"
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>

struct range { /* free addresses, in order, never touching each other */
    uintptr_t start, end;
    struct range *next;
};
static struct range *unused;

/* Shared, so that the host's private-memory counters do not move for device memory;
 * committed by the page, when it is touched. */
static void reserve(void) {
    static int done;
    void *p;
    if (done) return;
    done = 1;
    for (size_t size = (size_t)4 << 40; size >= (size_t)1 << 36; size /= 2) {
        p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE,
                 -1, 0);
        if (p == MAP_FAILED) continue; /* a machine with a limit: less will do */
        unused = malloc(sizeof *unused);
        *unused = (struct range){(uintptr_t)p, (uintptr_t)p + size, NULL};
        return;
    }
}

static void add(struct range **link, uintptr_t start, uintptr_t end) {
    struct range *r;
    if (start == end) return;
    r = malloc(sizeof *r);
    *r = (struct range){start, end, *link};
    *link = r;
}

void *space_take(size_t size, size_t align) {
    reserve();
    for (struct range **link = &unused; *link; link = &(*link)->next) {
        struct range *r = *link;
        uintptr_t start = (r->start + align - 1) / align * align, end = r->end;
        if (start > end || end - start < size) continue;
        /* what is before it stays in this node, what is after gets one of its own */
        add(&r->next, start + size, end);
        r->end = start;
        if (r->start == r->end) {
            *link = r->next;
            free(r);
        }
        return (void *)start;
    }
    return NULL;
}

void space_give(void *p, size_t size) {
    uintptr_t start = (uintptr_t)p, end = start + size;
    struct range **link = &unused, *before = NULL;
    madvise(p, size, MADV_REMOVE);
    while (*link && (*link)->start < start) {
        before = *link;
        link = &before->next;
    }
    add(link, start, end);
    if ((*link)->next && (*link)->next->start == end) {
        struct range *after = (*link)->next;
        (*link)->end = after->end;
        (*link)->next = after->next;
        free(after);
    }
    if (before && before->end == start) {
        struct range *given = before->next;
        before->end = given->end;
        before->next = given->next;
        free(given);
    }
}
