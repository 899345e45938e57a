/* Packs a trace, and checks its copies: the unpacked file has the original
 * bytes, the packed and the recovered file replay like the original, and the
 * recovered file is whole. Then the packed file is changed where the input
 * says, with corrected checksums; reading, unpacking and recovering it must do
 * no harm. */
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "store/reader.h"
#include "sums.h"
#include "target.h"
#include "trace_input.h"

enum { FIRST_EDIT = 4, EDIT = 4 };

static const char *file_named(const char *name, char *path)
{
    snprintf(path, 4200, "%s/%s", input_folder(), name);
    return path;
}

static void save(const char *path, const void *bytes, size_t size)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

    MUST(fd >= 0 && write(fd, bytes, size) == (ssize_t)size);
    MUST(close(fd) == 0);
}

/* ---- replays ------------------------------------------------------------- */

static vst_status mix_span(void *ctx, const vst_span *span)
{
    uint64_t *hash = ctx;

    for (size_t i = 0; i < offsetof(vst_span, place); i++)
        *hash = (*hash ^ ((const uint8_t *)span)[i]) * 0x100000001b3u;
    return VST_OK;
}

/* Returns a hash of all spans; 0 if the trace cannot be opened. Sets *status to
 * the replay's. */
static uint64_t replay(const char *path, vst_status *status)
{
    uint64_t hash = 1;
    vst_sink sink = {.ctx = &hash, .span = mix_span};
    vst_trace *trace;

    *status = vst_trace_open(path, &trace, NULL);
    if (*status != VST_OK)
        return 0;
    *status = vst_trace_replay(trace, VST_WINDOW_ALL, NULL, &sink, NULL);
    vst_trace_close(trace);
    return hash;
}

static void check_same_replay(const char *path, uint64_t expected)
{
    vst_status status;

    MUST(replay(path, &status) == expected);
    MUST(status == VST_OK);
}

/* ---- copies -------------------------------------------------------------- */

static bool is_zero(const unsigned char *at, const unsigned char *end)
{
    while (at < end && *at == 0)
        at++;
    return at == end;
}

/* Returns whether chunks are as writers leave them: in the order of their
 * numbers, which say how much of each is used. A packed copy of another file
 * may read differently, because its reader goes by numbers and the original's
 * reader by offsets. */
static bool is_honest(const trace_input *input)
{
    const unsigned char *end = input->bytes + input->size;
    const unsigned char *at = input->bytes + VST_FILE_HEADER_SIZE;
    int64_t sequence = -1;

    while (end - at >= (ptrdiff_t)sizeof(vst_chunk_header)) {
        const vst_chunk_header *chunk = (const void *)at;
        size_t used = sizeof *chunk + (size_t)chunk->used * sizeof(uint64_t);
        size_t room = (size_t)(end - at);

        room = room < chunk->size ? room : chunk->size;
        if (chunk->kind < VST_CHUNK_RECORDS ||
            chunk->kind > VST_CHUNK_DEFINITIONS || chunk->size == 0 ||
            chunk->sequence <= sequence ||
            (chunk->used != 0 &&
             (used > room || !is_zero(at + used, at + room))))
            return false;
        sequence = chunk->sequence;
        at += room;
    }
    return ((const vst_file_header *)(const void *)input->bytes)->slot_size ==
           0;
}

static void check_recovered(const trace_input *input, const char *from,
                            const char *to, uint64_t hash)
{
    vst_trace_info info;
    vst_trace *trace;

    MUST(vst_trace_recover(from, to, true, NULL) == VST_OK);
    if (is_honest(input))
        check_same_replay(to, hash);
    MUST(vst_trace_open(to, &trace, NULL) == VST_OK);
    vst_trace_get_info(trace, &info);
    MUST(info.clean && info.damaged_at == 0);
    vst_trace_close(trace);
}

static void check_unpacked(const trace_input *input, const char *path)
{
    size_t size;
    unsigned char *bytes = input_contents(path, &size);

    MUST(size == input->size && memcmp(bytes, input->bytes, size) == 0);
    free(bytes);
}

/* ---- damage -------------------------------------------------------------- */

static void fix_sums(unsigned char *bytes, size_t size)
{
    size_t at = sizeof(vst_pack_header);

    fix_checksum(bytes, offsetof(vst_pack_header, checksum));
    while (size - at > sizeof(vst_pack_frame)) {
        vst_pack_frame head;

        fix_frame(bytes + at, size - at);
        memcpy(&head, bytes + at, sizeof head);
        if (head.packed_size >= size - at - sizeof head)
            break;
        at += sizeof head + head.packed_size;
    }
}

static void change(unsigned char *bytes, size_t size, const uint8_t *choices)
{
    for (size_t i = FIRST_EDIT; i + EDIT <= INPUT_CHOICES; i += EDIT) {
        const uint8_t *edit = choices + i;
        size_t at = edit[0] | (size_t)edit[1] << 8;

        if (edit[2] & 1) /* the heads, which lie first */
            at %= sizeof(vst_pack_header) + sizeof(vst_pack_frame);
        bytes[at % size] ^= edit[3];
    }
    memcpy(bytes, VST_PACK_MAGIC, sizeof VST_PACK_MAGIC - 1);
    if (!(choices[1] & 1))
        fix_sums(bytes, size);
}

static bool claims_too_much(const unsigned char *bytes)
{
    vst_pack_header header;

    memcpy(&header, bytes, sizeof header);
    return header.size > 4 * (uint64_t)INPUT_FILE_MAX;
}

static void damage(const char *packed, const char *to, const uint8_t *choices)
{
    vst_pack_options options = {.overwrite = true};
    vst_trace *trace;
    size_t size;
    unsigned char *bytes = input_contents(packed, &size);
    bool is_small = false;

    change(bytes, size, choices);
    save(packed, bytes, size);
    if (!claims_too_much(bytes) &&
        vst_trace_open(packed, &trace, NULL) == VST_OK) {
        vst_trace_info info;

        vst_trace_get_info(trace, &info);
        MUST(info.packed && info.packed_bytes == size);
        is_small = trace->window_count <= INPUT_WINDOWS_MAX;
        vst_trace_close(trace);
    }
    free(bytes);
    if (!is_small)
        return;
    vst_trace_unpack(packed, to, &options, NULL);
    vst_trace_recover(packed, to, true, NULL);
}

/* ---- the whole ----------------------------------------------------------- */

static void pack(const trace_input *input, vst_trace *trace)
{
    /* Higher levels only take longer. */
    vst_pack_options options = {.level = 1 + input->choices[2] % 3,
                                .overwrite = true};
    static char plain[4200], packed[4200], copy[4200];
    vst_status status;
    uint64_t hash;

    (void)trace; /* opened again for each way */
    save(file_named("plain.vst", plain), input->bytes, input->size);
    file_named("packed.vst", packed);
    file_named("copy.vst", copy);
    hash = replay(plain, &status);
    MUST(status == VST_OK);
    check_recovered(input, plain, copy, hash);
    status = vst_trace_pack(plain, packed, &options, NULL);
    if (status == VST_E_NO_ZSTD)
        return;
    MUST(status == VST_OK);
    check_same_replay(packed, hash);
    check_recovered(input, packed, copy, hash);
    MUST(vst_trace_unpack(packed, copy, &options, NULL) == VST_OK);
    check_unpacked(input, copy);
    damage(packed, copy, input->choices);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    return input_use(bytes, size, INPUT_WHOLE, pack);
}
