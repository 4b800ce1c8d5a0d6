/* The state of the simulated GPUs: one mapped file, shared by every simulated
 * library, every process and the tests (driver.py mirrors this layout). */
#ifndef VEOSIM_H
#define VEOSIM_H
#include <pthread.h>
#include <stddef.h>
#include <stdint.h>

#define VEOSIM_API __attribute__((visibility("default")))
#define VEOSIM_MAGIC 0x00314d49534f4556ull /* "VEOSIM1" */
#define VEOSIM_VERSION 3u
#define VEOSIM_DEVICES 8
#define VEOSIM_PROCESSES 32
#define VEOSIM_PENDING 64
#define VEOSIM_FAULTS 32
#define VEOSIM_NA 0xFFFFFFFFFFFFFFFFull
#define VEOSIM_REFUSED 78 /* exit status of a process that must not go on */

enum veosim_process_kind { VEOSIM_SYNTHETIC = 1, VEOSIM_COMPUTE = 2, VEOSIM_GRAPHICS = 4 };

/* What NVML tells of processes: all, no bytes (WSL), nothing, or the host's pids
 * (a container without its own view). */
enum veosim_view { VEOSIM_VISIBLE, VEOSIM_NO_BYTES, VEOSIM_EMPTY, VEOSIM_FOREIGN_PIDS };
#define VEOSIM_FOREIGN_OFFSET 1000000u

struct veosim_process { /* one process on one device */
    uint32_t pid, kind;
    uint64_t started;         /* start time of the pid: a pid used again is not it */
    uint64_t used_bytes;      /* charged by the driver, the context included */
    uint64_t context_bytes;   /* of these, the context's */
    uint64_t requested_bytes; /* device bytes asked for and not freed */
    uint64_t pinned_bytes;    /* host bytes pinned while this device was current */
    uint64_t pending_bytes;   /* freed, and not yet seen to be free */
    uint64_t allocations;     /* device allocations alive */
};

struct veosim_pending { /* a free that the driver's counters do not show yet */
    uint64_t due_ns, bytes;
    uint32_t queries, pid;
};

struct veosim_device {
    char name[64], uuid[48], mig_uuid[48], bus_id[32];
    uint64_t total_bytes, reserved_bytes;
    uint64_t other_used_bytes;  /* other tenants: memory that no process accounts for */
    uint64_t context_bytes;     /* what a process's context costs */
    uint64_t granularity_bytes; /* allocations are charged in multiples of it */
    uint64_t mig_total_bytes;
    uint64_t energy_mj, event_reasons;
    uint64_t free_delay_ns;
    uint32_t free_delay_queries;
    uint32_t utilization_gpu, utilization_memory;
    uint32_t clock_mhz[4], max_clock_mhz[4]; /* graphics, SM, memory, video */
    uint32_t pcie_kib_s[2];
    uint32_t temperature_c, power_mw;
    uint32_t capability_major, capability_minor, multiprocessors;
    int32_t mig_mode; /* -1: not supported */
    uint32_t process_view;
    uint32_t integrated;  /* memory is the host's: NVML has no memory figures */
    uint32_t hold_events; /* events and streams stay "not ready" until a synchronise */
    uint32_t lost;        /* fell off the bus */
    uint64_t mallocs, frees, copies, launches, queries;
    struct veosim_process process[VEOSIM_PROCESSES];
    struct veosim_pending pending[VEOSIM_PENDING];
};

struct veosim_fault { /* an injected failure, matched by function name */
    char function[64];
    int32_t code;
    int32_t skip;  /* calls to let through first */
    int32_t times; /* how often to fail; -1: always; 0: the slot is free */
    int32_t hits;  /* how often it did */
};

union veosim_lock {
    pthread_mutex_t mutex;
    uint64_t room[8]; /* the mutex's size differs between machines */
};

struct veosim_state {
    uint64_t magic;
    uint32_t version, size;
    uint32_t devices;
    int32_t cuda_version;
    char driver_version[80], nvml_version[80];
    union veosim_lock lock;
    uint64_t calls;
    uint32_t armed; /* faults in use: none costs one comparison a call */
    uint32_t padding;
    struct veosim_fault fault[VEOSIM_FAULTS];
    struct veosim_device device[VEOSIM_DEVICES];
};

/* Map a state file; NULL, and the reason in `why`, when it is not one of ours. */
VEOSIM_API struct veosim_state *veosim_map(const char *path, int create, char *why,
                                           size_t length);
VEOSIM_API void veosim_unmap(struct veosim_state *s);
/* Every device as new, every fault taken back; the lock and the mappings stay. */
VEOSIM_API void veosim_reset(struct veosim_state *s);
/* The state of this process (VEOSIM_STATE). Ends the process when it is refused. */
VEOSIM_API struct veosim_state *veosim(void);
VEOSIM_API void veosim_lock(struct veosim_state *s);
VEOSIM_API void veosim_unlock(struct veosim_state *s);
/* 0, or the code that a test wants this function to fail with. */
VEOSIM_API int veosim_fault(const char *function);
/* To stderr, where VEOSIM_TRACE is set. */
VEOSIM_API void veosim_trace(const char *what);

/* With the lock held. */
VEOSIM_API void veosim_reclaim(struct veosim_state *s);
VEOSIM_API uint64_t veosim_used(struct veosim_device *d);
VEOSIM_API struct veosim_process *veosim_own(struct veosim_device *d, int create);
VEOSIM_API int veosim_charge(struct veosim_device *d, uint64_t bytes);
VEOSIM_API void veosim_discharge(struct veosim_device *d, uint64_t bytes);
/* Bytes as a query of the driver's counters shows them; ages the delayed frees. */
VEOSIM_API uint64_t veosim_shown(struct veosim_device *d);

#define VEOSIM_GUARDED \
    __attribute__((constructor)) static void veosim_guard(void) { (void)veosim(); }
#endif
