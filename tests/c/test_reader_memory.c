/* Reading takes memory in proportion to the file, not to the sizes that the
 * file claims: with the address space limited, traces that lie about their
 * sizes are still read, replayed and exported. The limit is 64 MiB plus twice
 * the file's size. */
#include <fcntl.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

#include <vestige/trace.h>

#include "check.h"
#include "trace_builder.h"

enum { SKIPPED = 77, MARGIN = 64 << 20 };

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
static const bool sanitized = true; /* a sanitizer reserves terabytes of address
                                     * space */
#elif defined(__has_feature)
static const bool sanitized =
    __has_feature(address_sanitizer) || __has_feature(thread_sanitizer);
#else
static const bool sanitized = false;
#endif

/* Bytes of address space in use. */
static rlim_t in_use(void)
{
    FILE *file = fopen("/proc/self/statm", "r");
    unsigned long pages = 0;

    if (!CHECK(file != NULL && fscanf(file, "%lu", &pages) == 1))
        exit(2);
    fclose(file);
    return (rlim_t)pages * (rlim_t)sysconf(_SC_PAGESIZE);
}

/* Calls everything that reads a trace, within the memory limit. */
static void read_within_bounds(int fd, uint64_t size, vst_status expected)
{
    char path[] = "/tmp/vestige-memory-XXXXXX.json";
    vst_sink sink = {.recursion = true};
    struct rlimit old, limit;
    vst_trace *trace;
    vst_status status;

    close(mkstemps(path, (int)strlen(".json")));
    getrlimit(RLIMIT_AS, &old);
    limit = old;
    limit.rlim_cur = in_use() + MARGIN + 2 * size;
    setrlimit(RLIMIT_AS, &limit);
    status = vst_trace_open_fd(fd, &trace, NULL);
    CHECK_INT(status, expected);
    if (status == VST_OK) {
        CHECK_INT(vst_trace_replay(trace, VST_WINDOW_ALL, NULL, &sink, NULL),
                  VST_OK);
        CHECK_INT(vst_trace_export(trace, path, NULL, NULL), VST_OK);
        vst_trace_close(trace);
    }
    setrlimit(RLIMIT_AS, &old);
    unlink(path);
    close(fd);
}

static void read_built(builder *b, vst_status expected)
{
    read_within_bounds(builder_file(b), b->size, expected);
    builder_free(b);
}

/* ---- claims ------------------------------------------------------------- */

static void a_chunk_that_claims_a_gigabyte_is_read_as_far_as_it_goes(void)
{
    for (unsigned kind = VST_CHUNK_RECORDS; kind <= VST_CHUNK_DEFINITIONS;
         kind++) {
        builder b;

        builder_init(&b);
        builder_records(&b, 0, 1, 1000, 1);
        builder_enter(&b, 1, 1);
        builder_chunk(&b)->kind = (uint16_t)kind;
        builder_chunk(&b)->size = VST_CHUNK_SIZE_MAX;
        builder_chunk(&b)->used = UINT32_MAX;
        builder_chunk(&b)->segments = UINT32_MAX;
        builder_fix_chunk(&b, b.chunk);
        read_built(&b, VST_OK);
    }
}

static void an_entry_that_claims_more_than_its_chunk_ends_the_definitions(void)
{
    static const vst_file_entry lies[] = {
        {.size = 1u << 30, .kind = VST_DEF_PYTHON, .id = 1},
        {.size = UINT32_MAX & ~7u, .kind = VST_ENTRY_METADATA},
        {.size = 48, .kind = VST_DEF_PYTHON, .id = 2, .a_len = 1u << 30},
        {.size = 48, .kind = VST_ENTRY_THREAD, .b_len = UINT32_MAX},
    };

    for (size_t i = 0; i < sizeof lies / sizeof lies[0]; i++) {
        builder b;

        builder_init(&b);
        builder_definitions(&b, 1);
        memcpy(b.bytes + b.chunk + sizeof(vst_chunk_header), &lies[i],
               sizeof lies[i]);
        read_built(&b, VST_OK);
    }
}

static void numbers_at_their_limits_cost_no_tables(void)
{
    builder b;

    builder_init(&b);
    builder_header(&b)->windows = UINT32_MAX;
    builder_header(&b)->lost = UINT64_MAX;
    builder_header(&b)->size = UINT64_MAX;
    builder_definitions(&b, 1);
    builder_define(&b, VST_DEF_PYTHON, VST_ID_MAX, "last", "", 0);
    builder_thread(&b, UINT32_MAX, UINT64_MAX, "last");
    builder_window(&b, UINT16_MAX, UINT64_MAX, 1);
    builder_records(&b, UINT16_MAX, UINT32_MAX, UINT64_MAX, 1);
    builder_enter(&b, VST_ID_MAX, UINT32_MAX);
    builder_escape(&b, VST_ESCAPE_SWITCH, 0, (uint64_t[]){UINT64_MAX}, 1);
    builder_escape(&b, VST_ESCAPE_ARGS, 0, (uint64_t[]){UINT64_MAX}, 1);
    builder_escape(&b, VST_ESCAPE_INSTANT, 0, (uint64_t[]){UINT64_MAX}, 1);
    builder_word(&b, vst_word_escape(VST_ESCAPE_STACK, 0x3fffff, 0));
    read_built(&b, VST_OK);
}

static void a_header_that_claims_anything_else_is_damage(void)
{
    builder b;

    builder_init(&b);
    builder_header(&b)->header_size = UINT32_MAX;
    builder_fix_header(&b);
    read_built(&b, VST_E_DAMAGED);
}

/* A file of 8 GiB of holes, far more than the limit allows to copy. The header
 * of a chunk claims as much of the file as a chunk can. */
static void a_hole_in_the_file_is_not_read_into_memory(void)
{
    builder b;
    int fd;

    builder_init(&b);
    builder_records(&b, 0, 1, 1000, 1);
    builder_enter(&b, 1, 1);
    builder_chunk(&b)->size = VST_CHUNK_SIZE_MAX;
    builder_fix_chunk(&b, b.chunk);
    fd = builder_file(&b);
    CHECK_INT(ftruncate(fd, (off_t)8 << 30), 0);
    read_within_bounds(fd, b.size, VST_OK);
    builder_free(&b);
}

/* ---- what is there ------------------------------------------------------ */

enum { PAGES = 256 }; /* a mebibyte */

static void many_small_definitions_fit(void)
{
    builder b;

    builder_init(&b);
    builder_definitions(&b, PAGES);
    for (unsigned i = 1; i <= (PAGES * VST_CHUNK_ALIGN - 64) / 48; i++)
        builder_entry(&b,
                      &(vst_file_entry){.kind = (uint16_t)(15 + i % 5),
                                        .id = i * 7919 % 65536,
                                        .x = i,
                                        .y = i},
                      "", "");
    read_built(&b, VST_OK);
}

static void many_threads_in_one_chunk_fit(void)
{
    builder b;

    builder_init(&b);
    builder_records(&b, 0, 1, 1000, PAGES);
    for (unsigned i = 1; i <= (PAGES * VST_CHUNK_ALIGN - 64) / 32; i++) {
        builder_escape(&b, VST_ESCAPE_SEGMENT, 0, (uint64_t[]){i, i}, 2);
        builder_enter(&b, i, 1);
    }
    builder_seal(&b, 2);
    read_built(&b, VST_OK);
}

static void calls_that_never_end_fit(void)
{
    builder b;

    builder_init(&b);
    builder_records(&b, 0, 1, 1000, PAGES);
    for (unsigned i = 1; i <= (PAGES * VST_CHUNK_ALIGN - 64) / 24; i++) {
        builder_enter(&b, i, 1);
        builder_escape(&b, VST_ESCAPE_BEGIN, 1, (uint64_t[]){i}, 1);
    }
    read_built(&b, VST_OK);
}

static void stacks_that_never_come_back_fit(void)
{
    builder b;

    builder_init(&b);
    builder_records(&b, 0, 1, 1000, PAGES);
    for (unsigned i = 1; i <= (PAGES * VST_CHUNK_ALIGN - 64) / 24; i++) {
        builder_enter(&b, i, 1);
        builder_escape(&b, VST_ESCAPE_SWITCH, 1, (uint64_t[]){i}, 1);
    }
    read_built(&b, VST_OK);
}

/* Reading a packed file takes memory for one frame, not for the original
 * file. */
static void a_packed_file_larger_than_the_limit_fits(void)
{
    char plain[] = "/tmp/vestige-memory-XXXXXX", packed[64];
    int fd = mkstemp(plain);
    vst_status status;
    builder b;

    snprintf(packed, sizeof packed, "%s.packed", plain);
    builder_init(&b);
    builder_records(&b, 0, 1, 1000, 96 * PAGES);
    builder_enter(&b, 1, 1);
    for (uint64_t i = 1; i < 96 * PAGES * VST_CHUNK_ALIGN / 16 - 4; i++)
        builder_escape(&b, VST_ESCAPE_TIME, 0, (uint64_t[]){i * 1000}, 1);
    CHECK_INT(write(fd, b.bytes, b.size), b.size);
    close(fd);
    builder_free(&b);
    status = vst_trace_pack(plain, packed, NULL, NULL);
    if (status != VST_E_NO_ZSTD && CHECK_INT(status, VST_OK))
        read_within_bounds(open(packed, O_RDONLY), 0, VST_OK);
    remove(plain);
    remove(packed);
}

int main(void)
{
    if (sanitized)
        return SKIPPED;
    TEST(a_chunk_that_claims_a_gigabyte_is_read_as_far_as_it_goes);
    TEST(an_entry_that_claims_more_than_its_chunk_ends_the_definitions);
    TEST(numbers_at_their_limits_cost_no_tables);
    TEST(a_header_that_claims_anything_else_is_damage);
    TEST(a_hole_in_the_file_is_not_read_into_memory);
    TEST(many_small_definitions_fit);
    TEST(many_threads_in_one_chunk_fit);
    TEST(calls_that_never_end_fit);
    TEST(stacks_that_never_come_back_fit);
    TEST(a_packed_file_larger_than_the_limit_fits);
    return checks_end();
}
