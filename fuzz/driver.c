/* Gives every file of the given folders to a target, in place of libFuzzer. */
#include <dirent.h>
#include <string.h>

#include "target.h"

static void run_file(const char *path)
{
    FILE *file = fopen(path, "rb");
    uint8_t *bytes;
    long size;

    MUST(file != NULL && fseek(file, 0, SEEK_END) == 0);
    size = ftell(file);
    MUST(size >= 0 && fseek(file, 0, SEEK_SET) == 0);
    bytes = malloc((size_t)size + 1);
    MUST(bytes != NULL);
    MUST(fread(bytes, 1, (size_t)size, file) == (size_t)size);
    fclose(file);
    LLVMFuzzerTestOneInput(bytes, (size_t)size);
    free(bytes);
}

static int run_folder(const char *folder)
{
    DIR *entries = opendir(folder);
    struct dirent *entry;
    char path[4096];
    int count = 0;

    MUST(entries != NULL);
    while ((entry = readdir(entries)) != NULL) {
        if (entry->d_name[0] == '.')
            continue;
        snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
        printf("%s\n", entry->d_name);
        fflush(stdout); /* the last line printed names the input that ended the
                         * program */
        run_file(path);
        count++;
    }
    closedir(entries);
    return count;
}

int main(int argc, char **argv)
{
    int count = 0;

    for (int i = 1; i < argc; i++)
        count += run_folder(argv[i]);
    printf("%d inputs\n", count);
    return count == 0;
}
