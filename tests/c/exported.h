/* Shared by the tests of exporters: a folder for their files, and reading these
 * back. One file is one program, on one thread. */
#ifndef VST_TESTS_EXPORTED_H
#define VST_TESTS_EXPORTED_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "check.h"

static char folder[] = "/tmp/vestige-test-XXXXXX";

static inline const char *in_folder(const char *name)
{
    static char path[256];

    snprintf(path, sizeof path, "%s/%s", folder, name);
    return path;
}

/* Returns a file's bytes (gzip or plain) with a NUL behind them; the caller
 * frees the bytes. */
static inline char *contents(const char *path)
{
    gzFile file = gzopen(path, "rb");
    char *text = NULL;
    size_t count = 0;
    int got;

    if (file == NULL)
        return NULL;
    do {
        text = realloc(text, count + 65537);
        if (text == NULL)
            abort();
        got = gzread(file, text + count, 65536);
        count += got > 0 ? (size_t)got : 0;
    } while (got > 0);
    text[count] = '\0';
    gzclose(file);
    return text;
}

static inline void expect_line(const char *text, const char *line)
{
    if (!CHECK(text != NULL && strstr(text, line) != NULL))
        printf("# wanted: %s\n# in:\n%s\n", line,
               text != NULL ? text : "nothing");
}

#endif
