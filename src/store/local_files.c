/* Local files, their notes and their targets: see local_files.h. */
#include "store/local_files.h"

#include <errno.h>
#include <limits.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "os/os.h"
#include "store/format.h"

enum {
    MIB = 1024 * 1024,
    ROOM_LEAST = 16 * MIB,      /* a folder with less is passed over */
    IN_MEMORY_MOST = 256 * MIB, /* and at most */
    OF_ROOM = 2,
    OF_GROUP = 8, /* these fractions */
};
#define ON_DISK_MOST (UINT64_C(4) << 30)

/* ---- where --------------------------------------------------------------- */

static const struct {
    const char *variable; /* or the folder itself */
    bool is_folder;
} places[] = {
    {"VESTIGE_TMPDIR", false}, {"TMPDIR", false},          {"/tmp", true},
    {"/var/tmp", true},        {"XDG_RUNTIME_DIR", false}, {"/dev/shm", true},
};

const char *vst__local_folder(const vst__os_mounts *mounts, size_t index,
                              char *path, size_t size)
{
    const char *folder;
    int length;

    if (index >= sizeof places / sizeof *places)
        return NULL;
    folder = places[index].is_folder ? places[index].variable
                                     : getenv(places[index].variable);
    path[0] = 0;
    if (folder == NULL || folder[0] != '/' ||
        (mounts != NULL && vst__os_mounts_slow(mounts, folder) != NULL))
        return path;
    length = snprintf(path, size, "%s/vestige-copies-%u", folder,
                      (unsigned)vst__os_user_id());
    if (length < 0 || (size_t)length >= size)
        path[0] = 0;
    return path;
}

static uint64_t local_limit(const vst__os_place *place)
{
    bool is_memory = place->disk == VST_DISK_MEMORY;
    uint64_t most = is_memory ? IN_MEMORY_MOST : ON_DISK_MOST;

    if (most > place->room / OF_ROOM)
        most = place->room / OF_ROOM;
    if (is_memory && most > vst__os_memory_limit() / OF_GROUP)
        most = vst__os_memory_limit() / OF_GROUP;
    return most;
}

static int create_in(const char *folder, const char *target,
                     vst__local_file *local)
{
    const char *slash = strrchr(target, '/');
    const char *name = slash != NULL ? slash + 1 : target;
    size_t size = strlen(folder) + NAME_MAX + 64;
    uint32_t random;
    int failed;

    local->path = malloc(size);
    if (local->path == NULL)
        return ENOMEM;
    vst__os_random(&random, sizeof random);
    snprintf(local->path, size, "%s/%.180s-%u-%08x.vst", folder, name,
             (unsigned)vst__os_process_id(), (unsigned)random);
    failed = vst__os_file_create(local->path, false, &local->fd);
    if (failed != 0) {
        free(local->path);
        local->path = NULL;
    }
    return failed;
}

/* Tries a folder, unless it lies on another kind of disk. */
static int create_at(const vst__os_mounts *mounts, size_t index,
                     vst__os_disk disk, const char *target,
                     vst__local_file *local)
{
    char folder[PATH_MAX];
    const char *found = vst__local_folder(mounts, index, folder, sizeof folder);
    char *slash = found != NULL ? strrchr(folder, '/') : NULL;
    vst__os_place place;
    int failed;

    if (slash == NULL)
        return ENOENT;
    *slash = 0;
    failed = vst__os_place_of(folder[0] != 0 ? folder : "/", &place);
    *slash = '/';
    if (failed == 0 && (place.disk != disk || place.room < ROOM_LEAST))
        failed = ENOSPC;
    if (failed == 0)
        failed = vst__os_private_folder(folder);
    if (failed == 0)
        failed = create_in(folder, target, local);
    if (failed == 0)
        local->limit = local_limit(&place);
    return failed;
}

static int create_on(const vst__os_mounts *mounts, vst__os_disk disk,
                     const char *target, vst__local_file *local)
{
    int failed = ENOENT;

    for (size_t i = 0; failed != 0 && i < sizeof places / sizeof *places; i++)
        failed = create_at(mounts, i, disk, target, local);
    return failed;
}

/* A file without a name is lost when its last process ends. */
static int create_unnamed(vst__local_file *local)
{
    const vst__os_place memory = {.disk = VST_DISK_MEMORY, .room = UINT64_MAX};

    local->limit = local_limit(&memory);
    return vst__os_file_create_in_memory(&local->fd);
}

int vst__local_file_create(const char *target, vst__local_file *local)
{
    vst__os_mounts *mounts;
    int failed;

    *local = (vst__local_file){.fd = -1};
    if (strlen(target) >= VST_COPY_TARGET_MAX)
        return ENAMETOOLONG;
    mounts = vst__os_mounts_read(VST_OS_MOUNTS);
    /* the folder that the user names, even if it lies in memory */
    failed = create_at(mounts, 0, VST_DISK_MEMORY, target, local);
    if (failed != 0)
        failed = create_on(mounts, VST_DISK_LOCAL, target, local);
    if (failed != 0)
        failed = create_on(mounts, VST_DISK_MEMORY, target, local);
    vst__os_mounts_free(mounts);
    if (failed != 0)
        failed = create_unnamed(local);
    if (failed == 0)
        vst__os_file_lock(local->fd); /* nobody else knows the file yet */
    return failed;
}

/* ---- notes --------------------------------------------------------------- */

int vst__copy_note_map(int fd, vst__copy_note **note)
{
    void *page;
    int failed = vst__os_map_shared(fd, VST_FILE_HEADER_SIZE, &page);

    if (failed != 0)
        return failed;
    *note = (vst__copy_note *)(void *)((char *)page + VST_COPY_NOTE_AT);
    return 0;
}

void vst__copy_note_release(vst__copy_note *note)
{
    if (note != NULL)
        vst__os_unmap((char *)note - VST_COPY_NOTE_AT, VST_FILE_HEADER_SIZE);
}

int vst__local_file_note(const vst__local_file *local, const char *target,
                         bool overwrite, vst__copy_note **note)
{
    int failed = vst__copy_note_map(local->fd, note);

    if (failed != 0)
        return failed;
    (*note)->overwrite = overwrite;
    (*note)->limit = local->limit;
    strcpy((*note)->target, target); /* its length was checked */
    __atomic_store_n(&(*note)->magic, VST_COPY_NOTE_MAGIC, __ATOMIC_RELEASE);
    return 0;
}

int vst__local_file_open(const char *path, int *fd, vst__copy_note **note)
{
    uint64_t size;
    int failed = vst__os_file_open_to_write(path, fd);

    if (failed != 0)
        return failed;
    failed = vst__os_file_size(*fd, &size);
    if (failed == 0 && size < VST_FILE_HEADER_SIZE)
        failed = EINVAL;
    if (failed == 0)
        failed = vst__copy_note_map(*fd, note);
    if (failed == 0 &&
        ((*note)->magic != VST_COPY_NOTE_MAGIC ||
         memchr((*note)->target, 0, VST_COPY_TARGET_MAX) == NULL)) {
        vst__copy_note_release(*note);
        failed = EINVAL;
    }
    if (failed != 0)
        vst__os_file_close(*fd);
    return failed;
}

int vst__local_file_look(const char *path, vst__local_look *look)
{
    vst__copy_note *note;
    vst_file_header header = {.state = VST_FILE_RECORDING};
    size_t got;
    int fd, failed = vst__local_file_open(path, &fd, &note);

    if (failed != 0)
        return failed;
    failed = vst__os_file_read(fd, &header, sizeof header, 0, &got);
    look->is_finished = header.state == VST_FILE_FINISHED;
    look->is_complete =
        __atomic_load_n(&note->stage, __ATOMIC_ACQUIRE) == VST_COPY_COMPLETE;
    memcpy(look->target, note->target, sizeof look->target);
    look->sys_errno = (int)note->sys_errno;
    look->is_busy = vst__os_file_lock(fd) != 0;
    vst__copy_note_release(note);
    vst__os_file_close(fd);
    return failed;
}

/* ---- targets ------------------------------------------------------------- */

/* Returns whether the target is empty, or a copy of the local file. */
static int target_check(int local, int target)
{
    vst_file_header ours, theirs;
    size_t got, there;
    int failed = vst__os_file_read(local, &ours, sizeof ours, 0, &got);

    if (failed == 0)
        failed = vst__os_file_read(target, &theirs, sizeof theirs, 0, &there);
    if (failed != 0)
        return failed;
    if (there >= offsetof(vst_file_header, state) &&
        memcmp(&ours, &theirs, offsetof(vst_file_header, state)) != 0 &&
        theirs.magic[0] != 0)
        return EEXIST;
    return 0;
}

int vst__target_open(int local, vst__copy_note *note, int *target)
{
    bool is_made =
        __atomic_load_n(&note->stage, __ATOMIC_ACQUIRE) != VST_COPY_WAITS;
    int failed;

    if (!is_made)
        failed = vst__os_file_create(note->target, note->overwrite, target);
    else
        failed = vst__os_file_open_to_write(note->target, target);
    if (failed == 0 && is_made) {
        failed = target_check(local, *target);
        if (failed != 0)
            vst__os_file_close(*target);
    }
    if (failed == 0 && !is_made)
        __atomic_store_n(&note->stage, VST_COPY_IS_MADE, __ATOMIC_RELEASE);
    return failed;
}

static int complete_open(int local, vst__copy_note *note)
{
    vst__mirror *mirror = NULL;
    int target, failed = vst__target_open(local, note, &target);

    if (failed != 0)
        return failed;
    failed = vst__mirror_create(local, target, note, &mirror);
    if (failed == 0)
        failed = vst__mirror_complete(mirror);
    vst__mirror_destroy(mirror);
    vst__os_file_close(target);
    return failed;
}

int vst__local_file_complete(const char *path)
{
    vst__copy_note *note;
    int fd, failed = vst__local_file_open(path, &fd, &note);

    if (failed != 0)
        return failed;
    failed = vst__os_file_lock(fd);
    if (failed == 0 &&
        __atomic_load_n(&note->stage, __ATOMIC_ACQUIRE) != VST_COPY_COMPLETE)
        failed = complete_open(fd, note);
    if (failed == 0)
        vst__os_file_remove(path);
    vst__copy_note_release(note);
    vst__os_file_close(fd);
    return failed;
}
