/* Work: done at once, unless a device's events are held; then when somebody waits. */
#include "core.h"
#include <string.h>

static uint64_t submitted[VEOSIM_DEVICES], done[VEOSIM_DEVICES];

uint64_t core_submit(void) {
    return __atomic_add_fetch(&submitted[core_current()], 1, __ATOMIC_RELAXED);
}
int core_is_done(int device, uint64_t work) {
    return !core_device(device)->hold_events || work <= done[device];
}
int core_is_idle(int device) { return core_is_done(device, submitted[device]); }
void core_synchronize(int device) {
    done[device] = submitted[device];
    core_pool_trim(device, core_pool(device)->threshold);
}
void core_launch(void) {
    core_submit();
    __atomic_fetch_add(&core_device(core_current())->launches, 1, __ATOMIC_RELAXED);
}

void core_uuid(unsigned char out[16], const char *text) {
    int digits = 0;
    memset(out, 0, 16);
    for (text += 4; *text && digits < 32; text++) { /* after "GPU-" or "MIG-" */
        unsigned value = *text <= '9' ? (unsigned)(*text - '0') : (unsigned)(*text | 32) - 'a' + 10;
        if (*text == '-') continue;
        out[digits / 2] |= (unsigned char)(value << (digits % 2 ? 0 : 4));
        digits++;
    }
}
