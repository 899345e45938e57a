/* os.h for Linux: which folders lie on slow disks, by the table of mounts. A
 * disk that stalls is never asked: a thread that waits for a disk cannot be
 * ended. Only the links on the way to a folder are read, and only those that
 * lie on other disks. Any thread. */
#include "os/os.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/grow.h"

enum { LINKS_MAX = 40, OVERLAYS_MAX = 3, READ = 16 * 1024 };

typedef struct mount {
    const char *folder;
    size_t length;     /* of the folder; 0 for the root */
    const char *slow;  /* the file system's name if it may stall, or NULL */
    const char *upper; /* the folder that an overlay writes to, or NULL */
} mount;

struct vst__os_mounts {
    char *text; /* the mounts point into it */
    size_t length, capacity;
    mount *list;
    size_t count, list_capacity;
    bool may_be_slow; /* some mount is slow or an overlay */
};

/* ---- the table ----------------------------------------------------------- */

/* Undoes the escapes of the table: \040 is a space. */
static void unescape(char *text)
{
    char *to = text = strchrnul(text, '\\');
    unsigned code;

    while (*text != 0) {
        if (*text == '\\' && sscanf(text, "\\%3o", &code) == 1) {
            *to++ = (char)code;
            text += 4;
        } else {
            *to++ = *text++;
        }
    }
    *to = 0;
}

/* Cuts a line into pieces: the device, the folder, the type, the options. */
static bool parse_line(char *line, mount *found)
{
    char *folder = strchr(line, ' ');
    char *type = folder != NULL ? strchr(folder + 1, ' ') : NULL;
    char *options = type != NULL ? strchr(type + 1, ' ') : NULL;

    if (options == NULL)
        return false;
    *folder++ = *type++ = *options++ = 0;
    unescape(folder);
    *found = (mount){.folder = folder, .slow = vst__os_slow_name(type)};
    found->length = folder[0] == '/' && folder[1] == 0 ? 0 : strlen(folder);
    if (strcmp(type, "overlay") == 0 &&
        (options = strstr(options, "upperdir=")) != NULL) {
        options += strlen("upperdir=");
        options[strcspn(options, ", ")] = 0;
        unescape(options);
        found->upper = options;
    }
    return true;
}

static bool add_line(vst__os_mounts *self, char *line)
{
    mount found;

    if (!parse_line(line, &found))
        return true;
    if (!VST_RESERVE(self->list, self->count + 1, self->list_capacity))
        return false;
    self->list[self->count++] = found;
    self->may_be_slow |= found.slow != NULL || found.upper != NULL;
    return true;
}

static bool read_text(vst__os_mounts *self, const char *table)
{
    int fd = open(table, O_RDONLY | O_CLOEXEC);
    ssize_t got = -1;

    while (fd >= 0) {
        if (!VST_RESERVE(self->text, self->length + READ, self->capacity))
            break;
        got = read(fd, self->text + self->length, READ - 1);
        if (got <= 0 && (got == 0 || errno != EINTR))
            break;
        self->length += got > 0 ? (size_t)got : 0;
    }
    if (fd >= 0)
        close(fd);
    if (got != 0 || self->length == 0)
        return false;
    self->text[self->length] = 0;
    return true;
}

vst__os_mounts *vst__os_mounts_read(const char *table)
{
    vst__os_mounts *self = calloc(1, sizeof *self);
    char *line, *next;
    bool done = self != NULL && read_text(self, table);

    for (line = done ? self->text : NULL; done && line != NULL; line = next) {
        next = strchr(line, '\n');
        if (next != NULL)
            *next++ = 0;
        done = add_line(self, line);
    }
    if (!done) {
        vst__os_mounts_free(self);
        return NULL;
    }
    return self;
}

void vst__os_mounts_free(vst__os_mounts *self)
{
    if (self == NULL)
        return;
    free(self->list);
    free(self->text);
    free(self);
}

/* ---- a path -------------------------------------------------------------- */

/* A path on its way to the disk: no part of `done` is a link or "..". Both are
 * without a slash at their end, and `done` of the root is empty. */
typedef struct path_walk {
    char done[PATH_MAX];
    char rest[PATH_MAX]; /* begins with a slash, or is empty */
    int links;           /* so many were followed */
} path_walk;

/* Returns whether a path is a folder or lies in it. */
static bool is_in(const mount *on, const char *path)
{
    return strncmp(on->folder, path, on->length) == 0 &&
           (path[on->length] == '/' || path[on->length] == 0);
}

/* Finds the mount of a path by its name alone; NULL if the table lacks it. */
static const mount *find_mount(const vst__os_mounts *self, const char *path)
{
    const mount *found = NULL;

    for (size_t i = 0; i < self->count; i++) {
        const mount *each = &self->list[i];
        if ((found == NULL || each->length >= found->length) &&
            is_in(each, path))
            found = each; /* the last of several is on top */
    }
    return found;
}

/* Folders on the way to a mount are no links: skips them, because they may lie
 * on a disk that stalls. Returns false if the path is too long. */
static bool walk_to_mount(path_walk *self, const vst__os_mounts *mounts,
                          const mount **on)
{
    char whole[PATH_MAX];
    size_t done = strlen(self->done);
    int length = snprintf(whole, sizeof whole, "%s%s", self->done, self->rest);

    if (length < 0 || (size_t)length >= sizeof whole)
        return false;
    *on = find_mount(mounts, whole);
    if (*on != NULL && (*on)->length > done) {
        memcpy(self->done, whole, (*on)->length);
        self->done[(*on)->length] = 0;
        memmove(self->rest, whole + (*on)->length,
                (size_t)length - (*on)->length + 1);
    }
    return true;
}

/* Removes empty names and ".", so that names can be compared as text. */
static void compact(char *path)
{
    char *to = path;

    while (*path != 0) {
        size_t skipped = strspn(path, "/");
        size_t length = strcspn(path + skipped, "/");
        if (length > 1 || (length == 1 && path[skipped] != '.')) {
            memmove(to, path + skipped - 1, length + 1);
            to += length + 1;
        }
        path += skipped + length;
    }
    *to = 0;
}

/* Puts the target of a link in front of the rest. Returns false if the path is
 * too long, or leads in a circle. */
static bool walk_follow(path_walk *self, const char *target)
{
    char rest[PATH_MAX];
    int length = snprintf(rest, sizeof rest, "/%s%s", target, self->rest);

    if (length < 0 || (size_t)length >= sizeof rest ||
        self->links++ > LINKS_MAX)
        return false;
    compact(rest);
    strcpy(self->rest, rest); /* of the same size */
    if (target[0] == '/')
        self->done[0] = 0;
    return true;
}

static void walk_up(path_walk *self)
{
    char *slash = strrchr(self->done, '/');

    if (slash != NULL)
        *slash = 0;
}

/* Takes the next name of the rest. Returns false if it leads nowhere. */
static bool walk_step(path_walk *self)
{
    char target[PATH_MAX];
    size_t done = strlen(self->done);
    size_t length = strcspn(self->rest + 1, "/") + 1;
    bool is_up = length == 3 && memcmp(self->rest, "/..", length) == 0;
    ssize_t got;

    if (done + length >= sizeof self->done)
        return false;
    memcpy(self->done + done, self->rest, length);
    self->done[done + length] = 0;
    memmove(self->rest, self->rest + length, strlen(self->rest + length) + 1);
    if (is_up) {
        walk_up(self);
        walk_up(self);
        return true;
    }
    got = readlink(self->done, target, sizeof target - 1);
    if (got < 0)
        return errno == EINVAL; /* no link */
    target[got] = 0;
    walk_up(self);
    return walk_follow(self, target);
}

static const char *slow_name(const vst__os_mounts *mounts, const char *path,
                             int overlays)
{
    path_walk walk = {.links = 0};
    const mount *on = NULL;
    bool done;

    if (path[0] != '/' || !walk_follow(&walk, path))
        return NULL;
    do {
        if (!walk_to_mount(&walk, mounts, &on))
            return NULL;
        if (on != NULL && on->slow != NULL)
            return on->slow;
        done = walk.rest[0] == 0;
    } while (!done && walk_step(&walk));
    /* a container sees the name of the folder, but not the folder */
    if (on != NULL && on->upper != NULL && overlays > 0)
        return slow_name(mounts, on->upper, overlays - 1);
    return NULL;
}

const char *vst__os_mounts_slow(const vst__os_mounts *self, const char *folder)
{
    return self->may_be_slow ? slow_name(self, folder, OVERLAYS_MAX) : NULL;
}
