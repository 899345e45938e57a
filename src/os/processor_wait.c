/* How long threads waited for a processor, as Linux counts it: time in which a
 * thread could run while another thread ran. Read when a recording starts and
 * stops, never in between. One thread at a time. */
#include "os/os.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/short_text.h"

/* strtoull would read tables of the locale, whose pages a short process does
 * not have yet. */
static uint64_t number_at(const char *text)
{
    uint64_t number = 0;

    for (; *text >= '0' && *text <= '9'; text++)
        number = number * 10 + (uint64_t)(*text - '0');
    return number;
}

/* Reads the wait of one thread, the second number of its schedstat. */
static uint64_t wait_of(int folder, const char *thread)
{
    char path[NAME_MAX + sizeof "/schedstat"], text[96];
    vst__short_text name = vst__short_text_in(path, sizeof path);
    const char *behind;
    ssize_t length;
    int fd;

    vst__put_word(&name, thread);
    vst__put_word(&name, "/schedstat");
    fd = openat(folder, path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return 0;
    length = read(fd, text, sizeof text - 1);
    close(fd);
    text[length > 0 ? length : 0] = 0;
    behind = text + strcspn(text, " "); /* the time that the thread ran */
    return *behind != 0 ? number_at(behind + 1) : 0;
}

/* Returns whether the process has one thread, by the number of links of the
 * folder of its threads. */
static bool is_one_thread(void)
{
    struct stat folder;

    return stat("/proc/self/task", &folder) == 0 && folder.st_nlink == 3;
}

/* Reads the waits of all living threads since each began; of very many threads,
 * only the first. */
static size_t processor_read_waits(vst__os_thread_wait waits[VST_OS_WAITS_MAX])
{
    int error = errno;
    DIR *folder = NULL;
    const struct dirent *entry;
    size_t count = 0;

    if (is_one_thread())
        waits[count++] = (vst__os_thread_wait){vst__os_process_id(),
                                               wait_of(AT_FDCWD, "/proc/self")};
    else
        folder = opendir("/proc/self/task");
    while (folder != NULL && count < VST_OS_WAITS_MAX &&
           (entry = readdir(folder)) != NULL)
        if (entry->d_name[0] != '.')
            waits[count++] =
                (vst__os_thread_wait){strtoull(entry->d_name, NULL, 10),
                                      wait_of(dirfd(folder), entry->d_name)};
    if (folder != NULL)
        closedir(folder);
    errno = error;
    return count;
}

static vst__os_thread_wait *processor_find(vst__os_thread_wait *waits,
                                           size_t count, uint64_t tid)
{
    for (size_t i = 0; i < count; i++)
        if (waits[i].tid == tid)
            return &waits[i];
    return NULL;
}

void vst__os_waits_begin(vst__os_waits *waits)
{
    waits->before_count = processor_read_waits(waits->before);
}

void vst__os_waits_end(vst__os_waits *waits)
{
    vst__os_thread_wait now[VST_OS_WAITS_MAX];
    size_t count = processor_read_waits(now);

    for (size_t i = 0; i < count; i++) {
        const vst__os_thread_wait *before =
            processor_find(waits->before, waits->before_count, now[i].tid);
        vst__os_thread_wait *sum =
            processor_find(waits->sums, waits->count, now[i].tid);
        uint64_t ns = before == NULL ? now[i].ns : now[i].ns - before->ns;

        if (ns == 0 || (before != NULL && before->ns > now[i].ns))
            continue;
        if (sum != NULL)
            sum->ns += ns;
        else if (waits->count < VST_OS_WAITS_MAX)
            waits->sums[waits->count++] = (vst__os_thread_wait){now[i].tid, ns};
    }
}
