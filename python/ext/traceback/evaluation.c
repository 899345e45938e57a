/* Finds the C function that evaluates Python code. Compilers put the parts of
 * it that rarely run far away, where they look like another function, which has
 * no name in a stripped interpreter. But the two parts jump into each other's
 * middle, which no two functions do. So we go once through the table of
 * functions that every program has for unwinding, and look for such jumps. Any
 * thread enters; nothing is locked or allocated. */
#include "traceback/traceback.h"

#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <pthread.h>
#include <string.h>

static struct vpy_evaluation_state *const state = &vpy_tracebacks.evaluation;

enum { JUMPS_MIN = 4 };

typedef struct vpy_code_part part;

/* The program or library that contains the interpreter, as it was loaded. */
typedef struct image {
    uintptr_t base; /* added to addresses in the file */
    part text;
    const unsigned char *functions; /* .eh_frame_hdr, or NULL */
    size_t functions_size;
} image;

/* Reads the program or library that begins at `start` and contains `code`. */
static image read_image(const unsigned char *start, uintptr_t code)
{
    ElfW(Ehdr) header;
    image made = {0};

    memcpy(&header, start, sizeof header);
    made.base = header.e_type == ET_EXEC ? 0 : (uintptr_t)start;
    for (size_t i = 0; i < header.e_phnum; i++) {
        ElfW(Phdr) segment;
        uintptr_t at;
        memcpy(&segment, start + header.e_phoff + i * header.e_phentsize,
               sizeof segment);
        at = made.base + segment.p_vaddr;
        if (segment.p_type == PT_LOAD && (segment.p_flags & PF_X) &&
            code >= at && code < at + segment.p_memsz) {
            made.text = (part){at, at + segment.p_memsz};
        } else if (segment.p_type == PT_GNU_EH_FRAME) {
            made.functions = (const unsigned char *)at;
            made.functions_size = segment.p_memsz;
        }
    }
    return made;
}

static int32_t read_i32(const void *at)
{
    int32_t value;

    memcpy(&value, at, sizeof value);
    return value;
}

/* Returns the target of a direct jump at this address, conditional or not; 0 if
 * there is none. Calls are not jumps. LONGEST bytes are read there, and the
 * next address to try is STEP bytes further. */
#if defined(__x86_64__)
enum { LONGEST = 6, STEP = 1 }; /* an instruction may begin anywhere */

static uintptr_t jump_target(uintptr_t at)
{
    const unsigned char *code = (const unsigned char *)at;
    bool is_jump = code[0] == 0xe9;
    bool is_branch = code[0] == 0x0f && (code[1] & 0xf0) == 0x80;
    size_t length = is_jump ? 5 : 6;

    if (!is_jump && !is_branch)
        return 0;
    return at + length + (uintptr_t)(intptr_t)read_i32(code + length - 4);
}
#elif defined(__aarch64__)
enum { LONGEST = 4, STEP = 4 };

/* Adds a distance in instructions, which is in `bits` bits of the code from bit
 * `from` on. */
static uintptr_t evaluation_target(uintptr_t at, uint32_t code, unsigned from,
                                   unsigned bits)
{
    uint32_t top = code << (32 - from - bits);

    return at + 4 * (uintptr_t)(intptr_t)((int32_t)top >> (32 - bits));
}

static uintptr_t jump_target(uintptr_t at)
{
    uint32_t code = (uint32_t)read_i32((const void *)at);

    if ((code & 0xfc000000) == 0x14000000) /* b */
        return evaluation_target(at, code, 0, 26);
    if ((code & 0xff000010) == 0x54000000) /* b.cond */
        return evaluation_target(at, code, 5, 19);
    if ((code & 0x7e000000) == 0x34000000) /* cbz, cbnz */
        return evaluation_target(at, code, 5, 19);
    if ((code & 0x7e000000) == 0x36000000) /* tbz, tbnz */
        return evaluation_target(at, code, 5, 14);
    return 0;
}
#else
/* Here only the function itself is found, not the parts that lie elsewhere:
 * their frames are shown as native frames among the Python frames. */
enum { LONGEST = 1, STEP = 1 };

static uintptr_t jump_target(uintptr_t at)
{
    (void)at;
    return 0;
}
#endif

/* Counts direct jumps from one part to the middle of another. Bytes that only
 * look like a jump are counted, too, so a small count means nothing. */
static size_t count_jumps(part from, part to)
{
    size_t count = 0;

    for (uintptr_t at = from.start; at + LONGEST <= from.end; at += STEP) {
        uintptr_t target = jump_target(at);
        count += target > to.start && target < to.end;
    }
    return count;
}

static bool is_part(part other)
{
    return count_jumps(other, state->parts[0]) >= JUMPS_MIN &&
           count_jumps(state->parts[0], other) >= JUMPS_MIN;
}

/* Returns whether the table has the form that compilers write; other tables are
 * ignored. */
static bool is_readable(const image *in)
{
    enum { PCREL_SDATA4 = 0x1b, UDATA4 = 0x03, DATAREL_SDATA4 = 0x3b };

    return in->functions != NULL && in->functions_size >= 12 &&
           in->functions[0] == 1 && in->functions[1] == PCREL_SDATA4 &&
           in->functions[2] == UDATA4 && in->functions[3] == DATAREL_SDATA4 &&
           (uint32_t)read_i32(in->functions + 8) <=
               (in->functions_size - 12) / 8;
}

/* Reads a function from the table. Returns false if the entry is not
 * consistent. */
static bool read_function(const image *in, size_t i, part *function)
{
    const unsigned char *entry = in->functions + 12 + 8 * i;
    const unsigned char *about = in->functions + read_i32(entry + 4);
    uintptr_t start = (uintptr_t)(in->functions + read_i32(entry));

    *function = (part){start, start + (uint32_t)read_i32(about + 12)};
    return start == (uintptr_t)(about + 8 + read_i32(about + 8)) &&
           start >= in->text.start && function->end >= start &&
           function->end <= in->text.end;
}

/* Finds the function itself first, as dladdr gives its start but not its size,
 * then its other parts. */
static void find_parts(void)
{
    Dl_info info;
    image in;
    part function;
    uintptr_t start;
    size_t count;

    if (!dladdr((void *)(uintptr_t)&_PyEval_EvalFrameDefault, &info))
        return;
    start = (uintptr_t)info.dli_saddr;
    in = read_image(info.dli_fbase, start);
    if (!is_readable(&in))
        return;
    count = (uint32_t)read_i32(in.functions + 8);
    for (size_t i = 0; i < count && state->parts_count == 0; i++)
        if (read_function(&in, i, &function) && function.start == start)
            state->parts[state->parts_count++] = function;
    for (size_t i = 0; i < count && state->parts_count > 0 &&
                       state->parts_count < VPY_EVALUATION_PARTS_MAX;
         i++)
        if (read_function(&in, i, &function) && function.start != start &&
            is_part(function))
            state->parts[state->parts_count++] = function;
}

/* The end counts as inside: the return address of a last call is right behind
 * it. */
bool vpy_is_evaluation(uintptr_t address)
{
    pthread_once(&state->once, find_parts);
    for (size_t i = 0; i < state->parts_count; i++)
        if (address > state->parts[i].start && address <= state->parts[i].end)
            return true;
    return false;
}

/* Writes [[start, end], …]. */
void vpy_evaluation_note(vst_recording *recording)
{
    char text[VPY_EVALUATION_PARTS_MAX * 48 + 3] = "[";
    size_t length = 1;

    pthread_once(&state->once, find_parts);
    for (size_t i = 0; i < state->parts_count; i++)
        length += (size_t)snprintf(text + length, sizeof text - length,
                                   "%s[%llu, %llu]", i == 0 ? "" : ", ",
                                   (unsigned long long)state->parts[i].start,
                                   (unsigned long long)state->parts[i].end);
    snprintf(text + length, sizeof text - length, "]");
    vst_recording_set_metadata(recording, "vestige.evaluation", text);
}
