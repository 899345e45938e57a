/* The recorder's side of a copy: see copying.h. */
#include "store/copying.h"

#include <errno.h>
#include <stdlib.h>

#include "os/os.h"

/* How long a start waits for the target: longer only if the disk stalls. */
#define ANSWER_NS UINT64_C(300000000)

int vst__copying_begin(const char *target, const char *copier,
                       vst__copying *copying)
{
    *copying = (vst__copying){.copier = copier, .pair = -1};
    copying->target = vst__os_absolute(target);
    return copying->target == NULL
               ? ENOMEM
               : vst__local_file_create(copying->target, &copying->local);
}

/* Returns 0 or an errno value. `local` is the path, or "" without a name. */
static int copier_run(const char *copier, char *target, char *local, int fd,
                      int *pair)
{
    char *words[] = {(char *)(uintptr_t)"vestige-copier", target, local, NULL};
    int ends[2], kept[2];
    int failed = copier == NULL ? ENOENT : vst__os_pair_open(ends);

    if (failed != 0)
        return failed;
    kept[0] = fd;
    kept[1] = ends[1];
    failed = vst__os_start_detached(copier, words, kept, 2);
    vst__os_file_close(ends[1]);
    if (failed != 0)
        vst__os_file_close(ends[0]);
    else
        *pair = ends[0];
    return failed;
}

static void copying_run(vst__copying *self)
{
    static char none[] = "";
    char *path = self->local.path != NULL ? self->local.path : none;

    self->sys_errno = copier_run(self->copier, self->note->target, path,
                                 self->local.fd, &self->pair);
}

/* Without a copier, the target is created here, so that mistakes show. */
static int create_target(const vst__copying *self)
{
    int target, failed = vst__target_open(self->local.fd, self->note, &target);

    if (failed == 0)
        vst__os_file_close(target);
    return failed;
}

int vst__copying_start(vst__copying *self, bool overwrite)
{
    int32_t answer = 0;
    int failed = vst__local_file_note(&self->local, self->target, overwrite,
                                      &self->note);

    if (failed != 0)
        return failed;
    self->is_late = vst__os_adopts_orphans();
    if (self->is_late)
        return create_target(self);
    copying_run(self);
    if (self->pair < 0)
        return 0;
    switch (vst__os_pair_wait(self->pair, ANSWER_NS, &answer)) {
    case VST_PAIR_GONE: /* it was not permitted to run */
        vst__os_file_close(self->pair);
        self->pair = -1;
        self->sys_errno = EPERM;
        return 0;
    case VST_PAIR_MESSAGE:
        return answer;
    case VST_PAIR_QUIET:
        break;
    }
    return 0;
}

void vst__copying_hurry(vst__copying *self)
{
    if (self->is_late && self->pair < 0)
        copying_run(self);
    if (self->pair >= 0)
        vst__os_pair_send(self->pair, 0);
}

static bool copying_is_complete(const vst__copying *self)
{
    return __atomic_load_n(&self->note->stage, __ATOMIC_ACQUIRE) ==
           VST_COPY_COMPLETE;
}

bool vst__copying_wait(vst__copying *self, uint64_t timeout_ns)
{
    int32_t number;

    while (self->pair >= 0 && !copying_is_complete(self))
        if (vst__os_pair_wait(self->pair, timeout_ns, &number) !=
            VST_PAIR_MESSAGE)
            break;
    return copying_is_complete(self);
}

bool vst__copying_catch_up(vst__copying *self, uint64_t timeout_ns)
{
    const uint64_t step = 10000000;
    /* the pass that runs now may have begun earlier */
    uint32_t wanted =
        __atomic_load_n(&self->note->passes, __ATOMIC_ACQUIRE) + 2;
    int32_t number;

    for (uint64_t ns = 0; ns < timeout_ns && self->pair >= 0; ns += step) {
        if ((int32_t)(__atomic_load_n(&self->note->passes, __ATOMIC_ACQUIRE) -
                      wanted) >= 0)
            return true;
        vst__os_pair_send(self->pair, 0);
        vst__os_pair_wait(self->pair, step, &number);
    }
    return false;
}

void vst__copying_end(vst__copying *self, bool remove)
{
    if (remove && self->local.path != NULL)
        vst__os_file_remove(self->local.path);
    if (self->pair >= 0)
        vst__os_file_close(self->pair);
    self->pair = -1;
    vst__copy_note_release(self->note);
    self->note = NULL;
    free(self->local.path);
    free(self->target);
    self->local.path = self->target = NULL;
}

int vst__copying_resume(const char *path, const char *copier)
{
    vst__copy_note *note;
    int fd, pair = -1, failed = vst__local_file_open(path, &fd, &note);

    if (failed != 0)
        return failed;
    failed = vst__os_file_lock(fd);
    if (failed == 0)
        failed = copier_run(copier, note->target, (char *)(uintptr_t)path, fd,
                            &pair);
    if (pair >= 0)
        vst__os_file_close(pair);
    vst__copy_note_release(note);
    vst__os_file_close(fd);
    return failed;
}
