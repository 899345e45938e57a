/* Where the C function lies that evaluates Python code. Compilers put the parts
 * that rarely run far away, where they look like another function, and in a
 * stripped interpreter that has no name. But the two parts jump into each
 * other's middle, which no other functions do. So we go once through the table
 * of functions that every program has for unwinding, and look for such jumps.
 * Any thread enters; nothing is locked or allocated.
 */
#include "traceback/traceback.h"

#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <pthread.h>
#include <string.h>

enum { PARTS_MAX = 8, JUMPS_MIN = 4 };

typedef struct part {
    uintptr_t start, end;
} part;

static part parts[PARTS_MAX]; /* the first is the function itself */
static size_t parts_count;
static pthread_once_t once = PTHREAD_ONCE_INIT;

/* The program or library that the interpreter is in, as it was loaded. */
typedef struct image {
    uintptr_t base; /* what addresses in the file are relative to */
    part text;
    const unsigned char *functions; /* .eh_frame_hdr, or NULL */
    size_t functions_size;
} image;

static image read_image(const unsigned char *start)
{
    ElfW(Ehdr) header;
    image made = {0};

    memcpy(&header, start, sizeof header);
    made.base = header.e_type == ET_EXEC ? 0 : (uintptr_t)start;
    for (size_t i = 0; i < header.e_phnum; i++) {
        ElfW(Phdr) segment;
        memcpy(&segment, start + header.e_phoff + i * header.e_phentsize,
               sizeof segment);
        uintptr_t at = made.base + segment.p_vaddr;
        if (segment.p_type == PT_LOAD && (segment.p_flags & PF_X) &&
            parts[0].start >= at && parts[0].start < at + segment.p_memsz) {
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

/* Counts direct jumps, conditional or not, from one part to the middle of
 * another. Bytes that only look like a jump are counted too, so a few mean
 * nothing. */
static size_t count_jumps(part from, part to)
{
    size_t count = 0;
#ifdef __x86_64__
    const unsigned char *code = (const unsigned char *)from.start;
    size_t size = from.end - from.start;

    for (size_t i = 0; i + 6 <= size; i++) {
        bool is_jump = code[i] == 0xe9;
        bool is_branch = code[i] == 0x0f && (code[i + 1] & 0xf0) == 0x80;
        size_t length = is_jump ? 5 : 6;
        uintptr_t target;
        if (!is_jump && !is_branch)
            continue;
        target = from.start + i + length +
                 (uintptr_t)(intptr_t)read_i32(code + i + length - 4);
        count += target > to.start && target < to.end;
    }
#endif
    return count;
}

static bool is_part(part other)
{
    return count_jumps(other, parts[0]) >= JUMPS_MIN &&
           count_jumps(parts[0], other) >= JUMPS_MIN;
}

/* Reads the table in the form that compilers write; others are ignored. */
static void find_parts(void)
{
    enum { PCREL_SDATA4 = 0x1b, UDATA4 = 0x03, DATAREL_SDATA4 = 0x3b };
    Dl_info info;
    const ElfW(Sym) *symbol = NULL;
    image in;

    if (!dladdr1((void *)(uintptr_t)&_PyEval_EvalFrameDefault, &info,
                 (void **)&symbol, RTLD_DL_SYMENT) ||
        !symbol)
        return;
    parts[0].start = (uintptr_t)info.dli_saddr;
    parts[0].end = parts[0].start + symbol->st_size;
    parts_count = 1;
    in = read_image(info.dli_fbase);
    if (!in.functions || in.functions_size < 12 || in.functions[0] != 1 ||
        in.functions[1] != PCREL_SDATA4 || in.functions[2] != UDATA4 ||
        in.functions[3] != DATAREL_SDATA4)
        return;
    size_t count = (uint32_t)read_i32(in.functions + 8);
    if (count > (in.functions_size - 12) / 8)
        return;
    for (size_t i = 0; i < count && parts_count < PARTS_MAX; i++) {
        const unsigned char *entry = in.functions + 12 + 8 * i;
        uintptr_t start = (uintptr_t)(in.functions + read_i32(entry));
        const unsigned char *about = in.functions + read_i32(entry + 4);
        part function = {start, start + (uint32_t)read_i32(about + 12)};
        if (start != (uintptr_t)(about + 8 + read_i32(about + 8)) ||
            start == parts[0].start || start < in.text.start ||
            function.end < start || function.end > in.text.end)
            continue;
        if (is_part(function))
            parts[parts_count++] = function;
    }
}

/* A return address may be the one right behind the end. */
bool vpy_is_evaluation(uintptr_t address)
{
    pthread_once(&once, find_parts);
    for (size_t i = 0; i < parts_count; i++)
        if (address > parts[i].start && address <= parts[i].end)
            return true;
    return false;
}

/* [[start, end], …] */
void vpy_tell_evaluation(vst_recording *recording)
{
    char text[PARTS_MAX * 48 + 3] = "[";
    size_t length = 1;

    pthread_once(&once, find_parts);
    for (size_t i = 0; i < parts_count; i++)
        length += (size_t)snprintf(text + length, sizeof text - length,
                                   "%s[%llu, %llu]", i == 0 ? "" : ", ",
                                   (unsigned long long)parts[i].start,
                                   (unsigned long long)parts[i].end);
    snprintf(text + length, sizeof text - length, "]");
    vst_recording_set_metadata(recording, "vestige.evaluation", text);
}
