/* Which disks may stall (os/file_systems.c), and which folders lie on them by
 * the table of mounts (os/mounts.c). The tests write tables of their own, so
 * the folders that they call slow are ordinary ones. */
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "check.h"
#include "os/os.h"

/* ---- types ---------------------------------------------------------------- */

static void file_systems_are_known_by_their_types(void)
{
    static const struct {
        uint32_t type;
        vst__os_disk disk;
        const char *name;
    } known[] = {
        {0x6969, VST_DISK_SLOW, "NFS"},
        {0x0bd00bd0, VST_DISK_SLOW, "Lustre"},
        {0x47504653, VST_DISK_SLOW, "GPFS"},
        {0x00c36400, VST_DISK_SLOW, "CephFS"},
        {0x65735546, VST_DISK_SLOW, "FUSE"},
        {0x01021997, VST_DISK_SLOW, "9p"},
        {0xff534d42, VST_DISK_SLOW, "CIFS"},
        {0xfe534d42, VST_DISK_SLOW, "SMB"},
        {0x01021994, VST_DISK_MEMORY, "tmpfs"},
        {0xef53, VST_DISK_LOCAL, "local"},     /* ext4 */
        {0x58465342, VST_DISK_LOCAL, "local"}, /* XFS */
        {0x9123683e, VST_DISK_LOCAL, "local"}, /* btrfs */
        {0x2fc12fc1, VST_DISK_LOCAL, "local"}, /* ZFS */
        {0x794c7630, VST_DISK_LOCAL, "local"}, /* overlay, alone */
    };

    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        const char *name;
        CHECK_INT(vst__os_disk_of(known[i].type, &name), known[i].disk);
        CHECK_TEXT(name, known[i].name);
    }
}

static void mounts_are_known_by_the_names_of_their_types(void)
{
    static const struct {
        const char *type, *name; /* NULL: not slow */
    } known[] = {
        {"nfs4", "NFS"},          {"fuse.sshfs", "FUSE"}, {"fuseblk", "FUSE"},
        {"virtiofs", "virtiofs"}, {"autofs", "autofs"},   {"cifs", "CIFS"},
        {"tmpfs", NULL},          {"ext4", NULL},         {"overlay", NULL},
    };

    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        const char *name = vst__os_slow_name(known[i].type);
        if (known[i].name == NULL)
            CHECK(name == NULL);
        else
            CHECK_TEXT(name, known[i].name);
    }
}

/* ---- mounts --------------------------------------------------------------- */

static char root[64]; /* a folder of the test */
static vst__os_mounts *mounts;

static const char *at(const char *name)
{
    static char paths[4][PATH_MAX];
    static unsigned next;
    char *path = paths[next++ % 4];

    snprintf(path, PATH_MAX, "%s%s", root, name);
    return path;
}

static void make_root(void)
{
    snprintf(root, sizeof root, "/tmp/vestige-disks-XXXXXX");
    CHECK(mkdtemp(root) != NULL);
}

/* Reads a table; each "@" in it stands for the folder of the test. */
static void mount_all(const char *table)
{
    const char *path = at("/mounts");
    FILE *file = fopen(path, "w");

    for (; *table != 0; table++)
        if (*table == '@')
            fputs(root, file);
        else
            fputc(*table, file);
    fclose(file);
    mounts = vst__os_mounts_read(path);
    CHECK(mounts != NULL);
}

static void end(void)
{
    char command[128];

    vst__os_mounts_free(mounts);
    mounts = NULL;
    snprintf(command, sizeof command, "rm -r %s", root);
    CHECK_INT(system(command), 0);
}

static void check_slow(const char *folder, const char *expected)
{
    const char *name = vst__os_mounts_slow(mounts, folder);

    CHECK_TEXT(name != NULL ? name : "not slow", expected);
}

#define ROOT "/dev/vda / ext4 rw,relatime 0 0\n"
#define DISK "host:/home @/disk nfs4 rw,hard 0 0\n"

static void a_folder_belongs_to_the_longest_mount(void)
{
    make_root();
    mount_all(ROOT DISK "/dev/vdb @/disk/scratch xfs rw 0 0\n"
                        "me@host: @/a\\040space fuse.sshfs rw 0 0\n");
    check_slow(at("/disk"), "NFS");
    check_slow(at("/disk/a/b"), "NFS");
    check_slow(at("/disks"), "not slow");
    check_slow(at("/disk/scratch/a"), "not slow");
    check_slow(at("/disk/scratch/.."), "NFS");
    check_slow(at("/a space/b"), "FUSE");
    check_slow("/", "not slow");
    check_slow("/no/such/folder", "not slow");
    end();
}

static void the_last_mount_on_a_folder_is_on_top(void)
{
    make_root();
    mount_all(ROOT "systemd-1 @/one autofs rw 0 0\n"
                   "systemd-1 @/two autofs rw 0 0\n"
                   "/dev/vdb @/one ext4 rw 0 0\n");
    check_slow(at("/one/a"), "not slow");
    check_slow(at("/two/a"), "autofs");
    end();
}

static void a_slow_root_does_not_make_other_disks_slow(void)
{
    make_root();
    mount_all("host:/ / nfs rw 0 0\n"
              "/dev/vda @/local ext4 rw 0 0\n");
    check_slow(at("/local/a"), "not slow");
    check_slow(at("/other"), "NFS");
    end();
}

static void links_lead_to_the_disks_of_their_targets(void)
{
    make_root();
    CHECK_INT(mkdir(at("/disk"), 0700), 0);
    CHECK_INT(mkdir(at("/folder"), 0700), 0);
    CHECK_INT(mkdir(at("/folder/inner"), 0700), 0);
    CHECK_INT(symlink(at("/disk"), at("/absolute")), 0);
    CHECK_INT(symlink("../../disk/runs", at("/folder/inner/relative")), 0);
    CHECK_INT(symlink("folder//./inner/", at("/to_link")), 0);
    CHECK_INT(symlink("/tmp", at("/away")), 0);
    CHECK_INT(symlink("circle", at("/circle")), 0);
    mount_all(ROOT DISK);
    check_slow(at("/absolute"), "NFS");
    check_slow(at("/absolute/a/b"), "NFS");
    check_slow(at("//folder/./inner/relative/"), "NFS");
    check_slow(at("/to_link/relative"), "NFS");
    check_slow(at("/to_link/../../disk"), "NFS");
    check_slow(at("/folder/../disk/a"), "NFS");
    check_slow(at("/to_link/.."), "not slow");
    check_slow(at("/away"), "not slow");
    check_slow(at("/circle/a"), "not slow");
    end();
}

static void links_on_a_slow_disk_are_not_read(void)
{
    make_root();
    CHECK_INT(mkdir(at("/disk"), 0700), 0);
    CHECK_INT(symlink("/tmp", at("/disk/away")), 0);
    mount_all(ROOT DISK);
    check_slow(at("/disk/away"), "NFS");
    end();
}

static void an_overlay_is_as_slow_as_the_folder_that_it_writes_to(void)
{
    make_root();
    CHECK_INT(symlink(at("/disk"), at("/link")), 0);
    mount_all(
        ROOT DISK
        "overlay @/one overlay "
        "rw,lowerdir=@/lower,upperdir=@/disk/upper,workdir=@/disk/work 0 0\n"
        "overlay @/two overlay "
        "rw,lowerdir=@/disk/lower,upperdir=@/upper,workdir=@/work 0 0\n"
        "overlay @/three overlay "
        "rw,lowerdir=@/lower,workdir=@/link/work,upperdir=@/link/upper 0 0\n"
        "overlay @/reads overlay "
        "ro,lowerdir=@/lower:@/disk/lower 0 0\n");
    check_slow(at("/one/a"), "NFS");
    check_slow(at("/two/a"), "not slow");
    check_slow(at("/three"), "NFS");
    check_slow(at("/reads"), "not slow");
    end();
}

/* A container has the host's name of the upper folder, which may even lie below
 * the overlay by its name. */
static void an_overlay_whose_upper_folder_is_not_here_is_not_slow(void)
{
    make_root();
    mount_all(
        "overlay / overlay "
        "rw,lowerdir=/var/lib/l,upperdir=/var/lib/u,workdir=/var/lib/w 0 0\n");
    check_slow("/home", "not slow");
    end();
}

static void a_table_that_is_damaged_or_missing_is_survived(void)
{
    make_root();
    mount_all("\n1 2\n/dev/vda / ext4\n   \n" DISK "x @/cut\\0 fuse r");
    check_slow(at("/disk"), "NFS");
    CHECK(vst__os_mounts_read(at("/none")) == NULL);
    end();
}

/* Longer than what is read at once, as on machines with many containers. */
static void tables_of_any_length_are_read_whole(void)
{
    char *table = malloc(100000), *to = table;

    make_root();
    for (int i = 0; i < 1000; i++)
        to += sprintf(to, "x @/m%d %s rw 0 0\n", i, i % 2 ? "ext4" : "nfs");
    mount_all(table);
    free(table);
    check_slow(at("/m998/a"), "NFS");
    check_slow(at("/m999/a"), "not slow");
    check_slow(at("/m1"), "not slow");
    end();
}

static void the_mounts_of_this_machine_are_read(void)
{
    mounts = vst__os_mounts_read(VST_OS_MOUNTS);
    CHECK(mounts != NULL);
    check_slow("/dev/shm", "not slow");
    vst__os_mounts_free(mounts);
    mounts = NULL;
}

int main(void)
{
    TEST(file_systems_are_known_by_their_types);
    TEST(mounts_are_known_by_the_names_of_their_types);
    TEST(a_folder_belongs_to_the_longest_mount);
    TEST(the_last_mount_on_a_folder_is_on_top);
    TEST(a_slow_root_does_not_make_other_disks_slow);
    TEST(links_lead_to_the_disks_of_their_targets);
    TEST(links_on_a_slow_disk_are_not_read);
    TEST(an_overlay_is_as_slow_as_the_folder_that_it_writes_to);
    TEST(an_overlay_whose_upper_folder_is_not_here_is_not_slow);
    TEST(a_table_that_is_damaged_or_missing_is_survived);
    TEST(tables_of_any_length_are_read_whole);
    TEST(the_mounts_of_this_machine_are_read);
    return checks_end();
}
