/* The flight recorder's thread: waits for requests, watches the process's
 * memory if asked to, and writes snapshots. It records nothing, takes no
 * signals, and uses sessions only through their public interface. A request is
 * a bit in one word, which a signal handler can set; a reason that is requested
 * twice before the thread serves it is one request. */

#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/escape.h"
#include "flight.h"
#include "os/os.h"

enum {
    POLL_NS = 100 * 1000 * 1000,
    /* limit for the number of existing files that are skipped */
    NUMBERS_MAX = 100000,
    NAME_MORE = 32 /* for "-snapshot<n>.vst" and its NUL */
};

typedef struct reason {
    char *text; /* the reason's text as given */
    char *json; /* the text as a JSON string */
    uint64_t rss_limit;
    bool over;   /* used by the helper: the limit was crossed */
    bool served; /* used by the helper: this reason has a snapshot */
} reason;

struct vst_flight {
    char *stem;
    bool overwrite;
    bool watches_rss;
    uint64_t window_ns;
    reason *reasons;
    size_t reason_count;
    const vst_session *session; /* valid while armed */
    pthread_t helper;
    uint32_t pid; /* process of the helper; 0 if not armed */

    uint32_t wake;    /* an event of os.h */
    uint64_t pending; /* atomic: one bit for each reason */
    bool armed;       /* atomic */
    bool full;        /* atomic: max_snapshots were written */
    bool writing;     /* atomic, relaxed: a hint for vst__flight_pause */
    bool ending;      /* atomic: the helper ends when nothing is pending */
    uint64_t refused; /* atomic, relaxed: a plain count */

    /* written by the helper; any thread may read the first `count` */
    vst_flight_snapshot *snapshots;
    size_t count; /* atomic */
    size_t max;
    unsigned number; /* used by the helper: number of the last file */
};

/* ---- requests ------------------------------------------------------------ */

/* Sets the bit before it wakes the helper; pairs with the exchange in
 * next_request. */
void vst__flight_request(vst_flight *flight, uint32_t index)
{
    uint64_t bit = UINT64_C(1) << (index % VST_FLIGHT_REASONS_MAX);

    if (index >= flight->reason_count ||
        !__atomic_load_n(&flight->armed, __ATOMIC_ACQUIRE))
        return;
    if (__atomic_load_n(&flight->full, __ATOMIC_RELAXED))
        __atomic_add_fetch(&flight->refused, 1, __ATOMIC_RELAXED);
    else if (!(__atomic_fetch_or(&flight->pending, bit, __ATOMIC_ACQ_REL) &
               bit))
        vst__os_event_set(&flight->wake);
}

/* ---- writing ------------------------------------------------------------- */

/* Returns the text as a JSON string, NULL if memory runs out. */
static char *snapshot_quoted(const char *text)
{
    size_t size = strlen(text) * VST_JSON_ESCAPE_MAX + VST_JSON_ESCAPE_MAX + 3;
    char *json = malloc(size), *at = json;

    if (json == NULL)
        return NULL;
    *at++ = '"';
    at = vst__json_escape(at, json + size, &text, text + strlen(text));
    memcpy(at, "\"", 2);
    return json;
}

/* Writes a file under the next number that no file has. */
static vst_status write_numbered(vst_flight *flight, const reason *why,
                                 char *path, size_t size, vst_error *error)
{
    size_t note_size = strlen(why->json) + 64;
    char *note = malloc(note_size);
    vst_status status = VST_E_EXISTS;

    if (note == NULL)
        return vst_error_set(error, VST_E_NOMEM, 0, 0);
    for (int i = 0; status == VST_E_EXISTS && i < NUMBERS_MAX; i++) {
        unsigned number = ++flight->number;
        snprintf(path, size, "%s-snapshot%u.vst", flight->stem, number);
        snprintf(note, note_size, "{\"reason\": %s, \"number\": %u}", why->json,
                 number);
        status = vst_session_snapshot(flight->session, path, flight->overwrite,
                                      flight->window_ns, note, error);
    }
    free(note);
    return status;
}

/* Writes a snapshot. `count` is stored last; pairs with vst__flight_count. */
static void write_snapshot(vst_flight *flight, const reason *why)
{
    vst_flight_snapshot *snapshot = &flight->snapshots[flight->count];
    size_t size = strlen(flight->stem) + NAME_MORE;
    char *path = malloc(size);

    snapshot->reason = why->text;
    if (path == NULL)
        vst_error_set(&snapshot->error, VST_E_NOMEM, 0, 0);
    else
        write_numbered(flight, why, path, size, &snapshot->error);
    snapshot->path = path != NULL ? path : "";
    __atomic_store_n(&flight->count, flight->count + 1, __ATOMIC_RELEASE);
    if (flight->count == flight->max)
        __atomic_store_n(&flight->full, true, __ATOMIC_RELAXED);
}

/* ---- the helper ---------------------------------------------------------- */

static void look_at_rss(vst_flight *flight)
{
    uint64_t resident = vst__os_resident_now().bytes;

    for (size_t i = 0; i < flight->reason_count; i++) {
        reason *why = &flight->reasons[i];

        if (why->rss_limit == 0 || resident == 0)
            continue;
        if (!why->over && resident > why->rss_limit)
            vst__flight_request(flight, (uint32_t)i);
        if (resident > why->rss_limit)
            why->over = true;
        else if (resident < why->rss_limit - why->rss_limit / 10)
            why->over = false;
    }
}

/* Sleeps until there may be something to do. */
static void wait_for_request(vst_flight *flight)
{
    vst__os_event_wait(&flight->wake,
                       flight->watches_rss ? POLL_NS : UINT64_MAX);
}

/* Takes one reason from the word; returns NULL if nothing is pending. Pairs
 * with vst__flight_request. */
static reason *next_request(vst_flight *flight)
{
    uint64_t pending = __atomic_load_n(&flight->pending, __ATOMIC_ACQUIRE);
    int index;

    if (pending == 0)
        return NULL;
    index = __builtin_ctzll(pending);
    __atomic_fetch_and(&flight->pending, ~(UINT64_C(1) << index),
                       __ATOMIC_ACQ_REL);
    return &flight->reasons[index];
}

/* Returns whether this reason may write another snapshot. The last places are
 * kept for reasons that have none yet, so a reason that comes true all the time
 * cannot use up the others' places. */
static bool has_place(const vst_flight *flight, const reason *why)
{
    size_t left = flight->max - flight->count, kept = 0;

    for (size_t i = 0; i < flight->reason_count; i++)
        kept += !flight->reasons[i].served;
    return left > (why->served ? kept : 0);
}

/* The helper's function. It reads `ending` first, so it still serves every
 * request made before that. */
static void *snapshot_help(void *argument)
{
    vst_flight *flight = argument;
    bool ending = false;

    vst__os_thread_defer();
    while (!ending) {
        reason *why;

        ending = __atomic_load_n(&flight->ending, __ATOMIC_ACQUIRE);
        if (flight->watches_rss && !ending)
            look_at_rss(flight);
        while ((why = next_request(flight)) != NULL) {
            __atomic_store_n(&flight->writing, true, __ATOMIC_RELAXED);
            if (has_place(flight, why)) {
                write_snapshot(flight, why);
                why->served = true;
            } else {
                __atomic_add_fetch(&flight->refused, 1, __ATOMIC_RELAXED);
            }
        }
        __atomic_store_n(&flight->writing, false, __ATOMIC_RELAXED);
        if (!ending)
            wait_for_request(flight);
    }
    return NULL;
}

static int start_helper(vst_flight *flight)
{
    return vst__os_helper_start(&flight->helper, "vestige-flight",
                                snapshot_help, flight);
}

vst_status vst__flight_arm(vst_flight *flight, const vst_session *session)
{
    if (flight->pid != 0)
        return VST_E_STATE;
    flight->session = session;
    flight->ending = false;
    flight->pending = 0;
    __atomic_store_n(&flight->armed, true, __ATOMIC_RELEASE);
    if (start_helper(flight) != 0) {
        __atomic_store_n(&flight->armed, false, __ATOMIC_RELEASE);
        return VST_E_NOMEM;
    }
    flight->pid = vst__os_process_id();
    return VST_OK;
}

static void end_helper(vst_flight *flight)
{
    if (flight->pid == vst__os_process_id()) {
        __atomic_store_n(&flight->ending, true, __ATOMIC_RELEASE);
        vst__os_event_set(&flight->wake);
        pthread_join(flight->helper, NULL);
    }
    flight->pid = 0;
}

void vst__flight_disarm(vst_flight *flight)
{
    __atomic_store_n(&flight->armed, false, __ATOMIC_RELEASE);
    if (flight->pid != 0)
        end_helper(flight);
}

bool vst__flight_pause(vst_flight *flight)
{
    if (flight->pid == 0 ||
        __atomic_load_n(&flight->writing, __ATOMIC_RELAXED) ||
        __atomic_load_n(&flight->pending, __ATOMIC_RELAXED) != 0)
        return false;
    end_helper(flight);
    return true;
}

void vst__flight_resume(vst_flight *flight)
{
    if (flight->pid != 0 || !flight->armed)
        return;
    flight->ending = false;
    if (start_helper(flight) == 0)
        flight->pid = vst__os_process_id();
}

/* ---- creating and reading a flight recorder ------------------------------ */

static vst_status copy_options(vst_flight *flight,
                               const vst_flight_options *options)
{
    flight->stem = strdup(options->stem);
    flight->overwrite = options->overwrite;
    flight->window_ns = options->window_ns;
    flight->max = options->max_snapshots;
    flight->full = flight->max == 0;
    flight->snapshots = calloc(flight->max + 1, sizeof *flight->snapshots);
    flight->reasons =
        calloc(options->reason_count + 1, sizeof *flight->reasons);
    if (flight->stem == NULL || flight->snapshots == NULL ||
        flight->reasons == NULL)
        return VST_E_NOMEM;
    flight->reason_count = options->reason_count;
    for (size_t i = 0; i < options->reason_count; i++) {
        reason *why = &flight->reasons[i];

        why->text = strdup(options->reasons[i].text);
        why->json = snapshot_quoted(options->reasons[i].text);
        why->rss_limit = options->reasons[i].rss_limit;
        flight->watches_rss |= why->rss_limit != 0;
        if (why->text == NULL || why->json == NULL)
            return VST_E_NOMEM;
    }
    return VST_OK;
}

vst_status vst__flight_create(const vst_flight_options *options,
                              vst_flight **out)
{
    vst_flight *flight;
    vst_status status;

    if (options->reason_count > VST_FLIGHT_REASONS_MAX)
        return VST_E_ARGUMENT;
    flight = calloc(1, sizeof *flight);
    if (flight == NULL)
        return VST_E_NOMEM;
    status = copy_options(flight, options);
    if (status != VST_OK) {
        vst__flight_destroy(flight);
        return status;
    }
    *out = flight;
    return VST_OK;
}

void vst__flight_destroy(vst_flight *flight)
{
    if (flight == NULL)
        return;
    vst__flight_disarm(flight);
    for (size_t i = 0; i < flight->count; i++)
        if (flight->snapshots[i].path[0] != 0)
            free((char *)(uintptr_t)flight->snapshots[i].path);
    for (size_t i = 0; i < flight->reason_count; i++) {
        free(flight->reasons[i].text);
        free(flight->reasons[i].json);
    }
    free(flight->reasons);
    free(flight->snapshots);
    free(flight->stem);
    free(flight);
}

size_t vst__flight_count(const vst_flight *flight)
{
    return __atomic_load_n(&flight->count, __ATOMIC_ACQUIRE);
}

const vst_flight_snapshot *vst__flight_at(const vst_flight *flight,
                                          size_t index)
{
    return index < vst__flight_count(flight) ? &flight->snapshots[index] : NULL;
}

uint64_t vst__flight_refused(const vst_flight *flight)
{
    return __atomic_load_n(&flight->refused, __ATOMIC_RELAXED);
}
