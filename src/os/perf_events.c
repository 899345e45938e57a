/* Switches of a thread, from Linux's perf events: one software event that
 * counts nothing and reports each switch, and a ring of memory into which the
 * kernel writes the reports. The event needs no descriptor once the ring is
 * mapped, so the program can still open as many files as before. A forked child
 * does not have the mapping. The kernel writes at data_head; we read up to
 * data_head and store data_tail. One thread at a time reads a ring. Nothing is
 * allocated. */
#include "os/os.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* The shortest ring that one record can overrun: a record of lost switches, and
 * a switch. */
enum { LONGEST_RECORDS = 64 };

/* The part of a record that is read; the longest record here is one of lost
 * switches. */
typedef struct record {
    struct perf_event_header header;
    uint64_t words[3];
} record;

static long open_event(uint64_t tid)
{
    struct perf_event_attr attr;

    memset(&attr, 0, sizeof attr);
    attr.size = sizeof attr;
    attr.type = PERF_TYPE_SOFTWARE;
    attr.config = PERF_COUNT_SW_DUMMY;
    attr.context_switch = 1;
    attr.sample_id_all = 1;
    attr.sample_type = PERF_SAMPLE_TIME;
    attr.use_clockid = 1;
    attr.clockid = CLOCK_MONOTONIC;
    attr.exclude_kernel = 1; /* without this, the event needs a privilege */
    attr.exclude_hv = 1;
    attr.watermark = 1; /* no thread waits for the event */
    attr.wakeup_watermark = UINT32_MAX;
    return syscall(SYS_perf_event_open, &attr, (pid_t)tid, -1, -1,
                   PERF_FLAG_FD_CLOEXEC);
}

int vst__os_switches_open(uint64_t tid, unsigned pages,
                          vst__os_switch_ring *ring)
{
    int error = errno, failed = 0;
    long fd = open_event(tid);
    void *memory = MAP_FAILED;

    *ring = (vst__os_switch_ring){NULL, 0};
    if (fd >= 0) {
        ring->size = (1 + pages) * vst__os_page_size();
        memory = mmap(NULL, ring->size, PROT_READ | PROT_WRITE, MAP_SHARED,
                      (int)fd, 0);
    }
    if (memory != MAP_FAILED)
        ring->memory = memory;
    else
        failed = errno;
    if (fd >= 0)
        close((int)fd);
    errno = error;
    return failed;
}

void vst__os_switches_close(vst__os_switch_ring *ring)
{
    if (ring->memory != NULL)
        vst__os_unmap(ring->memory, ring->size);
    ring->memory = NULL;
}

/* Copies a record, which may continue at the ring's beginning. Records are
 * whole words. */
static void copy_record(const unsigned char *data, uint64_t size, uint64_t at,
                        record *out)
{
    uint64_t bytes = sizeof out->header;

    memset(out, 0, sizeof *out);
    memcpy(&out->header, data + at % size, sizeof out->header);
    if (out->header.size < sizeof *out)
        bytes = out->header.size;
    else
        bytes = sizeof *out;
    for (uint64_t i = sizeof out->header; i + 8 <= bytes; i += 8)
        memcpy((unsigned char *)out + i, data + (at + i) % size, 8);
}

static void perf_report(const record *found, vst__os_switch_fn fn, void *ctx)
{
    uint16_t misc = found->header.misc;

    if (found->header.type == PERF_RECORD_LOST)
        fn(ctx, VST_SWITCH_LOST, found->words[1]);
    else if (found->header.type != PERF_RECORD_SWITCH)
        return;
    else if (!(misc & PERF_RECORD_MISC_SWITCH_OUT))
        fn(ctx, VST_SWITCH_IN, found->words[0]);
    else if (misc & PERF_RECORD_MISC_SWITCH_OUT_PREEMPT)
        fn(ctx, VST_SWITCH_PREEMPTED, found->words[0]);
    else
        fn(ctx, VST_SWITCH_OUT, found->words[0]);
}

/* A ring that was full may have lost switches. The kernel reports that only
 * with the next switch. */
unsigned vst__os_switches_read(vst__os_switch_ring *ring, vst__os_switch_fn fn,
                               void *ctx)
{
    struct perf_event_mmap_page *page = ring->memory;
    const unsigned char *data = (unsigned char *)ring->memory;
    uint64_t head = __atomic_load_n(&page->data_head, __ATOMIC_ACQUIRE);
    uint64_t tail = page->data_tail, size = page->data_size;
    uint64_t used = head - tail;

    data += page->data_offset;
    while (tail < head) {
        record found;

        copy_record(data, size, tail, &found);
        if (found.header.size < sizeof found.header)
            break; /* the kernel writes no such record */
        perf_report(&found, fn, ctx);
        tail += found.header.size;
    }
    if (used + LONGEST_RECORDS > size)
        fn(ctx, VST_SWITCH_LOST, 0);
    __atomic_store_n(&page->data_tail, head, __ATOMIC_RELEASE);
    return (unsigned)(used * 100 / size);
}

bool vst__os_thread_is_here(uint64_t tid)
{
    int error = errno;
    bool is_here =
        tid != 0 && syscall(SYS_tgkill, getpid(), (pid_t)tid, 0) == 0;

    errno = error;
    return is_here;
}

uint64_t vst__os_thread_cpu_ns(uint64_t tid)
{
    /* the clock id that pthread_getcpuclockid() makes of a thread id */
    clockid_t clock = (clockid_t)(~(unsigned)tid << 3 | 6u);
    struct timespec now = {0, 0};
    int error = errno;

    if (clock_gettime(clock, &now) != 0)
        errno = error;
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}
