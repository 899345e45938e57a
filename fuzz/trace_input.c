/* Makes trace files from inputs, see trace_input.h. One thread. */
#include "trace_input.h"

#include <dirent.h>
#include <signal.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>
#include <zlib.h>

#include "os/os.h"
#include "store/reader.h"
#include "sums.h"
#include "target.h"

enum { OFFSET_NS = 123456789, CONTENTS_MAX = 64 << 20 };

/* ---- the file ------------------------------------------------------------ */

/* The file: all zeros except for the current input. */
_Alignas(8) static unsigned char file[INPUT_FILE_MAX];
static size_t file_used;

static void put_header(trace_input *input, const uint8_t *bytes)
{
    vst_file_header *header = (vst_file_header *)(void *)input->bytes;

    memcpy(header, bytes, sizeof *header);
    memcpy(header->magic, VST_FILE_MAGIC, sizeof header->magic);
    header->byte_order = VST_FILE_BYTE_ORDER;
    header->header_size = VST_FILE_HEADER_SIZE;
    fix_checksum(input->bytes, offsetof(vst_file_header, checksum));
    input->size = VST_FILE_HEADER_SIZE;
}

/* Appends a chunk to the file; returns how many bytes of the input it took, 0
 * if there is no room. Sets *used to the end of its payload. */
static size_t put_chunk(trace_input *input, const uint8_t *bytes, size_t left,
                        size_t *used)
{
    vst_chunk_header header;
    size_t extent, payload, repeats;
    unsigned char *at = input->bytes + input->size;

    memcpy(&header, bytes, sizeof header);
    extent = header.size < VST_CHUNK_ALIGN ? VST_CHUNK_ALIGN : header.size;
    if (extent > INPUT_FILE_MAX - input->size)
        extent = INPUT_FILE_MAX - input->size;
    if (extent < sizeof header)
        return 0;
    payload = left - sizeof header;
    if (payload > header.checksum)
        payload = header.checksum;
    repeats = header.magic != 0 ? header.magic : 1;
    header.magic = VST_CHUNK_MAGIC;
    memcpy(at, &header, sizeof header);
    fix_checksum(at, offsetof(vst_chunk_header, checksum));
    *used = sizeof header;
    for (size_t i = 0; i < repeats && payload != 0; i++) {
        if (payload > extent - *used)
            break;
        memcpy(at + *used, bytes + sizeof header, payload);
        *used += payload;
    }
    *used += input->size;
    input->size += extent;
    return sizeof header + payload;
}

bool input_expand(trace_input *input, const uint8_t *bytes, size_t size)
{
    const size_t before = INPUT_CHOICES + sizeof(vst_file_header);
    size_t at = before, took = 1, used = 0;

    memset(input, 0, sizeof *input);
    if (size < before)
        return false;
    memcpy(input->choices, bytes, INPUT_CHOICES);
    input->bytes = file;
    put_header(input, bytes + INPUT_CHOICES);
    used = input->size;
    while (took != 0 && size - at >= sizeof(vst_chunk_header)) {
        took = put_chunk(input, bytes + at, size - at, &used);
        at += took;
    }
    file_used = input->size;
    if (!(input->choices[0] & INPUT_WHOLE))
        input->size = used;
    return true;
}

static char folder[4096];

static void remove_folder(void)
{
    DIR *entries = opendir(folder);
    struct dirent *entry;

    if (entries == NULL) /* the target wants no file */
        return;
    while ((entry = readdir(entries)) != NULL)
        unlinkat(dirfd(entries), entry->d_name, 0);
    closedir(entries);
    rmdir(folder);
    folder[0] = '\0';
}

void input_free(trace_input *input)
{
    remove_folder(); /* here, because libFuzzer exits without notice */
    memset(file, 0, file_used);
    file_used = 0;
    memset(input, 0, sizeof *input);
}

int input_file(const trace_input *input)
{
    int fd;

    MUST(vst__os_file_create_in_memory(&fd) == 0);
    MUST(write(fd, input->bytes, input->size) == (ssize_t)input->size);
    return fd;
}

/* ---- the trace ----------------------------------------------------------- */

static bool is_no_trace(vst_status status)
{
    return status == VST_E_NOT_A_TRACE || status == VST_E_DAMAGED ||
           status == VST_E_VERSION || status == VST_E_UNSUPPORTED;
}

/* Returns the file, packed; -1 if it is not a trace, or if this build cannot
 * pack. */
static int packed_file(const trace_input *input)
{
    vst_pack_options options = {.level = 1, .overwrite = true};
    int fd = input_file(input), packed;
    char from[64], to[4096];
    vst_status status;

    snprintf(from, sizeof from, "/proc/self/fd/%d", fd);
    snprintf(to, sizeof to, "%s/packed.vst", input_folder());
    status = vst_trace_pack(from, to, &options, NULL);
    close(fd);
    MUST(status == VST_OK || status == VST_E_NO_ZSTD || is_no_trace(status));
    if (status != VST_OK)
        return -1;
    MUST(vst__os_file_open(to, &packed) == 0);
    return packed;
}

static vst_trace *open_file(int fd)
{
    vst_trace *trace;
    vst_error error;
    vst_status status = vst_trace_open_fd(fd, &trace, &error);

    close(fd);
    if (status == VST_OK)
        return trace;
    MUST(error.status == status && is_no_trace(status));
    return NULL;
}

void input_clip(vst_trace *trace)
{
    vst_trace_info info;
    int64_t third_ns;

    vst_trace_get_info(trace, &info);
    third_ns = (info.end_ns - info.start_ns) / 3;
    vst_trace_set_range(trace, info.start_ns + third_ns,
                        info.end_ns - third_ns);
}

vst_trace *input_open(const trace_input *input)
{
    unsigned flags = input->choices[0];
    int fd = flags & INPUT_PACKED ? packed_file(input) : input_file(input);
    vst_trace *trace = fd >= 0 ? open_file(fd) : NULL;

    if (trace == NULL)
        return NULL;
    if (trace->window_count > INPUT_WINDOWS_MAX) {
        vst_trace_close(trace);
        return NULL;
    }
    if (flags & INPUT_OFFSET)
        MUST(vst_trace_set_offset(trace, OFFSET_NS) == VST_OK);
    if (flags & INPUT_CLIP)
        input_clip(trace);
    return trace;
}

int input_window(const trace_input *input)
{
    return input->choices[0] & INPUT_LAST ? VST_WINDOW_LAST : VST_WINDOW_ALL;
}

static vst_status count_span(void *ctx, const vst_span *span)
{
    size_t *count = ctx;

    (void)span;
    return ++*count < INPUT_SPANS_MAX ? VST_OK : VST_E_CANCELLED;
}

bool input_is_small(vst_trace *trace)
{
    size_t count = 0;
    vst_sink sink = {.ctx = &count, .no_args = true, .span = count_span};
    vst_status status =
        vst_trace_replay(trace, VST_WINDOW_ALL, NULL, &sink, NULL);

    MUST(status == VST_OK || status == VST_E_CANCELLED);
    return status == VST_OK;
}

int input_use(const uint8_t *bytes, size_t size, unsigned flags,
              void (*use)(const trace_input *input, vst_trace *trace))
{
    vst_trace *trace = NULL;
    trace_input input;

    if (input_expand(&input, bytes, size)) {
        input.choices[0] &= (uint8_t)flags;
        trace = input_open(&input);
        if (trace != NULL && input_is_small(trace))
            use(&input, trace);
    }
    vst_trace_close(trace);
    input_free(&input);
    return 0;
}

/* ---- files --------------------------------------------------------------- */

void input_limit_output(size_t bytes)
{
    struct rlimit limit = {bytes, bytes};

    signal(SIGXFSZ, SIG_IGN);
    setrlimit(RLIMIT_FSIZE, &limit);
}

const char *input_folder(void)
{
    const char *parent = getenv("TMPDIR");

    if (folder[0] == '\0') {
        if (parent == NULL) /* in memory, so that no disk slows the target */
            parent = access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp";
        snprintf(folder, sizeof folder, "%s/vestige-fuzz-XXXXXX", parent);
        MUST(mkdtemp(folder) != NULL);
    }
    return folder;
}

unsigned char *input_contents(const char *path, size_t *size)
{
    gzFile from = gzopen(path, "rb");
    unsigned char *bytes = NULL;
    int got;

    MUST(from != NULL);
    *size = 0;
    do {
        bytes = realloc(bytes, *size + 65537);
        MUST(bytes != NULL);
        got = gzread(from, bytes + *size, 65536);
        MUST(got >= 0);
        *size += (size_t)got;
    } while (got != 0 && *size < CONTENTS_MAX);
    bytes[*size] = '\0';
    gzclose(from);
    return bytes;
}
