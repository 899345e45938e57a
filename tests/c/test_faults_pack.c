/* Packs, unpacks and reads packed files, again and again, each time with
 * another failing call of the core. Each failure is reported, and the existing
 * file stays unchanged. */
#include "faults.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include <vestige/trace.h>

#include "check.h"
#include "store/compress.h"
#include "trace_builder.h"

enum { SKIPPED = 77, FAULTS_MAX = 1000 };

/* The status that reports a failure of each kind. */
static const struct {
    vst_status status;
    int sys_errno;
} told[FAULT_KINDS] = {
    [FAULT_MEMORY] = {VST_E_NOMEM, ENOMEM},
    [FAULT_PWRITE] = {VST_E_NOSPACE, ENOSPC},
    [FAULT_PREAD] = {VST_E_IO, EIO},
    [FAULT_OPEN] = {VST_E_IO, EMFILE},
    [FAULT_RENAME] = {VST_E_IO, EIO},
    [FAULT_FSYNC] = {VST_E_IO, EIO},
};

static char folder[] = "/tmp/vestige-faults-pack-XXXXXX";
static char path[64];
static builder trace_file;
static unsigned char *packed;
static size_t packed_size;

/* ---- files --------------------------------------------------------------- */

static void put(const void *bytes, size_t size)
{
    FILE *file = fopen(path, "wb");

    if (!CHECK(file != NULL && fwrite(bytes, 1, size, file) == size))
        exit(2);
    fclose(file);
}

static unsigned char *get(size_t *size)
{
    unsigned char *bytes = malloc(1 << 20);
    FILE *file = fopen(path, "rb");

    if (!CHECK(bytes != NULL && file != NULL))
        exit(2);
    *size = fread(bytes, 1, 1 << 20, file);
    fclose(file);
    return bytes;
}

/* Checks that the folder has only one file, with these bytes. */
static void check_holds(const void *bytes, size_t size)
{
    size_t got;
    unsigned char *found = get(&got);
    DIR *entries = opendir(folder);
    struct dirent *entry;
    int count = 0;

    CHECK(got == size && memcmp(found, bytes, size) == 0);
    free(found);
    while ((entry = readdir(entries)) != NULL)
        count += entry->d_name[0] != '.';
    closedir(entries);
    CHECK_INT(count, 1);
}

/* ---- what is done -------------------------------------------------------- */

static vst_status pack(vst_error *error)
{
    vst_pack_options options = {.overwrite = true};

    return vst_trace_pack(path, path, &options, error);
}

static vst_status unpack(vst_error *error)
{
    vst_pack_options options = {.overwrite = true};

    return vst_trace_unpack(path, path, &options, error);
}

static vst_status read_packed(vst_error *error)
{
    vst_sink sink = {0};
    vst_trace_info info;
    vst_trace *trace;
    vst_status status = vst_trace_open(path, &trace, error);

    if (status != VST_OK)
        return status;
    vst_trace_get_info(trace, &info);
    CHECK_INT(info.bytes, trace_file.size);
    CHECK_INT(info.damaged_at, 0);
    status = vst_trace_replay(trace, VST_WINDOW_ALL, NULL, &sink, error);
    vst_trace_close(trace);
    return status;
}

/* ---- one fault after the other ------------------------------------------- */

/* Makes the n-th call fail for every n. The file holds `before` until the
 * operation works, then `after`. */
static void try_all(fault_kind kind, vst_status (*function)(vst_error *),
                    const void *before, size_t before_size, const void *after,
                    size_t after_size)
{
    bool failed = true;
    unsigned n;

    for (n = 1; failed && n < FAULTS_MAX; n++) {
        vst_error error = {VST_OK, 0, 0};
        vst_status status;
        int bad = checks_bad;

        put(before, before_size);
        faults_begin(kind, n, false, told[kind].sys_errno);
        status = function(&error);
        failed = faults_end();
        if (status == VST_OK) {
            CHECK(!failed);
            check_holds(after, after_size);
        } else {
            CHECK(failed);
            CHECK_INT(status, told[kind].status);
            CHECK_INT(error.status, status);
            if (kind != FAULT_MEMORY)
                CHECK_INT(error.sys_errno, told[kind].sys_errno);
            check_holds(before, before_size);
        }
        if (bad != checks_bad)
            printf("# with fault %u of kind %d\n", n, (int)kind);
    }
    CHECK(n > 2 && n < FAULTS_MAX);
}

static void packing_fails_and_the_file_is_what_it_was(void)
{
    static const fault_kind kinds[] = {FAULT_MEMORY, FAULT_PREAD, FAULT_PWRITE,
                                       FAULT_OPEN,   FAULT_FSYNC, FAULT_RENAME};

    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
        try_all(kinds[i], pack, trace_file.bytes, trace_file.size, packed,
                packed_size);
}

static void unpacking_fails_and_the_file_is_what_it_was(void)
{
    static const fault_kind kinds[] = {FAULT_MEMORY, FAULT_PREAD, FAULT_PWRITE,
                                       FAULT_OPEN,   FAULT_FSYNC, FAULT_RENAME};

    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
        try_all(kinds[i], unpack, packed, packed_size, trace_file.bytes,
                trace_file.size);
}

static void reading_fails_and_says_so(void)
{
    static const fault_kind kinds[] = {FAULT_MEMORY, FAULT_PREAD, FAULT_OPEN};

    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
        try_all(kinds[i], read_packed, packed, packed_size, packed,
                packed_size);
}

/* ---- the file ------------------------------------------------------------ */

static void build(void)
{
    builder_init(&trace_file);
    for (unsigned i = 0; i < 5; i++) {
        builder_definitions(&trace_file, 1);
        builder_window(&trace_file, 0, 1000, 90000);
        builder_define(&trace_file, VST_DEF_PYTHON, 1 + i, "f", "app.py", 3);
        builder_records(&trace_file, 0, 1 + i, 1000 + i * 10000, 1);
        builder_enter(&trace_file, 1 + i, 50);
        builder_exit(&trace_file, 1 + i, 50);
    }
}

int main(void)
{
    vst__compressor *compressor;

    if (vst__compressor_create(1, &compressor) == VST_E_NO_ZSTD)
        return SKIPPED;
    vst__compressor_destroy(compressor);
    if (mkdtemp(folder) == NULL)
        return 2;
    snprintf(path, sizeof path, "%s/t.vst", folder);
    build();
    put(trace_file.bytes, trace_file.size);
    CHECK_INT(pack(NULL), VST_OK);
    packed = get(&packed_size);
    TEST(packing_fails_and_the_file_is_what_it_was);
    TEST(unpacking_fails_and_the_file_is_what_it_was);
    TEST(reading_fails_and_says_so);
    builder_free(&trace_file);
    free(packed);
    remove(path);
    rmdir(folder);
    return checks_end();
}
