/* See stub.h. Callbacks are called with none of the stub's locks held, a flush
 * calls them on another thread. */
#include "stub.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { HELD = 64, ERROR = 999, MAX_LIMIT = 12 };

typedef void (*request_fn)(uint8_t **, size_t *, size_t *);
typedef void (*complete_fn)(void *, uint32_t, uint8_t *, size_t, size_t);
typedef int (*walk_fn)(uint8_t *, size_t, void **);

typedef struct filled {
    uint8_t *bytes;
    size_t size, used;
} filled;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
/* Guarded by the lock: */
static uint32_t version = 28;
static int driver_started = 1, keeps, failing_kind;
static char failing[64], log_text[8192];
static uint64_t enabled_kinds;
static filled current, held[HELD];
static size_t held_count, dropped;
static request_fn request;
static complete_fn complete;
static uint64_t (*clock_now)(void);
static walk_fn real_walk;

/* ---- what every function does -------------------------------------------- */

/* Notes the call; returns whether the call must fail. */
static int fails(const char *function, int kind)
{
    size_t length;
    int result;

    pthread_mutex_lock(&lock);
    length = strlen(log_text);
    if (length + 64 < sizeof log_text &&
        strcmp(function, "cuptiActivityGetNextRecord") != 0 &&
        strcmp(function, "cuptiGetCallbackName") != 0)
        snprintf(log_text + length, sizeof log_text - length, "%s ", function);
    result = strcmp(failing, function) == 0 &&
                     (failing_kind == 0 || failing_kind == kind)
                 ? ERROR
                 : 0;
    pthread_mutex_unlock(&lock);
    return result;
}

/* Sizes by kind, as in NVIDIA's headers. */
static size_t size_of(int kind)
{
    switch (kind) {
    case 1:
        return version >= 130400 ? 112 : version >= 26 ? 96 : 88;
    case 2:
        return version >= 130400 ? 104 : 88;
    case 4:
    case 5:
        return 40;
    case 8:
        return version >= 130200 ? 192 : version >= 20 ? 184 : 176;
    case 9:
        return version >= 130100 ? 40
               : version >= 23   ? 32
               : version >= 22   ? 24
                                 : 16;
    case 10:
        return version >= 130400   ? 248
               : version >= 130300 ? 232
               : version >= 130100 ? 224
               : version >= 130000 ? 216
                                   : 208;
    case 17:
        return version >= 22 ? 56 : version >= 21 ? 48 : 40;
    case 22:
        return 96;
    case 36:
        return version >= 26 ? 56 : 24;
    case 38:
        return version >= 26 ? 56 : 40;
    case 39:
        return 24;
    default:
        return 0;
    }
}

static void hand_over(filled buffer)
{
    if (buffer.bytes != NULL)
        complete(NULL, 0, buffer.bytes, buffer.size, buffer.used);
}

/* ---- for tests ----------------------------------------------------------- */

static void stub_reset(uint32_t wanted, int driver_is_started)
{
    pthread_mutex_lock(&lock);
    version = wanted;
    driver_started = driver_is_started;
    keeps = failing_kind = 0;
    failing[0] = log_text[0] = 0;
    enabled_kinds = 0;
    pthread_mutex_unlock(&lock);
}

static void stub_fail(const char *function, int kind)
{
    pthread_mutex_lock(&lock);
    snprintf(failing, sizeof failing, "%s", function != NULL ? function : "");
    failing_kind = kind;
    pthread_mutex_unlock(&lock);
}

static filled take_current(void)
{
    filled taken;

    pthread_mutex_lock(&lock);
    taken = current;
    current = (filled){0};
    pthread_mutex_unlock(&lock);
    return taken;
}

static int stub_add(const void *record, size_t size)
{
    int kind = *(const int *)record, added = 0;
    size_t needed = size_of(kind), room;

    if (!(enabled_kinds >> kind & 1))
        return 0;
    if (current.bytes != NULL && current.size - current.used < needed)
        hand_over(take_current());
    if (current.bytes == NULL) {
        filled fresh = {0};
        size_t records;

        request(&fresh.bytes, &fresh.size, &records);
        pthread_mutex_lock(&lock);
        current = fresh;
        pthread_mutex_unlock(&lock);
    }
    pthread_mutex_lock(&lock);
    if (current.bytes != NULL) {
        room = size < needed ? size : needed;
        memset(current.bytes + current.used, 0, needed);
        memcpy(current.bytes + current.used, record, room);
        current.used += needed;
        added = 1;
    } else {
        dropped++;
    }
    pthread_mutex_unlock(&lock);
    return added;
}

static void stub_hold(void)
{
    filled taken = take_current();

    if (taken.bytes != NULL && held_count < HELD)
        held[held_count++] = taken;
}

static filled take_held(void)
{
    filled taken = {0};

    pthread_mutex_lock(&lock);
    if (held_count != 0)
        taken = held[--held_count];
    pthread_mutex_unlock(&lock);
    return taken;
}

static void stub_release(void)
{
    for (filled one = take_held(); one.bytes != NULL; one = take_held())
        hand_over(one);
}

static void stub_keep(int now)
{
    keeps = now;
}

static uint64_t stub_now(void)
{
    return clock_now != NULL ? clock_now() : 0;
}

static const char *stub_calls(void)
{
    return log_text;
}

static uint64_t stub_enabled(void)
{
    return enabled_kinds;
}

static int stub_walk_by(const char *path)
{
    void *library = path != NULL ? dlopen(path, RTLD_LAZY | RTLD_LOCAL) : NULL;

    real_walk = NULL;
    if (library != NULL)
        *(void **)(void *)&real_walk =
            dlsym(library, "cuptiActivityGetNextRecord");
    return path == NULL || real_walk != NULL;
}

static void stub_complete_foreign(void)
{
    static uint64_t foreign[8] = {17};

    complete(NULL, 0, (uint8_t *)foreign, sizeof foreign, 40);
}

const stub_control *stub_get(void)
{
    static const stub_control control = {stub_reset,
                                         stub_fail,
                                         stub_add,
                                         stub_hold,
                                         stub_release,
                                         stub_keep,
                                         stub_now,
                                         stub_calls,
                                         stub_enabled,
                                         stub_walk_by,
                                         stub_complete_foreign};

    return &control;
}

/* ---- libcupti ------------------------------------------------------------ */

int cuptiGetVersion(uint32_t *out)
{
    *out = version;
    return fails("cuptiGetVersion", 0);
}

int cuptiGetResultString(int result, const char **text)
{
    (void)result;
    *text = "CUPTI_ERROR_UNKNOWN";
    return fails("cuptiGetResultString", 0);
}

/* Like the real library: every number up to a limit has a name. */
int cuptiGetCallbackName(int domain, uint32_t id, const char **name)
{
    static const struct {
        int domain;
        uint32_t id;
        const char *name;
    } known[] = {
        {1, 301, "cuMemcpyHtoD_v2"},
        {1, 307, "cuLaunchKernel"},
        {1, 154, "cuCtxGetCurrent"},
        {2, 17, "cudaGetDevice_v3020"},
        {2, 41, "cudaMemcpyAsync_v3020"},
        {2, 51, "cudaMemsetAsync_v3020"},
        {2, 165, "cudaDeviceSynchronize_v3020"},
        {2, 211, "cudaLaunchKernel_v7000"},
        {2, 311, "cudaGraphLaunch_v10000"},
    };
    static char texts[2][800][24];

    if (fails("cuptiGetCallbackName", 0) || (domain != 1 && domain != 2) ||
        id >= (domain == 1 ? 701u : 445u))
        return ERROR;
    *name = texts[domain - 1][id];
    pthread_mutex_lock(&lock);
    snprintf(texts[domain - 1][id], sizeof texts[0][0],
             domain == 1 ? "cu%u" : "cuda%u_v12000", id);
    pthread_mutex_unlock(&lock);
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (known[i].domain == domain && known[i].id == id)
            *name = known[i].name;
    return 0;
}

int cuptiSetThreadIdType(int type)
{
    (void)type;
    return fails("cuptiSetThreadIdType", 0);
}

int cuptiActivityRegisterTimestampCallback(uint64_t (*now)(void))
{
    int failed = fails("cuptiActivityRegisterTimestampCallback", 0);

    if (!failed)
        clock_now = now;
    return failed;
}

int cuptiActivityRegisterCallbacks(request_fn ask, complete_fn give)
{
    int failed = fails("cuptiActivityRegisterCallbacks", 0);

    if (!failed) {
        request = ask;
        complete = give;
    }
    return failed;
}

int cuptiActivitySetAttribute(int attribute, size_t *size, void *value)
{
    (void)attribute, (void)size, (void)value;
    return fails("cuptiActivitySetAttribute", 0);
}

int cuptiActivityEnable(int kind)
{
    int failed = fails("cuptiActivityEnable", kind);

    if (!failed)
        enabled_kinds |= UINT64_C(1) << kind;
    return failed;
}

int cuptiActivityDisable(int kind)
{
    int failed = fails("cuptiActivityDisable", kind);

    if (!failed)
        enabled_kinds &= ~(UINT64_C(1) << kind);
    return failed;
}

static void *flush(void *unused)
{
    hand_over(take_current());
    return unused;
}

/* Waits for a thread that runs callbacks. If the caller holds a lock that this
 * thread needs, this never ends. */
int cuptiActivityFlushAll(uint32_t flag)
{
    int failed = fails("cuptiActivityFlushAll", 0);
    pthread_t thread;

    (void)flag;
    if (!failed && !keeps && pthread_create(&thread, NULL, flush, NULL) == 0)
        pthread_join(thread, NULL);
    return failed;
}

int cuptiActivityFlushPeriod(uint32_t ms)
{
    (void)ms;
    return fails("cuptiActivityFlushPeriod", 0);
}

int cuptiActivityGetNextRecord(uint8_t *buffer, size_t valid, void **record)
{
    uint8_t *at = *record;

    if (fails("cuptiActivityGetNextRecord", 0))
        return ERROR;
    if (real_walk != NULL)
        return real_walk(buffer, valid, record);
    at = at == NULL ? buffer : at + size_of(*(int *)*record);
    if (at >= buffer + valid)
        return MAX_LIMIT;
    if (size_of(*(int *)(void *)at) == 0)
        return 21; /* a record of an unknown kind */
    *record = at;
    return 0;
}

int cuptiActivityGetNumDroppedRecords(void *context, uint32_t stream,
                                      size_t *count)
{
    (void)context, (void)stream;
    pthread_mutex_lock(&lock);
    *count = dropped;
    dropped = 0;
    pthread_mutex_unlock(&lock);
    return fails("cuptiActivityGetNumDroppedRecords", 0);
}

int cuptiActivityEnableRuntimeApi(uint32_t id, uint8_t enable)
{
    (void)id, (void)enable;
    return fails("cuptiActivityEnableRuntimeApi", 0);
}

int cuptiActivityEnableDriverApi(uint32_t id, uint8_t enable)
{
    (void)id, (void)enable;
    return fails("cuptiActivityEnableDriverApi", 0);
}

/* ---- libcuda ------------------------------------------------------------- */

int cuDeviceGetCount(int *count)
{
    *count = 2;
    return driver_started ? 0 : 3; /* not initialized */
}

int cuDeviceGetName(char *name, int size, int device)
{
    snprintf(name, (size_t)size, "Stub GPU %d", device);
    return 0;
}

int cuDeviceTotalMem_v2(size_t *bytes, int device)
{
    (void)device;
    *bytes = (size_t)40 << 30;
    return 0;
}

/* Properties of an A100. */
int cuDeviceGetAttribute(int *value, int attribute, int device)
{
    static const int values[][2] = {
        {1, 1024},    {8, 49152}, {10, 32},    {12, 65536},  {16, 108},
        {39, 2048},   {75, 8},    {76, 0},     {81, 167936}, {82, 65536},
        {97, 166912}, {106, 32},  {111, 1024},
    };

    (void)device;
    for (size_t i = 0; i < sizeof values / sizeof *values; i++)
        if (values[i][0] == attribute) {
            *value = values[i][1];
            return 0;
        }
    return 1;
}
