/* Damaged debug information: cut short, or with flipped bits, in the library or
 * in a separate file. Names may be missing or wrong; reading never crashes or
 * hangs, and every frame stays. The argument is the plugin. */
#include <dlfcn.h>
#include <elf.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "check.h"
#include "traceback/traceback.h"
#include "whole_files.h"

enum { FRAMES = 3, FLIPS = 150, CUTS = 60 };

static char folder[] = "/tmp/vestige-damage-XXXXXX";
static char library[64], other[64], link_path[64];
static unsigned char *whole;
static size_t whole_size;
static uint64_t seed = 88172645463325252u;

static uint64_t next_random(void)
{
    seed ^= seed << 13;
    seed ^= seed >> 7;
    seed ^= seed << 17;
    return seed;
}

/* Writes a new file; a file that is mapped stays unchanged. */
static void put_file(const char *path, const void *bytes, size_t size)
{
    FILE *file = fopen(other, "wb");

    CHECK(file != NULL && fwrite(bytes, 1, size, file) == size);
    fclose(file);
    CHECK_INT(rename(other, path), 0);
}

static int take(void *ctx)
{
    uintptr_t addresses[FRAMES + 8];
    size_t count = vst_traceback_addresses(addresses, FRAMES + 8, 1);

    if (CHECK(count >= FRAMES))
        *(vst_traceback **)ctx = vst_traceback_of(addresses, FRAMES - 1);
    return 0;
}

/* Loads the library, then replaces its file by `bytes`, then asks for names.
 * Returns how many frames have a line. */
static int lines_after(const char *path, const void *bytes, size_t size)
{
    int (*enter)(int (*)(void *), void *) = NULL;
    vst_traceback *traceback = NULL;
    vst_symbols *symbols = NULL;
    int lines = 0;
    size_t count = 0;
    const uint32_t *indexes;
    void *loaded, *symbol;

    loaded = dlopen(library, RTLD_NOW | RTLD_LOCAL);
    if (!CHECK(loaded != NULL))
        return -1;
    symbol = dlsym(loaded, "plugin_enter");
    memcpy(&enter, &symbol, sizeof enter);
    enter(take, &traceback);
    if (path != NULL)
        put_file(path, bytes, size);
    CHECK_INT(vst_traceback_symbolize(&traceback, 1, 0, &symbols, NULL),
              VST_OK);
    indexes = vst_symbols_of(symbols, 0, &count, NULL);
    CHECK(count >= FRAMES - 1);
    for (size_t i = 0; i < count; i++) {
        const vst_named_frame *f = vst_symbols_frame(symbols, indexes[i]);
        CHECK(f->name_len == strlen(f->name) && f->name_len != 0);
        CHECK(f->file_len == strlen(f->file) && f->file_len != 0);
        lines += f->line != 0;
    }
    vst_symbols_free(symbols);
    vst_traceback_release(traceback);
    vst_traceback_free_dead();
    dlclose(loaded);
    return lines;
}

static int lines_of(const void *bytes, size_t size)
{
    put_file(library, whole, whole_size);
    return lines_after(library, bytes, size);
}

static void a_sound_library_has_lines(void)
{
    CHECK_INT(lines_of(whole, whole_size), 3);
}

static void a_library_cut_short_has_fewer(void)
{
    for (size_t i = 0; i < CUTS; i++)
        CHECK(lines_of(whole, whole_size * i / CUTS) <= 3);
    CHECK_INT(lines_of(whole, 0), 0);
    CHECK_INT(lines_of(whole, whole_size / 2), 0);
}

/* Flips bits only in one kind of section, so that most of the file stays
 * valid. */
static void flip_in(unsigned char *bytes, uint64_t offset, uint64_t size)
{
    uint64_t flips = 1 + next_random() % 8;

    while (size != 0 && flips-- != 0)
        bytes[offset + next_random() % size] ^=
            (unsigned char)(1 << next_random() % 8);
}

static bool is_debug(const unsigned char *bytes, const Elf64_Shdr *section)
{
    const Elf64_Ehdr *head = (const Elf64_Ehdr *)bytes;
    const Elf64_Shdr *all = (const Elf64_Shdr *)(bytes + head->e_shoff);
    const char *name = (const char *)bytes + all[head->e_shstrndx].sh_offset +
                       section->sh_name;

    return strncmp(name, ".debug", 6) == 0 || strcmp(name, ".symtab") == 0 ||
           strcmp(name, ".dynsym") == 0;
}

static void a_library_with_wrong_bits_crashes_nothing(void)
{
    const Elf64_Ehdr *head = (const Elf64_Ehdr *)whole;
    const Elf64_Shdr *sections = (const Elf64_Shdr *)(whole + head->e_shoff);
    unsigned char *copy = malloc(whole_size);

    for (int i = 0; i < FLIPS; i++) {
        const Elf64_Shdr *section = &sections[next_random() % head->e_shnum];
        memcpy(copy, whole, whole_size);
        if (i % 5 == 0)
            flip_in(copy, 0, sizeof *head);
        else if (i % 5 == 1)
            flip_in(copy, head->e_shoff, head->e_shnum * sizeof *section);
        else if (is_debug(whole, section))
            flip_in(copy, section->sh_offset, section->sh_size);
        else
            flip_in(copy, 0, whole_size);
        CHECK(lines_of(copy, whole_size) >= 0);
    }
    free(copy);
}

/* Another build replaces the library's file while the library is loaded. */
static void a_library_that_is_not_the_one_loaded_is_not_believed(void)
{
    static const char id[] = "GNU"; /* the id itself follows */
    unsigned char *copy = malloc(whole_size);
    const Elf64_Nhdr note = {4, 20, NT_GNU_BUILD_ID};
    unsigned char *at;

    memcpy(copy, whole, whole_size);
    at = memmem(copy, whole_size, &note, sizeof note);
    if (at != NULL && memcmp(at + sizeof note, id, sizeof id) == 0) {
        at[sizeof note + sizeof id] ^= 1;
        CHECK_INT(lines_of(copy, whole_size), 0);
    }
    free(copy);
}

/* ---- debug information in a file of its own ----------------------------- */

static void a_debug_file_beside_it_is_believed_if_it_is_the_one(void)
{
    char command[512];
    unsigned char *debug, *stripped, *all = whole;
    size_t debug_size, stripped_size, all_size = whole_size;

    put_file(library, whole, whole_size);
    snprintf(command, sizeof command,
             "cd %s && objcopy --only-keep-debug plugin.so plugin.debug "
             "2>/dev/null && objcopy --strip-all --remove-section "
             ".note.gnu.build-id --add-gnu-debuglink plugin.debug plugin.so",
             folder);
    if (system(command) != 0)
        return; /* objcopy is not installed */
    debug = read_whole(link_path, &debug_size);
    stripped = read_whole(library, &stripped_size);
    whole = stripped;
    whole_size = stripped_size;

    CHECK_INT(lines_of(whole, whole_size), 3);
    for (int i = 0; i < 20; i++) { /* the checksum differs: not the right
                                    * file */
        unsigned char *copy = malloc(debug_size);
        memcpy(copy, debug, debug_size);
        flip_in(copy, 0, debug_size);
        CHECK_INT(lines_after(link_path, copy, debug_size), 0);
        free(copy);
    }
    CHECK_INT(lines_after(link_path, debug, debug_size / 2), 0);
    CHECK_INT(lines_after(link_path, debug, debug_size), 3);
    unlink(link_path);
    CHECK_INT(mkfifo(link_path, 0600), 0); /* a pipe without a writer */
    CHECK_INT(lines_after(NULL, NULL, 0), 0);
    unlink(link_path);
    free(debug);
    free(stripped);
    whole = all;
    whole_size = all_size;
}

int main(int count, char **arguments)
{
    if (count < 2 || !vst_traceback_has_native() ||
        !vst_traceback_has_symbols() || mkdtemp(folder) == NULL)
        return count < 2;
    snprintf(library, sizeof library, "%s/plugin.so", folder);
    snprintf(link_path, sizeof link_path, "%s/plugin.debug", folder);
    snprintf(other, sizeof other, "%s/next", folder);
    whole = read_whole(arguments[1], &whole_size);
    TEST(a_sound_library_has_lines);
    TEST(a_library_cut_short_has_fewer);
    TEST(a_library_with_wrong_bits_crashes_nothing);
    TEST(a_library_that_is_not_the_one_loaded_is_not_believed);
    TEST(a_debug_file_beside_it_is_believed_if_it_is_the_one);
    free(whole);
    unlink(library);
    rmdir(folder);
    return checks_end();
}
