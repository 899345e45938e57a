/* The files of debug_file.h. Not libdwfl's own callbacks: those may ask a
 * server (debuginfod), which a program that wants to know where it is does not
 * expect. One thread at a time (names.c). */
#include "traceback/debug_file.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include "traceback/elfutils.h"

/* Only a regular file: opening any other might wait for ever. */
static int open_file(const char *path)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    struct stat st;

    if (fd >= 0 && (fstat(fd, &st) != 0 || !S_ISREG(st.st_mode))) {
        close(fd);
        fd = -1;
    }
    return fd;
}

/* Whether a file is the one that was loaded, as far as the ids of both tell. */
static bool has_loaded_id(Dwfl_Module *module, Elf *elf)
{
    const unsigned char *loaded;
    const void *id;
    GElf_Addr at;
    int loaded_size = vst__dw.dwfl_module_build_id(module, &loaded, &at);

    return loaded_size <= 0 ||
           (vst__dw.dwelf_elf_gnu_build_id(elf, &id) == loaded_size &&
            memcmp(id, loaded, (size_t)loaded_size) == 0);
}

/* The library itself. It is mapped: a string that damage has robbed of its end
 * is ended by what follows in the file, or by the rest of its last page. */
int vst__debug_file_open(Dwfl_Module *module, void **user, const char *name,
                         Dwarf_Addr base, char **file_name, Elf **elf)
{
    char path[PATH_MAX];
    ssize_t length = -1;
    int fd;

    (void)user, (void)base;
    if (strchr(name, '/') == NULL)
        return -1; /* the kernel's own */
    fd = open_file(name);
    if (fd < 0)
        return -1;
    vst__dw.elf_version(EV_CURRENT);
    *elf = vst__dw.elf_begin(fd, ELF_C_READ_MMAP_PRIVATE, NULL);
    if (*elf == NULL || !has_loaded_id(module, *elf)) {
        vst__dw.elf_end(*elf);
        *elf = NULL;
        close(fd);
        return -1;
    }
    if (strcmp(name, VST_DEBUG_FILE_PROGRAM) == 0)
        length = readlink(name, path, sizeof path - 1);
    if (length > 0)
        path[length] = '\0';
    *file_name = strdup(length > 0 ? path : name);
    return fd;
}

static bool has_crc(int fd, GElf_Word expected)
{
    unsigned char bytes[1 << 14];
    uLong sum = crc32(0, NULL, 0);
    off_t at = 0;
    ssize_t got;

    while ((got = pread(fd, bytes, sizeof bytes, at)) > 0) {
        sum = crc32(sum, bytes, (uInt)got);
        at += got;
    }
    return got == 0 && sum == expected;
}

/* By the build id; else by the link that a stripped library has, beside it and
 * where distributions put such files. */
int vst__debug_file_find(Dwfl_Module *module, void **user, const char *name,
                         Dwarf_Addr base, const char *file_name,
                         const char *link, GElf_Word link_crc,
                         char **debug_name)
{
    static const char *const places[] = {"%.*s/%s", "%.*s/.debug/%s",
                                         "/usr/lib/debug%.*s/%s"};
    const char *slash = file_name != NULL ? strrchr(file_name, '/') : NULL;
    int fd = vst__dw.dwfl_build_id_find_debuginfo(
        module, user, name, base, file_name, link, link_crc, debug_name);

    if (fd >= 0 || link == NULL || slash == NULL || strchr(link, '/') != NULL)
        return fd;
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        char path[PATH_MAX];
        int length = snprintf(path, sizeof path, places[i],
                              (int)(slash - file_name), file_name, link);
        if (length < 0 || (size_t)length >= sizeof path ||
            strcmp(path, file_name) == 0)
            continue;
        fd = open_file(path);
        if (fd >= 0 && has_crc(fd, link_crc)) {
            *debug_name = strdup(path);
            return fd;
        }
        if (fd >= 0)
            close(fd);
    }
    return -1;
}
