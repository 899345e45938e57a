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
#define OVERLAY UINT32_C(0x794c7630)

static const struct {
    uint32_t type;
    vst__os_disk disk;
    const char *name;
    const char *mounted; /* how its name in mountinfo begins */
} file_systems[] = {
    {0x01021994, VST_DISK_MEMORY, "tmpfs", "tmpfs"},
    {0x858458f6, VST_DISK_MEMORY, "ramfs", "ramfs"},
    {0x00006969, VST_DISK_SLOW, "NFS", "nfs"},
    {0x0bd00bd0, VST_DISK_SLOW, "Lustre", "lustre"},
    {0x47504653, VST_DISK_SLOW, "GPFS", "gpfs"},
    {0x00c36400, VST_DISK_SLOW, "CephFS", "ceph"},
    {0x65735546, VST_DISK_SLOW, "FUSE", "fuse"}, /* virtiofs, too */
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

/* ---- mounts -------------------------------------------------------------- */

/* Undoes the escapes of mountinfo: \040 is a space. */
static void unescape_mount(char *text)
{
    char *to = text;

    for (; *text != 0; to++) {
        unsigned code;
        if (*text == '\\' && sscanf(text, "\\%3o", &code) == 1) {
            *to = (char)code;
            text += 4;
        } else {
            *to = *text++;
        }
    }
    *to = 0;
}

/* A line of mountinfo, cut into pieces. */
typedef struct mount_line {
    char *folder, *type, *upper; /* upper: what an overlay writes to, or NULL */
    size_t length;               /* of the folder */
} mount_line;

static bool mount_parse(char *line, mount_line *mount)
{
    char *at = line, *end;

    for (int i = 0; i < 4; i++) { /* the folder is the fifth word */
        at = strchr(at, ' ');
        if (at++ == NULL)
            return false;
    }
    mount->folder = at;
    end = strchr(at, ' ');
    at = end != NULL ? strstr(end, " - ") : NULL;
    if (at == NULL)
        return false;
    *end = 0;
    unescape_mount(mount->folder);
    mount->length = strlen(mount->folder);
    mount->type = at + strlen(" - ");
    mount->upper = strstr(mount->type, "upperdir=");
    mount->type[strcspn(mount->type, " ")] = 0;
    if (mount->upper != NULL) {
        mount->upper += strlen("upperdir=");
        mount->upper[strcspn(mount->upper, ",\n")] = 0;
        unescape_mount(mount->upper);
    }
    return true;
}

static bool mount_has(const mount_line *mount, const char *path)
{
    size_t length = mount->length;

    return strncmp(mount->folder, path, length) == 0 &&
           (path[length] == '/' || path[length] == 0 || length == 1);
}

static void keep_text(char *to, size_t size, const char *text)
{
    snprintf(to, size, "%s", text != NULL ? text : "");
}

/* Finds the mount of a path by its name alone, without asking any disk. `type`
 * and `upper`, which may be NULL, become "" if there is none. */
static void mount_find(const char *path, char *type, size_t type_size,
                       char *upper, size_t upper_size)
{
    FILE *mounts = fopen("/proc/self/mountinfo", "re");
    char *line = NULL;
    size_t size = 0, longest = 0;

    keep_text(type, type_size, NULL);
    keep_text(upper, upper_size, NULL);
    while (mounts != NULL && getline(&line, &size, mounts) >= 0) {
        mount_line mount;
        if (!mount_parse(line, &mount) || !mount_has(&mount, path) ||
            mount.length < longest)
            continue;
        longest = mount.length; /* the last of several is on top */
        keep_text(type, type_size, mount.type);
        keep_text(upper, upper_size, mount.upper);
    }
    free(line);
    if (mounts != NULL)
        fclose(mounts);
}

static bool is_slow_type(const char *type, const char **name)
{
    for (size_t i = 0; i < sizeof file_systems / sizeof *file_systems; i++)
        if (file_systems[i].disk == VST_DISK_SLOW &&
            strncmp(type, file_systems[i].mounted,
                    strlen(file_systems[i].mounted)) == 0) {
            *name = file_systems[i].name;
            return true;
        }
    return false;
}

/* Takes the type of the file system that an overlay writes to, if this process
 * sees it: inside a container it does not. */
static uint32_t below_overlay(const char *upper)
{
    struct statfs below;

    return upper[0] != 0 && statfs(upper, &below) == 0 ? (uint32_t)below.f_type
                                                       : OVERLAY;
}

/* The name of the mount decides first, because statfs waits for a disk that
 * stalls. A link may lead to another disk, which statfs finds out. */
bool vst__os_is_slow(const char *folder, const char **name)
{
    char type[64], upper[PATH_MAX];
    struct statfs fs;
    uint32_t number;

    mount_find(folder, type, sizeof type, upper, sizeof upper);
    if (is_slow_type(type, name))
        return true;
    if (statfs(folder, &fs) != 0)
        return false;
    number = (uint32_t)fs.f_type;
    if (number == OVERLAY)
        number = below_overlay(upper);
    return vst__os_disk_of(number, name) == VST_DISK_SLOW;
}

int vst__os_place_of(const char *folder, vst__os_place *place)
{
    struct statfs fs;
    const char *name;

    if (statfs(folder, &fs) != 0)
        return errno;
    place->disk = vst__os_disk_of((uint32_t)fs.f_type, &name);
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

int vst__os_private_folder(const char *path)
{
    struct stat st;

    if (mkdir(path, 0700) != 0 && errno != EEXIST)
        return errno;
    if (lstat(path, &st) != 0)
        return errno;
    return S_ISDIR(st.st_mode) && st.st_uid == geteuid() &&
                   (st.st_mode & 0077) == 0
               ? 0
               : EPERM;
}

int vst__os_file_lock(int fd)
{
    return flock(fd, LOCK_EX | LOCK_NB) == 0 ? 0 : errno;
}

int vst__os_file_open_to_write(const char *path, int *fd)
{
    struct stat st;
    int failed = 0;

    *fd = open(path, O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (*fd < 0)
        return errno;
    if (fstat(*fd, &st) != 0)
        failed = errno;
    else if (!S_ISREG(st.st_mode))
        failed = ESPIPE;
    if (failed != 0)
        close(*fd);
    return failed;
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
