/* For tests: reads and writes whole files, and names files in a folder. A file
 * that cannot be read or written ends the test. */
#ifndef VST_TESTS_WHOLE_FILES_H
#define VST_TESTS_WHOLE_FILES_H

#include <stdio.h>
#include <stdlib.h>

#include "check.h"

/* Returns the bytes of a file; the caller frees them. */
static inline unsigned char *read_whole(const char *from, size_t *size)
{
    FILE *file = fopen(from, "rb");
    unsigned char *bytes;
    long end;

    if (!CHECK(file != NULL && fseek(file, 0, SEEK_END) == 0))
        exit(2);
    end = ftell(file);
    bytes = malloc((size_t)end + 1);
    if (!CHECK(bytes != NULL && fseek(file, 0, SEEK_SET) == 0))
        exit(2);
    *size = fread(bytes, 1, (size_t)end, file);
    CHECK_INT(*size, end);
    fclose(file);
    return bytes;
}

static inline void write_whole(const char *to, const void *bytes, size_t size)
{
    FILE *file = fopen(to, "wb");

    if (!CHECK(file != NULL && fwrite(bytes, 1, size, file) == size))
        exit(2);
    fclose(file);
}

/* Returns a path in a folder; valid for the next three calls. */
static inline const char *path_in(const char *home, const char *name)
{
    static char paths[4][320];
    static unsigned next;
    char *found = paths[next++ % 4];

    snprintf(found, sizeof paths[0], "%s/%s", home, name);
    return found;
}

#endif
