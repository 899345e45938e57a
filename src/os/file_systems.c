/* os.h for Linux: which file systems are local, which lie in memory, and which
 * may keep a thread waiting. A file of the last kind is not mapped by us: a
 * page that the disk does not deliver would stop the thread that touches it.
 * Any thread. */
#include "os/os.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

/* The table is by statfs's f_type. A file system that the table does not name
 * is taken for a local disk. */
static const struct {
    uint32_t type;
    vst__os_disk disk;
    const char *name;
    char mounted[12]; /* how its name in the table of mounts begins */
} file_systems[] = {
    {0x01021994, VST_DISK_MEMORY, "tmpfs", ""},
    {0x858458f6, VST_DISK_MEMORY, "ramfs", ""},
    {0x00006969, VST_DISK_SLOW, "NFS", "nfs"},
    {0x0bd00bd0, VST_DISK_SLOW, "Lustre", "lustre"},
    {0x47504653, VST_DISK_SLOW, "GPFS", "gpfs"},
    {0x00c36400, VST_DISK_SLOW, "CephFS", "ceph"},
    {0x65735546, VST_DISK_SLOW, "FUSE", "fuse"},
    {0x65735546, VST_DISK_SLOW, "virtiofs", "virtiofs"},
    {0x00000187, VST_DISK_SLOW, "autofs", "autofs"}, /* mounts another one */
    {0x01021997, VST_DISK_SLOW, "9p", "9p"},
    {0xff534d42, VST_DISK_SLOW, "CIFS", "cifs"},
    {0xfe534d42, VST_DISK_SLOW, "SMB", "smb3"},
    {0x0000517b, VST_DISK_SLOW, "SMB", "smb3"},
    {0x19830326, VST_DISK_SLOW, "BeeGFS", "beegfs"},
    {0x18031977, VST_DISK_SLOW, "WekaFS", "wekafs"},
    {0xaad7aaea, VST_DISK_SLOW, "PanFS", "panfs"},
    {0x20030528, VST_DISK_SLOW, "OrangeFS", "pvfs2"},
    {0x01161970, VST_DISK_SLOW, "GFS2", "gfs2"},
    {0x7461636f, VST_DISK_SLOW, "OCFS2", "ocfs2"},
    {0x5346414f, VST_DISK_SLOW, "AFS", "afs"},
    {0x6b414653, VST_DISK_SLOW, "AFS", "afs"},
    {0x73757245, VST_DISK_SLOW, "Coda", "coda"},
    {0xbacbacbc, VST_DISK_SLOW, "vmhgfs", "vmhgfs"},
    {0x786f4256, VST_DISK_SLOW, "vboxsf", "vboxsf"},
    {0x7c7c6673, VST_DISK_SLOW, "prl_fs", "prl_fs"},
};

vst__os_disk vst__os_disk_of(uint32_t type, const char **name)
{
    for (size_t i = 0; i < sizeof file_systems / sizeof *file_systems; i++)
        if (file_systems[i].type == type) {
            *name = file_systems[i].name;
            return file_systems[i].disk;
        }
    *name = "local";
    return VST_DISK_LOCAL;
}

const char *vst__os_slow_name(const char *type)
{
    for (size_t i = 0; i < sizeof file_systems / sizeof *file_systems; i++) {
        const char *mounted = file_systems[i].mounted;
        if (type[0] == mounted[0] && type[0] != 0 &&
            strncmp(type, mounted, strlen(mounted)) == 0)
            return file_systems[i].name;
    }
    return NULL;
}

int vst__os_place_of(const char *folder, vst__os_place *place)
{
    struct statfs fs;

    if (statfs(folder, &fs) != 0)
        return errno;
    place->disk = vst__os_disk_of((uint32_t)fs.f_type, &place->name);
    place->room = (uint64_t)fs.f_bavail * (uint64_t)fs.f_bsize;
    return 0;
}

/* Returns the limit of this process's control group, UINT64_MAX if it has
 * none. Files in memory count against the limit. */
uint64_t vst__os_memory_limit(void)
{
    static const char *const files[] = {
        "/sys/fs/cgroup/memory.max",
        "/sys/fs/cgroup/memory/memory.limit_in_bytes"};
    uint64_t least = UINT64_MAX;

    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        FILE *file = fopen(files[i], "re");
        unsigned long long limit;

        if (file == NULL)
            continue;
        if (fscanf(file, "%llu", &limit) == 1 && limit < least)
            least = limit;
        fclose(file);
    }
    return least;
}

/* ---- files on local disks ------------------------------------------------ */

int vst__os_folder_check(const char *path)
{
    struct stat st;

    if (lstat(path, &st) != 0)
        return errno;
    return S_ISDIR(st.st_mode) && st.st_uid == geteuid() &&
                   (st.st_mode & 0077) == 0
               ? 0
               : EPERM;
}

int vst__os_private_folder(const char *path)
{
    if (mkdir(path, 0700) != 0 && errno != EEXIST)
        return errno;
    return vst__os_folder_check(path);
}

int vst__os_file_lock(int fd)
{
    return flock(fd, LOCK_EX | LOCK_NB) == 0 ? 0 : errno;
}

bool vst__os_file_is_unlinked(int fd)
{
    struct stat st;

    return fstat(fd, &st) == 0 && st.st_nlink == 0;
}

void vst__os_close_from(int first)
{
    long most = sysconf(_SC_OPEN_MAX);

#ifdef SYS_close_range
    if (syscall(SYS_close_range, first, ~0U, 0) == 0)
        return;
#endif
    for (int fd = first; fd < (most > 0 && most < 65536 ? most : 65536); fd++)
        close(fd);
}

char *vst__os_absolute(const char *path)
{
    char folder[PATH_MAX];
    char *whole;

    if (path[0] == '/' || getcwd(folder, sizeof folder) == NULL)
        return strdup(path);
    whole = malloc(strlen(folder) + strlen(path) + 2);
    if (whole != NULL)
        sprintf(whole, "%s/%s", folder, path);
    return whole;
}

int vst__os_file_free(int fd, uint64_t offset, uint64_t size)
{
    return fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
                     (off_t)offset, (off_t)size) == 0
               ? 0
               : errno;
}

bool vst__os_file_is_hole(int fd, uint64_t offset, uint64_t size)
{
    off_t data = lseek(fd, (off_t)offset, SEEK_DATA);

    return data < 0 ? errno == ENXIO : (uint64_t)data >= offset + size;
}
