/* libnvidia-ml.so.1: memory, processes, clocks and the rest that is measured. */
#include "nvml.h"
#include <string.h>

/* ---- memory ---- */

struct memory_v1 {
    unsigned long long total, free, used;
};
struct memory_v2 {
    unsigned version;
    unsigned long long total, reserved, free, used;
};
#define MEMORY_V2 0x02000028u

static int measure(nvml_device h, struct veosim_device *d, struct memory_v2 *m) {
    if (d->integrated) return NVML_NOT_SUPPORTED;
    if (d->mig_mode > 0 && !nvml_is_mig(h)) return NVML_NO_PERMISSION; /* ask the instance */
    veosim_lock(veosim());
    m->used = veosim_shown(d);
    veosim_unlock(veosim());
    m->total = nvml_is_mig(h) ? d->mig_total_bytes : d->total_bytes;
    m->reserved = d->reserved_bytes;
    m->free = m->used + m->reserved < m->total ? m->total - m->reserved - m->used : 0;
    return NVML_SUCCESS;
}
VEOSIM_API int nvmlDeviceGetMemoryInfo(nvml_device h, struct memory_v1 *m) {
    struct memory_v2 now;
    int code;
    NVML_DEVICE(h, d);
    NVML_NEED(m);
    if ((code = measure(h, d, &now))) return code;
    m->total = now.total;
    m->free = now.free;
    m->used = now.used + now.reserved; /* v1 counts the reserved part as used */
    return NVML_SUCCESS;
}
VEOSIM_API int nvmlDeviceGetMemoryInfo_v2(nvml_device h, struct memory_v2 *m) {
    NVML_DEVICE(h, d);
    NVML_NEED(m);
    if (m->version != MEMORY_V2) return NVML_ARGUMENT_VERSION_MISMATCH;
    return measure(h, d, m);
}
VEOSIM_API int nvmlDeviceGetBAR1MemoryInfo(nvml_device h, struct memory_v1 *m) {
    NVML_DEVICE(h, d);
    NVML_NEED(m);
    m->total = 256ull << 20;
    m->used = 2ull << 20;
    m->free = m->total - m->used;
    return NVML_SUCCESS;
}

/* ---- processes ---- */

struct process_v3 {
    unsigned pid;
    unsigned long long used;
    unsigned gpu_instance, compute_instance;
};

static void describe(nvml_device h, const struct veosim_device *d,
                     const struct veosim_process *p, struct process_v3 *out) {
    int bytes = d->process_view != VEOSIM_NO_BYTES && p->used_bytes != VEOSIM_NA;
    out->pid = p->pid + (d->process_view == VEOSIM_FOREIGN_PIDS ? VEOSIM_FOREIGN_OFFSET : 0);
    out->used = bytes ? p->used_bytes + p->pending_bytes : VEOSIM_NA;
    out->gpu_instance = nvml_is_mig(h) ? 1 : 0xFFFFFFFFu;
    out->compute_instance = nvml_is_mig(h) ? 0 : 0xFFFFFFFFu;
}
static int list(nvml_device h, struct veosim_device *d, uint32_t kind, unsigned *n,
                struct process_v3 *out) {
    unsigned found = 0, room = *n;
    veosim_lock(veosim());
    (void)veosim_shown(d);
    for (int i = 0; i < VEOSIM_PROCESSES && d->process_view != VEOSIM_EMPTY; i++) {
        const struct veosim_process *p = &d->process[i];
        if (!p->pid || !(p->kind & kind)) continue;
        if (out && found < room) describe(h, d, p, &out[found]);
        found++;
    }
    veosim_unlock(veosim());
    *n = found;
    return found > room || (found && !out) ? NVML_INSUFFICIENT_SIZE : NVML_SUCCESS;
}
#define PROCESS_LIST(name, kind)                                                \
    VEOSIM_API int name(nvml_device h, unsigned *n, struct process_v3 *out) {   \
        NVML_DEVICE(h, d);                                                      \
        NVML_NEED(n);                                                           \
        return list(h, d, kind, n, out);                                        \
    }
PROCESS_LIST(nvmlDeviceGetComputeRunningProcesses_v3, VEOSIM_COMPUTE)
PROCESS_LIST(nvmlDeviceGetComputeRunningProcesses_v2, VEOSIM_COMPUTE)
PROCESS_LIST(nvmlDeviceGetGraphicsRunningProcesses_v3, VEOSIM_GRAPHICS)
PROCESS_LIST(nvmlDeviceGetGraphicsRunningProcesses_v2, VEOSIM_GRAPHICS)
PROCESS_LIST(nvmlDeviceGetMPSComputeRunningProcesses_v3, 0)

struct process_v1 {
    unsigned pid;
    unsigned long long used;
};
VEOSIM_API int nvmlDeviceGetComputeRunningProcesses(nvml_device h, unsigned *n,
                                                    struct process_v1 *out) {
    struct process_v3 found[VEOSIM_PROCESSES];
    unsigned count = VEOSIM_PROCESSES, room;
    int code;
    NVML_DEVICE(h, d);
    NVML_NEED(n);
    room = *n;
    code = list(h, d, VEOSIM_COMPUTE, &count, found);
    for (unsigned i = 0; out && i < count && i < room; i++)
        out[i] = (struct process_v1){found[i].pid, found[i].used};
    *n = count;
    return code ? code : count > room ? NVML_INSUFFICIENT_SIZE : NVML_SUCCESS;
}

/* ---- clocks, power, throughput ---- */

#define FIGURE(name, type, value)                  \
    VEOSIM_API int name(nvml_device h, type *out) { \
        NVML_DEVICE(h, d);                         \
        NVML_NEED(out);                            \
        *out = (type)(value);                      \
        return NVML_SUCCESS;                       \
    }
FIGURE(nvmlDeviceGetCurrentClocksEventReasons, unsigned long long, d->event_reasons)
FIGURE(nvmlDeviceGetCurrentClocksThrottleReasons, unsigned long long, d->event_reasons)
FIGURE(nvmlDeviceGetPowerUsage, unsigned, d->power_mw)
FIGURE(nvmlDeviceGetTotalEnergyConsumption, unsigned long long, d->energy_mj)
FIGURE(nvmlDeviceGetPersistenceMode, unsigned, 1)
FIGURE(nvmlDeviceGetPerformanceState, unsigned, 0)

struct utilization {
    unsigned gpu, memory;
};
VEOSIM_API int nvmlDeviceGetUtilizationRates(nvml_device h, struct utilization *out) {
    NVML_DEVICE(h, d);
    NVML_NEED(out);
    NVML_WHOLE(h);
    out->gpu = d->utilization_gpu;
    out->memory = d->utilization_memory;
    return NVML_SUCCESS;
}
static int clock_of(const uint32_t *clocks, unsigned kind, unsigned *out) {
    NVML_NEED(out && kind < 4);
    *out = clocks[kind];
    return NVML_SUCCESS;
}
VEOSIM_API int nvmlDeviceGetClockInfo(nvml_device h, unsigned kind, unsigned *out) {
    NVML_DEVICE(h, d);
    return clock_of(d->clock_mhz, kind, out);
}
VEOSIM_API int nvmlDeviceGetMaxClockInfo(nvml_device h, unsigned kind, unsigned *out) {
    NVML_DEVICE(h, d);
    return clock_of(d->max_clock_mhz, kind, out);
}
VEOSIM_API int nvmlDeviceGetPcieThroughput(nvml_device h, unsigned kind, unsigned *out) {
    NVML_DEVICE(h, d);
    NVML_NEED(out && kind < 2);
    NVML_WHOLE(h);
    *out = d->pcie_kib_s[kind];
    return NVML_SUCCESS;
}
VEOSIM_API int nvmlDeviceGetTemperature(nvml_device h, unsigned sensor, unsigned *out) {
    NVML_DEVICE(h, d);
    NVML_NEED(out && sensor == 0);
    *out = d->temperature_c;
    return NVML_SUCCESS;
}
struct temperature_v1 {
    unsigned version, sensor;
    int value;
};
VEOSIM_API int nvmlDeviceGetTemperatureV(nvml_device h, struct temperature_v1 *out) {
    NVML_DEVICE(h, d);
    NVML_NEED(out && out->sensor == 0);
    out->value = (int)d->temperature_c;
    return NVML_SUCCESS;
}

/* ---- what a Linux card of this kind does not have ---- */

VEOSIM_API int nvmlDeviceGetDriverModel_v2(nvml_device h, unsigned *a, unsigned *b) {
    NVML_DEVICE(h, d);
    (void)a, (void)b;
    return NVML_NOT_SUPPORTED;
}
VEOSIM_API int nvmlDeviceGetNvLinkState(nvml_device h, unsigned link, unsigned *out) {
    NVML_DEVICE(h, d);
    (void)link, (void)out;
    return NVML_NOT_SUPPORTED;
}
VEOSIM_API int nvmlDeviceGetNvLinkRemoteDeviceType(nvml_device h, unsigned link, unsigned *out) {
    NVML_DEVICE(h, d);
    (void)link, (void)out;
    return NVML_NOT_SUPPORTED;
}
VEOSIM_API int nvmlDeviceGetNvLinkRemotePciInfo_v2(nvml_device h, unsigned link, void *out) {
    NVML_DEVICE(h, d);
    (void)link, (void)out;
    return NVML_NOT_SUPPORTED;
}
VEOSIM_API int nvmlDeviceGetGpuFabricInfoV(nvml_device h, void *out) {
    NVML_DEVICE(h, d);
    (void)out;
    return NVML_NOT_SUPPORTED;
}
