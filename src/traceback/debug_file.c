/* Finds the files of debug_file.h. libdwfl's own callbacks may ask a server
 * (debuginfod), which a program that wants to know where it is does not expect,
 * so we have our own. One thread at a time (names.c). */
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

/* Opens only regular files: opening any other file might wait forever. */
static int debug_file_open_file(const char *path)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    struct stat st;

    if (fd >= 0 && (fstat(fd, &st) != 0 || !S_ISREG(st.st_mode))) {
        close(fd);
        fd = -1;
    }
    return fd;
}

/* Returns whether a file is the one that was loaded, as far as the ids of both
 * show. */
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

/* Opens the library itself. libdwfl maps it: if damage removed the end of a
 * string, the bytes that follow in the file, or the rest of its last page, end
 * the string. */
int vst__debug_file_open(Dwfl_Module *module, void **user, const char *name,
                         Dwarf_Addr base, char **file_name, Elf **elf)
{
    char path[PATH_MAX];
    ssize_t length = -1;
    int fd;

    (void)user, (void)base;
    if (strchr(name, '/') == NULL)
        return -1; /* the kernel's own library */
    fd = debug_file_open_file(name);
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

/* Finds the file by the build id; otherwise by the link in a stripped library,
 * next to the library and where distributions put such files. */
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
        fd = debug_file_open_file(path);
        if (fd >= 0 && has_crc(fd, link_crc)) {
            *debug_name = strdup(path);
            return fd;
        }
        if (fd >= 0)
            close(fd);
    }
    return -1;
}
