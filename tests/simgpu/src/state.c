/* The shared state: mapping, lock, faults, and the driver's books of memory. */
#define _GNU_SOURCE
#include "veosim.h"
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* driver.py compares these with its mirror: a drift is refused, not misread. */
VEOSIM_API const size_t veosim_layout[] = {
    sizeof(struct veosim_state),
    sizeof(struct veosim_device),
    sizeof(struct veosim_process),
    sizeof(struct veosim_fault),
    offsetof(struct veosim_state, lock),
    offsetof(struct veosim_state, fault),
    offsetof(struct veosim_state, device),
    offsetof(struct veosim_device, process),
    offsetof(struct veosim_device, pending),
};

/* ---- opening ---- */

static void fill_device(struct veosim_device *d, int index) {
    snprintf(d->name, sizeof d->name, "Simulated GPU");
    snprintf(d->uuid, sizeof d->uuid, "GPU-51300000-0000-4000-8000-%012d", index);
    snprintf(d->mig_uuid, sizeof d->mig_uuid, "MIG-51300000-0000-4000-9000-%012d", index);
    snprintf(d->bus_id, sizeof d->bus_id, "00000000:%02X:00.0", index + 1);
    d->total_bytes = 8ull << 30;
    d->mig_total_bytes = 1ull << 30;
    d->reserved_bytes = 256ull << 20;
    d->context_bytes = 300ull << 20;
    d->granularity_bytes = 2ull << 20;
    d->clock_mhz[0] = d->clock_mhz[1] = 1410;
    d->clock_mhz[2] = 1215;
    d->clock_mhz[3] = 1275;
    memcpy(d->max_clock_mhz, d->clock_mhz, sizeof d->max_clock_mhz);
    d->temperature_c = 40;
    d->power_mw = 60000;
    d->capability_major = 8;
    d->multiprocessors = 108;
    d->mig_mode = -1;
}

static void fill(struct veosim_state *s) {
    s->version = VEOSIM_VERSION;
    s->size = sizeof *s;
    s->devices = 1;
    s->cuda_version = 13000;
    strcpy(s->driver_version, "580.99.01");
    strcpy(s->nvml_version, "13.580.99.01");
    for (int i = 0; i < VEOSIM_DEVICES; i++) fill_device(&s->device[i], i);
}

static void found(struct veosim_state *s) {
    pthread_mutexattr_t shared;
    memset(s, 0, sizeof *s);
    fill(s);
    pthread_mutexattr_init(&shared);
    pthread_mutexattr_setpshared(&shared, PTHREAD_PROCESS_SHARED);
    pthread_mutexattr_setrobust(&shared, PTHREAD_MUTEX_ROBUST);
    pthread_mutex_init(&s->lock.mutex, &shared);
    pthread_mutexattr_destroy(&shared);
    __atomic_store_n(&s->magic, VEOSIM_MAGIC, __ATOMIC_RELEASE);
}

void veosim_reset(struct veosim_state *s) {
    veosim_lock(s);
    memset((char *)s + offsetof(struct veosim_state, calls), 0,
           sizeof *s - offsetof(struct veosim_state, calls));
    fill(s);
    veosim_unlock(s);
}

static int acceptable(const struct veosim_state *s, const char *path, char *why, size_t n) {
    if (s->magic != VEOSIM_MAGIC) {
        snprintf(why, n, "%s is not a state file of the simulator (magic %016llx)", path,
                 (unsigned long long)s->magic);
        return 0;
    }
    if (s->version == VEOSIM_VERSION && s->size == sizeof *s) return 1;
    snprintf(why, n,
             "%s was written by another version of the simulator (version %u, %u bytes; "
             "this one has version %u, %zu bytes): delete it",
             path, s->version, s->size, VEOSIM_VERSION, sizeof *s);
    return 0;
}

struct veosim_state *veosim_map(const char *path, int create, char *why, size_t n) {
    struct veosim_state *s;
    struct stat st;
    int fd = open(path, O_RDWR | O_CLOEXEC | (create ? O_CREAT | O_EXCL : 0), 0600);
    if (fd < 0 || fstat(fd, &st)) {
        snprintf(why, n, "%s cannot be opened: %s", path, strerror(errno));
        if (fd >= 0) close(fd);
        return NULL;
    }
    if (create && ftruncate(fd, sizeof *s)) {
        snprintf(why, n, "%s cannot be made: %s", path, strerror(errno));
        close(fd);
        return NULL;
    }
    /* version and size are the fields that never move: readable in any state file */
    if (!create && (size_t)st.st_size < offsetof(struct veosim_state, devices)) {
        snprintf(why, n, "%s is not a state file of the simulator (%lld bytes)", path,
                 (long long)st.st_size);
        close(fd);
        return NULL;
    }
    s = mmap(NULL, sizeof *s, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd);
    if (s == MAP_FAILED) {
        snprintf(why, n, "%s cannot be mapped: %s", path, strerror(errno));
        return NULL;
    }
    if (create) found(s);
    if (!acceptable(s, path, why, n)) {
        munmap(s, sizeof *s);
        return NULL;
    }
    if (!create && (size_t)st.st_size != sizeof *s) {
        snprintf(why, n, "%s is cut short or padded (%lld bytes, %zu expected): delete it", path,
                 (long long)st.st_size, sizeof *s);
        munmap(s, sizeof *s);
        return NULL;
    }
    return s;
}

void veosim_unmap(struct veosim_state *s) { munmap(s, sizeof *s); }

/* ---- the guard: a simulator must never stand in for a real driver ---- */

static int mentions(const char *path, const char *word) {
    int fd = open(path, O_RDONLY | O_CLOEXEC), found = 0;
    struct stat st;
    if (fd < 0) return 0;
    if (!fstat(fd, &st) && st.st_size > 0) {
        void *p = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
        if (p != MAP_FAILED) {
            found = memmem(p, (size_t)st.st_size, word, strlen(word) + 1) != NULL;
            munmap(p, (size_t)st.st_size);
        }
    }
    close(fd);
    return found;
}

static const char *real_driver(void) {
    /* VEOSIM_GUARD_ROOT: another root to look under, for the guard's own tests */
    const char *root = getenv("VEOSIM_GUARD_ROOT"), *force = getenv("VEOSIM_FORCE");
    char path[4096];
    if (force && !strcmp(force, "1")) return NULL;
    if (!root) root = "";
    snprintf(path, sizeof path, "%s/dev/nvidiactl", root);
    if (!access(path, F_OK)) return "/dev/nvidiactl exists";
    snprintf(path, sizeof path, "%s/etc/ld.so.cache", root);
    if (mentions(path, "libcuda.so.1")) return "libcuda.so.1 is in the loader's cache";
    return NULL;
}

static void refuse(const char *why) {
    fprintf(stderr, "veosim: refused to load: %s\n", why);
    fflush(stderr);
    _exit(VEOSIM_REFUSED);
}

static struct veosim_state *mapped;

static void open_once(void) {
    const char *path = getenv("VEOSIM_STATE"), *real = real_driver();
    char why[4600];
    if (real) {
        snprintf(why, sizeof why,
                 "a real NVIDIA driver is present (%s); VEOSIM_FORCE=1 overrides", real);
        refuse(why);
    }
    if (!path || !*path) refuse("VEOSIM_STATE names no state file (made by driver.py)");
    mapped = veosim_map(path, 0, why, sizeof why);
    if (!mapped) refuse(why);
}

struct veosim_state *veosim(void) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, open_once);
    return mapped;
}

void veosim_trace(const char *what) {
    if (getenv("VEOSIM_TRACE")) fprintf(stderr, "veosim: %s\n", what);
}

/* ---- lock and faults ---- */

void veosim_lock(struct veosim_state *s) {
    if (pthread_mutex_lock(&s->lock.mutex) == EOWNERDEAD)
        pthread_mutex_consistent(&s->lock.mutex); /* its owner was killed: books stay usable */
}
void veosim_unlock(struct veosim_state *s) { pthread_mutex_unlock(&s->lock.mutex); }

static int fire(struct veosim_state *s, const char *function) {
    for (int i = 0; i < VEOSIM_FAULTS; i++) {
        struct veosim_fault *f = &s->fault[i];
        if (!f->times || strcmp(f->function, function)) continue;
        if (f->skip > 0) {
            f->skip--;
            return 0;
        }
        if (f->times > 0 && --f->times == 0) s->armed--;
        f->hits++;
        return f->code;
    }
    return 0;
}

int veosim_fault(const char *function) {
    struct veosim_state *s = veosim();
    int code;
    __atomic_fetch_add(&s->calls, 1, __ATOMIC_RELAXED);
    if (!__atomic_load_n(&s->armed, __ATOMIC_ACQUIRE)) return 0;
    veosim_lock(s);
    code = fire(s, function);
    veosim_unlock(s);
    return code;
}

/* ---- the books ---- */

static uint64_t now_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000ull + (uint64_t)t.tv_nsec;
}

/* Start time of a pid in clock ticks; 0 when it is gone or a zombie. */
static uint64_t started(uint32_t pid) {
    char path[64], text[1024], *p, state = 0;
    unsigned long long ticks = 0;
    FILE *f;
    size_t n;
    snprintf(path, sizeof path, "/proc/%u/stat", pid);
    if (!(f = fopen(path, "re"))) return 0;
    n = fread(text, 1, sizeof text - 1, f);
    fclose(f);
    text[n] = 0;
    if (!(p = strrchr(text, ')'))) return 0; /* the name may hold anything */
    if (sscanf(p + 1, " %c %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s "
                      "%*s %llu", &state, &ticks) != 2)
        return 0;
    return state == 'Z' || state == 'X' ? 0 : ticks;
}

static void drop_pending(struct veosim_device *d, uint32_t pid) {
    for (int i = 0; i < VEOSIM_PENDING; i++)
        if (d->pending[i].pid == pid) memset(&d->pending[i], 0, sizeof d->pending[i]);
}

static void forget(struct veosim_device *d, struct veosim_process *p) {
    drop_pending(d, p->pid);
    memset(p, 0, sizeof *p);
}

static void reclaim(struct veosim_device *d) {
    uint32_t me = (uint32_t)getpid();
    for (int i = 0; i < VEOSIM_PROCESSES; i++) {
        struct veosim_process *p = &d->process[i];
        if (!p->pid || p->kind & VEOSIM_SYNTHETIC || p->pid == me) continue;
        if (started(p->pid) != p->started) forget(d, p);
    }
}

void veosim_reclaim(struct veosim_state *s) {
    for (uint32_t i = 0; i < s->devices; i++) reclaim(&s->device[i]);
}

uint64_t veosim_used(struct veosim_device *d) {
    uint64_t used = d->other_used_bytes;
    reclaim(d);
    for (int i = 0; i < VEOSIM_PROCESSES; i++)
        if (d->process[i].pid && d->process[i].used_bytes != VEOSIM_NA)
            used += d->process[i].used_bytes;
    return used;
}

static struct veosim_process *row_of(struct veosim_device *d, uint32_t pid) {
    for (int i = 0; i < VEOSIM_PROCESSES; i++)
        if (d->process[i].pid == pid && !(d->process[i].kind & VEOSIM_SYNTHETIC))
            return &d->process[i];
    return NULL;
}

struct veosim_process *veosim_own(struct veosim_device *d, int create) {
    /* rows made by this image of the process: after exec the old ones are void */
    static uint32_t made_by[VEOSIM_DEVICES];
    uint32_t me = (uint32_t)getpid();
    long index = d - veosim()->device;
    struct veosim_process *p = row_of(d, me);
    if (p && made_by[index] != me) {
        forget(d, p);
        p = NULL;
    }
    if (p || !create) return p;
    reclaim(d);
    for (int i = 0; i < VEOSIM_PROCESSES && !p; i++)
        if (!d->process[i].pid) p = &d->process[i];
    if (!p) return NULL;
    memset(p, 0, sizeof *p);
    p->pid = me;
    p->kind = VEOSIM_COMPUTE;
    p->started = started(me);
    made_by[index] = me;
    return p;
}

int veosim_charge(struct veosim_device *d, uint64_t bytes) {
    uint64_t limit = d->mig_mode > 0 ? d->mig_total_bytes : d->total_bytes;
    struct veosim_process *p = veosim_own(d, 1);
    if (!p || veosim_used(d) + d->reserved_bytes + bytes > limit) return -1;
    p->used_bytes += bytes;
    return 0;
}

static void settle(struct veosim_device *d, struct veosim_pending *slot) {
    struct veosim_process *p = row_of(d, slot->pid);
    if (p) p->pending_bytes -= slot->bytes < p->pending_bytes ? slot->bytes : p->pending_bytes;
    memset(slot, 0, sizeof *slot);
}

static void delay(struct veosim_device *d, struct veosim_process *p, uint64_t bytes) {
    struct veosim_pending *slot = &d->pending[0];
    for (int i = 0; i < VEOSIM_PENDING; i++) {
        if (!d->pending[i].pid) {
            slot = &d->pending[i];
            break;
        }
        if (d->pending[i].due_ns < slot->due_ns) slot = &d->pending[i];
    }
    if (slot->pid) settle(d, slot); /* all in use: the oldest shows at once */
    slot->pid = p->pid;
    slot->bytes = bytes;
    slot->due_ns = now_ns() + d->free_delay_ns;
    slot->queries = d->free_delay_queries;
    p->pending_bytes += bytes;
}

void veosim_discharge(struct veosim_device *d, uint64_t bytes) {
    struct veosim_process *p = veosim_own(d, 0);
    if (!p) return;
    p->used_bytes -= bytes < p->used_bytes ? bytes : p->used_bytes;
    if (d->free_delay_ns || d->free_delay_queries) delay(d, p, bytes);
}

uint64_t veosim_shown(struct veosim_device *d) {
    uint64_t shown, now = now_ns();
    d->queries++;
    for (int i = 0; i < VEOSIM_PENDING; i++) {
        struct veosim_pending *slot = &d->pending[i];
        if (!slot->pid) continue;
        if (slot->queries) slot->queries--;
        else if (slot->due_ns <= now) settle(d, slot);
    }
    shown = veosim_used(d);
    for (int i = 0; i < VEOSIM_PROCESSES; i++)
        if (d->process[i].pid) shown += d->process[i].pending_bytes;
    return shown;
}
