/* Packed files that are damaged or lie: for any bytes, the reader gives the
 * original up to the first wrong byte, and takes no more memory than one
 * frame. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

#include <vestige/trace.h>

#include "check.h"
#include "os/os.h"
#include "store/compress.h"
#include "store/source.h"
#include "trace_builder.h"
#include "whole_files.h"

enum { SKIPPED = 77, FRAMES_MAX = 64 };

/* A small trace, and its packed form. */
static builder original;
static unsigned char *packed;
static size_t packed_size;
static struct {
    size_t at;        /* offset in the packed file */
    uint64_t raw_end; /* offset in the original */
} frames[FRAMES_MAX];
static size_t frame_count;

/* ---- the file ------------------------------------------------------------ */

/* Builds definitions and records alternately, so that there are several
 * frames. */
static void build(void)
{
    builder_init(&original);
    for (unsigned i = 0; i < 4; i++) {
        builder_definitions(&original, 1);
        builder_window(&original, 0, 1000, i < 3 ? 0 : 90000);
        builder_define(&original, VST_DEF_PYTHON, 1 + i, "main", "app.py", 3);
        builder_thread(&original, 1 + i, 4242 + i, "MainThread");
        builder_records(&original, 0, 1 + i, 1000 + i * 10000, 1);
        for (unsigned k = 0; k < 20; k++) {
            builder_enter(&original, 1 + k % (i + 1), k * 7919 % 50);
            builder_exit(&original, 1 + k % (i + 1), k * 104729 % 50);
        }
        builder_seal(&original, 1);
    }
    original.size = original.chunk + sizeof(vst_chunk_header) + original.used;
    builder_finish(&original);
}

static vst_pack_frame head_at(size_t at)
{
    vst_pack_frame head;

    memcpy(&head, packed + at, sizeof head);
    return head;
}

static void pack(void)
{
    char plain[] = "/tmp/vestige-packed-XXXXXX", path[64];
    int fd = mkstemp(plain);
    uint64_t raw = 0;

    snprintf(path, sizeof path, "%s.packed", plain);
    if (!CHECK(fd >= 0 && write(fd, original.bytes, original.size) ==
                              (ssize_t)original.size))
        exit(2);
    close(fd);
    if (!CHECK_INT(vst_trace_pack(plain, path, NULL, NULL), VST_OK))
        exit(2);
    packed = read_whole(path, &packed_size);
    remove(plain);
    remove(path);
    for (size_t at = sizeof(vst_pack_header); at < packed_size;
         at += sizeof(vst_pack_frame) + head_at(at).packed_size) {
        raw += head_at(at).raw_size;
        frames[frame_count].at = at;
        frames[frame_count++].raw_end = raw;
    }
    CHECK_INT(raw, original.size);
}

static int file_of(const void *bytes, size_t size)
{
    int fd;

    if (!CHECK_INT(vst__os_file_create_in_memory(&fd), 0) ||
        !CHECK_INT(vst__os_file_write(fd, bytes, size, 0), 0))
        exit(2);
    return fd;
}

static void fix_header(unsigned char *bytes)
{
    uint32_t sum =
        (uint32_t)crc32(0, bytes, offsetof(vst_pack_header, checksum));

    memcpy(bytes + offsetof(vst_pack_header, checksum), &sum, sizeof sum);
}

/* Sums the frame again. The head may claim more bytes than the file has: then
 * only the existing bytes are summed. */
static void fix_frame(unsigned char *bytes, size_t size, size_t at)
{
    vst_pack_frame head;
    size_t left = size - at - sizeof head;
    uLong sum = crc32(0, bytes + at, offsetof(vst_pack_frame, checksum));

    memcpy(&head, bytes + at, sizeof head);
    if (left > head.packed_size)
        left = head.packed_size;
    head.checksum = (uint32_t)crc32(sum, bytes + at + sizeof head, (uInt)left);
    memcpy(bytes + at, &head, sizeof head);
}

/* ---- reading ------------------------------------------------------------- */

/* Returns how many bytes of the original the packed bytes give; -1 if they
 * cannot be opened. Checks that these are the original's first bytes. */
static long long prefix_of(const void *bytes, size_t size)
{
    static unsigned char copy[1 << 17];
    vst_error error = {VST_OK, 0, 0};
    vst__source source;
    long long found = -1;
    size_t got = 0;
    vst_status status = vst__source_open(&source, file_of(bytes, size), &error);

    CHECK_INT(error.status, status);
    if (status == VST_OK) {
        found = (long long)source.size;
        CHECK(source.size <= original.size);
        CHECK_INT(source.cut, source.size < original.size);
        CHECK_INT(vst__source_read(&source, copy, sizeof copy, 0, &got),
                  VST_OK);
        CHECK_INT(got, found);
        CHECK(memcmp(copy, original.bytes, got) == 0);
    } else {
        CHECK(status == VST_E_DAMAGED || status == VST_E_VERSION ||
              status == VST_E_UNSUPPORTED);
    }
    vst__source_close(&source);
    return found;
}

/* Opens the bytes as a trace, and calls every reading function. */
static vst_status read_all(const void *bytes, size_t size, vst_trace_info *info)
{
    int fd = file_of(bytes, size);
    vst_sink sink = {.recursion = true};
    vst_error error;
    vst_trace *trace;
    vst_status status = vst_trace_open_fd(fd, &trace, &error);

    close(fd);
    memset(info, 0, sizeof *info);
    if (status != VST_OK) {
        CHECK_INT(error.status, status);
        return status;
    }
    vst_trace_get_info(trace, info);
    CHECK(info->words <= info->bytes / 8);
    status = vst_trace_replay(trace, VST_WINDOW_ALL, NULL, &sink, NULL);
    vst_trace_close(trace);
    return status;
}

/* Returns where the frame that contains this byte of the packed file begins in
 * the original. */
static long long start_of_frame(size_t byte)
{
    long long start = 0;

    for (size_t i = 0; i < frame_count; i++) {
        size_t end = i + 1 < frame_count ? frames[i + 1].at : packed_size;

        if (byte < end)
            return start;
        start = (long long)frames[i].raw_end;
    }
    return start;
}

/* ---- damage -------------------------------------------------------------- */

static void cut_anywhere_it_is_what_whole_frames_hold(void)
{
    CHECK(frame_count > 5);
    CHECK_INT(prefix_of(packed, packed_size), original.size);
    for (size_t size = sizeof VST_PACK_MAGIC - 1; size < packed_size; size++) {
        long long expected = start_of_frame(size);
        vst_trace_info info;
        vst_status status = read_all(packed, size, &info);

        CHECK_INT(prefix_of(packed, size), expected > 0 ? expected : -1);
        if (expected > VST_FILE_HEADER_SIZE) {
            CHECK_INT(status, VST_OK);
            CHECK(!info.clean);
            CHECK_INT(info.bytes, expected);
            CHECK_INT(info.damaged_at, expected);
        } else {
            CHECK_INT(status, VST_E_DAMAGED);
        }
    }
}

static void one_bit_anywhere_costs_what_follows_it(void)
{
    for (size_t byte = sizeof VST_PACK_MAGIC - 1; byte < packed_size; byte++)
        for (int bit = 0; bit < 8; bit += 3) {
            long long expected = start_of_frame(byte);

            packed[byte] ^= (unsigned char)(1 << bit);
            if (byte < sizeof(vst_pack_header))
                expected = -1;
            CHECK_INT(prefix_of(packed, packed_size),
                      expected > 0 ? expected : -1);
            packed[byte] ^= (unsigned char)(1 << bit);
        }
}

static void another_magic_is_no_trace(void)
{
    vst_trace_info info;

    for (size_t byte = 0; byte < sizeof VST_PACK_MAGIC - 1; byte++) {
        packed[byte] ^= 1;
        CHECK_INT(read_all(packed, packed_size, &info), VST_E_NOT_A_TRACE);
        packed[byte] ^= 1;
        CHECK_INT(read_all(packed, byte, &info), VST_E_NOT_A_TRACE);
    }
}

static void what_follows_the_last_frame_does_not_matter(void)
{
    unsigned char *longer = calloc(1, packed_size + 100);

    memcpy(longer, packed, packed_size);
    CHECK_INT(prefix_of(longer, packed_size + 100), original.size);
    free(longer);
}

/* Changes, inserts and removes bytes; often corrects the checksums
 * afterwards. */
static void no_change_does_harm(void)
{
    size_t room = packed_size + 64;
    unsigned char *bytes = malloc(room);
    const unsigned changes = 20000 / check_step(1, 4);
    uint32_t random = 7;

    for (unsigned i = 0; i < changes; i++) {
        size_t size = packed_size, at;
        vst_trace_info info;

        memcpy(bytes, packed, packed_size);
        random = random * 1664525 + 1013904223;
        for (uint32_t k = 0; k <= random >> 29; k++) {
            random = random * 1664525 + 1013904223;
            at = (random >> 4) % size;
            if (random >> 28 < 12) {
                bytes[at] = (unsigned char)(random >> 9);
            } else if (random >> 28 < 14 && size + 8 < room) {
                memmove(bytes + at + 8, bytes + at, size - at);
                size += 8;
            } else if (size > at + 8) {
                memmove(bytes + at, bytes + at + 8, size - at - 8);
                size -= 8;
            }
        }
        if (random & 1 << 10) {
            fix_header(bytes);
            for (size_t k = 0; k < frame_count; k++)
                if (frames[k].at + sizeof(vst_pack_frame) <= size)
                    fix_frame(bytes, size, frames[k].at);
        }
        read_all(bytes, size, &info);
    }
    free(bytes);
}

/* ---- lies ---------------------------------------------------------------- */

/* Opens the file with one field of the second frame's head replaced and its
 * checksum corrected: only the first frame can be read. */
static void check_claim(size_t field, uint32_t value)
{
    unsigned char *bytes = malloc(packed_size);

    memcpy(bytes, packed, packed_size);
    memcpy(bytes + frames[1].at + field, &value, sizeof value);
    fix_frame(bytes, packed_size, frames[1].at);
    CHECK_INT(prefix_of(bytes, packed_size), frames[0].raw_end);
    free(bytes);
}

static void a_frame_that_claims_too_much_ends_the_file(void)
{
    check_claim(offsetof(vst_pack_frame, raw_size), 0);
    check_claim(offsetof(vst_pack_frame, raw_size), VST_PACK_RAW_MAX + 1);
    check_claim(offsetof(vst_pack_frame, raw_size), UINT32_MAX);
    check_claim(offsetof(vst_pack_frame, raw_size), (uint32_t)original.size);
    check_claim(offsetof(vst_pack_frame, packed_size), 0);
    check_claim(offsetof(vst_pack_frame, packed_size), VST_PACK_PACKED_MAX);
    check_claim(offsetof(vst_pack_frame, packed_size), UINT32_MAX);
    check_claim(offsetof(vst_pack_frame, transform), VST_PACK_SPLIT + 1);
}

/* A checksum may be right although the bytes are not zstd's, or although their
 * number is not the stated one. Such a file counts as damaged in the middle;
 * reading there reports the damage. */
static void a_frame_that_does_not_unpack_is_told(void)
{
    unsigned char *bytes = malloc(packed_size);
    uint32_t wrong = head_at(frames[1].at).raw_size - 8;
    vst_trace_info info;

    memcpy(bytes, packed, packed_size);
    bytes[frames[1].at + sizeof(vst_pack_frame)] ^= 1; /* zstd's magic */
    fix_frame(bytes, packed_size, frames[1].at);
    CHECK_INT(read_all(bytes, packed_size, &info), VST_E_DAMAGED);

    memcpy(bytes, packed, packed_size);
    memcpy(bytes + frames[1].at, &wrong, sizeof wrong);
    fix_frame(bytes, packed_size, frames[1].at);
    CHECK_INT(read_all(bytes, packed_size, &info), VST_E_DAMAGED);
    free(bytes);
}

static vst_status open_with_header(size_t field, const void *value, size_t size)
{
    unsigned char *bytes = malloc(packed_size);
    vst_trace_info info;
    vst_status status;

    memcpy(bytes, packed, packed_size);
    memcpy(bytes + field, value, size);
    fix_header(bytes);
    status = read_all(bytes, packed_size, &info);
    CHECK(info.bytes <= original.size);
    free(bytes);
    return status;
}

static void a_header_is_believed_as_far_as_it_is_known(void)
{
    uint32_t version = VST_PACK_VERSION + 1, order = 0x04030201u;
    uint64_t none = 0, most = UINT64_MAX;

    CHECK_INT(open_with_header(offsetof(vst_pack_header, version), &version,
                               sizeof version),
              VST_E_VERSION);
    CHECK_INT(open_with_header(offsetof(vst_pack_header, byte_order), &order,
                               sizeof order),
              VST_E_UNSUPPORTED);
    CHECK_INT(
        open_with_header(offsetof(vst_pack_header, size), &none, sizeof none),
        VST_E_DAMAGED);
    CHECK_INT(
        open_with_header(offsetof(vst_pack_header, size), &most, sizeof most),
        VST_OK); /* a file with frames only */
}

static void what_is_damaged_is_not_unpacked_but_recovered(void)
{
    char path[] = "/tmp/vestige-packed-XXXXXX", copy[64];
    int fd = mkstemp(path);
    size_t size = frames[3].at + 5;
    vst_pack_options force = {.overwrite = true};
    vst_trace_info info;
    vst_trace *trace;
    vst_error error;

    snprintf(copy, sizeof copy, "%s.copy", path);
    CHECK_INT(write(fd, packed, size), size);
    close(fd);
    CHECK_INT(vst_trace_unpack(path, copy, NULL, &error), VST_E_DAMAGED);
    CHECK_INT(error.offset, frames[2].raw_end);
    CHECK_INT(vst_trace_unpack(path, path, &force, &error), VST_E_DAMAGED);
    CHECK(access(copy, F_OK) != 0);
    CHECK_INT(vst_trace_recover(path, copy, false, &error), VST_OK);
    if (CHECK_INT(vst_trace_open(copy, &trace, &error), VST_OK)) {
        vst_trace_get_info(trace, &info);
        CHECK(info.clean && !info.packed && info.words != 0);
        vst_trace_close(trace);
    }
    remove(path);
    remove(copy);
}

int main(void)
{
    vst__compressor *compressor;

    if (vst__compressor_create(1, &compressor) == VST_E_NO_ZSTD)
        return SKIPPED;
    vst__compressor_destroy(compressor);
    build();
    pack();
    TEST(cut_anywhere_it_is_what_whole_frames_hold);
    TEST(one_bit_anywhere_costs_what_follows_it);
    TEST(another_magic_is_no_trace);
    TEST(what_follows_the_last_frame_does_not_matter);
    TEST(no_change_does_harm);
    TEST(a_frame_that_claims_too_much_ends_the_file);
    TEST(a_frame_that_does_not_unpack_is_told);
    TEST(a_header_is_believed_as_far_as_it_is_known);
    TEST(what_is_damaged_is_not_unpacked_but_recovered);
    builder_free(&original);
    free(packed);
    return checks_end();
}
