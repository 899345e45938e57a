/* Ids of names in the recording: names of kernels, of copies and similar
 * activities, and of calls. Any thread enters; the collector's lock guards the
 * tables. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "collector.h"
#include "library.h"

typedef struct cupti_name {
    uint64_t hash;
    vst_id id;
    char text[]; /* the text that CUPTI returns */
} cupti_name_entry;

enum { NAMES_MAX = 1 << 20, NAME_BYTES = 256 };

/* ---- the table ----------------------------------------------------------- */

static uint64_t names_hash_of(const char *text)
{
    uint64_t hash = UINT64_C(0xcbf29ce484222325);

    for (; *text != 0; text++)
        hash = (hash ^ (unsigned char)*text) * UINT64_C(0x100000001b3);
    return hash;
}

/* Returns the slot of a text, or the empty slot where it belongs. */
static cupti_name_entry **names_find(const cupti_names *names, const char *text,
                                     uint64_t hash)
{
    size_t mask = names->capacity - 1;

    for (size_t i = hash & mask;; i = (i + 1) & mask) {
        cupti_name_entry **slot = &names->slots[i];

        if (*slot == NULL ||
            ((*slot)->hash == hash && strcmp((*slot)->text, text) == 0))
            return slot;
    }
}

/* Keeps at least half of the slots empty. */
static bool names_make_room(cupti_names *names)
{
    cupti_names larger = {.count = names->count,
                          .capacity =
                              names->capacity != 0 ? names->capacity * 2 : 256};

    if (names->count < names->capacity / 2)
        return true;
    if (names->count >= NAMES_MAX)
        return false;
    larger.slots = calloc(larger.capacity, sizeof *larger.slots);
    if (larger.slots == NULL)
        return false;
    for (size_t i = 0; i < names->capacity; i++)
        if (names->slots[i] != NULL)
            *names_find(&larger, names->slots[i]->text, names->slots[i]->hash) =
                names->slots[i];
    free(names->slots);
    *names = larger;
    return true;
}

void cupti_names_free(cupti_names *names)
{
    for (size_t i = 0; i < names->capacity; i++)
        free(names->slots[i]);
    free(names->slots);
}

static vst_id names_define(cupti_collector *self, const char *text)
{
    const vst_definition definition = {
        .kind = (vst_definition_kind)VST_DEF_ACTIVITY,
        .name = text,
        .name_len = (uint32_t)strlen(text),
        .file = "",
    };
    vst_id id = 0;

    vst_recording_define_id(self->recording, &definition, &id);
    return id;
}

/* Returns the id that the text has; 0 if none yet. */
static vst_id names_look_up(cupti_collector *self, const char *text,
                            uint64_t hash)
{
    cupti_name_entry **slot;
    vst_id id = 0;

    pthread_mutex_lock(&self->lock);
    if (self->names.capacity != 0) {
        slot = names_find(&self->names, text, hash);
        id = *slot != NULL ? (*slot)->id : 0;
    }
    pthread_mutex_unlock(&self->lock);
    return id;
}

/* Gives the text an id; `shown` is the name that readers see. */
static vst_id names_add(cupti_collector *self, const char *text, uint64_t hash,
                        const char *shown)
{
    size_t size = strlen(text) + 1;
    cupti_name_entry **slot, *entry;
    vst_id id = 0;

    pthread_mutex_lock(&self->lock);
    if (names_make_room(&self->names)) {
        slot = names_find(&self->names, text, hash);
        if (*slot == NULL) {
            entry = malloc(sizeof *entry + size);
            if (entry != NULL) {
                *entry = (cupti_name_entry){hash, names_define(self, shown)};
                memcpy(entry->text, text, size);
                *slot = entry;
                self->names.count++;
            }
        }
        id = *slot != NULL ? (*slot)->id : 0;
    }
    pthread_mutex_unlock(&self->lock);
    return id;
}

vst_id cupti_name(cupti_collector *self, const char *text)
{
    uint64_t hash = names_hash_of(text);
    vst_id id = names_look_up(self, text, hash);

    return id != 0 ? id : names_add(self, text, hash, text);
}

/* ---- kernels ------------------------------------------------------------- */

typedef char *(*demangle_fn)(const char *mangled, char *buffer, size_t *size,
                             int *status);

/* Finds __cxa_demangle in the program's C++ library, which programs that use
 * CUDA have; NULL if there is none. */
static demangle_fn find_demangle(void)
{
    static demangle_fn found;
    void *library;

    if (found == NULL) {
        *(void **)(void *)&found = dlsym(RTLD_DEFAULT, "__cxa_demangle");
        library = found == NULL
                      ? dlopen("libstdc++.so.6", RTLD_LAZY | RTLD_NOLOAD)
                      : NULL;
        if (library != NULL)
            *(void **)(void *)&found = dlsym(library, "__cxa_demangle");
    }
    return found;
}

vst_id cupti_kernel_name(cupti_collector *self, const char *mangled)
{
    const char *text = mangled != NULL ? mangled : "unnamed kernel";
    uint64_t hash = names_hash_of(text);
    vst_id id = names_look_up(self, text, hash);
    demangle_fn demangle;
    char *shown = NULL;
    int status = 0;

    if (id != 0)
        return id;
    demangle = find_demangle();
    if (demangle != NULL && strncmp(text, "_Z", 2) == 0)
        shown = demangle(text, NULL, NULL, &status);
    id = names_add(self, text, hash, shown != NULL ? shown : text);
    free(shown);
    return id;
}

/* ---- calls --------------------------------------------------------------- */

/* Calls that programs make all the time and that say little; torch.profiler
 * leaves out these calls, too. */
static const char *const noisy[] = {
    "cudaGetDevice",
    "cudaSetDevice",
    "cudaGetLastError",
    "cudaEventCreate",
    "cudaEventCreateWithFlags",
    "cudaEventDestroy",
};

/* Noisy calls of the driver, which libcupti can silence. Other unwanted calls
 * are left out when records are read. */
static const char *const noisy_of_driver[] = {
    "cuCtxGetCurrent", "cuDevicePrimaryCtxGetState", "cuKernelGetAttribute"};

/* Beginnings of names of wanted calls of the driver: launches, and calls about
 * memory. All other calls of the driver come from the runtime, whose calls are
 * recorded. */
static const char *const wanted_of_driver[] = {
    "cuLaunch",
    "cuGraphLaunch",
    "cuMemcpy",
    "cuMemset",
    "cuMemCreate",
    "cuMemMap",
    "cuMemUnmap",
    "cuMemRelease",
    "cuMemExportToShareableHandle",
    "cuMemImportFromShareableHandle",
};

/* Shortens cudaLaunchKernel_v7000 to cudaLaunchKernel; leaves cuMemcpy_v2. */
static void cut_version(char *name)
{
    size_t length = strlen(name), digits = 0;

    while (digits < length && name[length - 1 - digits] >= '0' &&
           name[length - 1 - digits] <= '9')
        digits++;
    if (digits >= 4 && length >= digits + 2 &&
        memcmp(name + length - digits - 2, "_v", 2) == 0)
        name[length - digits - 2] = 0;
}

#define COUNT(list) (sizeof(list) / sizeof *(list))

static bool is_noisy(int kind, const char *name)
{
    const char *const *list = kind == CUPTI_RUNTIME ? noisy : noisy_of_driver;
    size_t count =
        kind == CUPTI_RUNTIME ? COUNT(noisy) : COUNT(noisy_of_driver);

    for (size_t i = 0; i < count; i++)
        if (strcmp(name, list[i]) == 0)
            return true;
    return false;
}

static bool names_is_wanted(int kind, const char *name)
{
    if (kind == CUPTI_RUNTIME)
        return !is_noisy(kind, name);
    for (size_t i = 0; i < COUNT(wanted_of_driver); i++)
        if (strncmp(name, wanted_of_driver[i], strlen(wanted_of_driver[i])) ==
            0)
            return true;
    return false;
}

/* Returns false if libcupti has no name for the call. */
static bool names_name_of(int kind, uint32_t callback, char *name)
{
    int domain =
        kind == CUPTI_DRIVER ? CUPTI_DOMAIN_DRIVER : CUPTI_DOMAIN_RUNTIME;
    const char *found = NULL;

    if (cupti.cuptiGetCallbackName(domain, callback, &found) != CUPTI_OK ||
        found == NULL || found[0] == 0)
        return false;
    snprintf(name, NAME_BYTES, "%s", found);
    cut_version(name);
    return true;
}

#define UNWANTED UINT32_MAX

vst_id cupti_call_name(cupti_collector *self, int kind, uint32_t callback)
{
    char name[NAME_BYTES] = "INVALID";
    vst_id *place = NULL, id = 0;

    if (callback < CUPTI_CALLBACKS)
        place = &self->calls[kind == CUPTI_RUNTIME][callback];
    if (place != NULL)
        id = __atomic_load_n(place, __ATOMIC_RELAXED);
    if (id == 0) {
        bool is_named = names_name_of(kind, callback, name);

        if (!is_named)
            cupti_note_once(self, CUPTI_TROUBLE_NAMES,
                            "cuptiGetCallbackName failed: some calls are "
                            "shown as INVALID");
        id = names_is_wanted(kind, name) || !is_named ? cupti_name(self, name)
                                                      : UNWANTED;
        if (place != NULL)
            __atomic_store_n(place, id, __ATOMIC_RELAXED);
    }
    return id == UNWANTED ? 0 : id;
}

int cupti_silence_calls(void)
{
    static const struct {
        int kind;
        int (**silence)(uint32_t callback, uint8_t enable);
    } domains[] = {
        {CUPTI_RUNTIME, &cupti.cuptiActivityEnableRuntimeApi},
        {CUPTI_DRIVER, &cupti.cuptiActivityEnableDriverApi},
    };
    char name[NAME_BYTES];
    int failed = CUPTI_OK;

    for (size_t i = 0; i < COUNT(domains); i++) {
        if (*domains[i].silence == NULL)
            continue;
        for (uint32_t callback = 1; callback < CUPTI_CALLBACKS; callback++) {
            int result;

            if (!names_name_of(domains[i].kind, callback, name))
                break;
            if (!is_noisy(domains[i].kind, name))
                continue;
            result = (*domains[i].silence)(callback, 0);
            failed = failed == CUPTI_OK ? result : failed;
        }
    }
    return failed;
}
