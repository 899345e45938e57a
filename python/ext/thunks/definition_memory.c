/* Finds out where a definition lies: whether in the image of a program or
 * library, where it stays for good, and whether its memory may be written,
 * because const tables lie in pages that the loader made read-only. The list of
 * mappings is read once, and again when it does not contain an address, or when
 * libraries were loaded or unloaded: reading it takes as long as looking at
 * some thousand definitions. Call with the GIL held. */
#include "thunks/thunks.h"

#include <link.h>
#include <stdio.h>
#include <stdlib.h>

static struct vpy_definition_memory_state *const state = &vpy_thunks.memory;

static void definitions_add(vpy_ranges *list, uintptr_t start, uintptr_t end,
                            bool flag)
{
    if (list->count == list->capacity) {
        size_t capacity = list->capacity ? list->capacity * 2 : 256;
        vpy_range *bigger = realloc(list->items, capacity * sizeof *bigger);
        if (bigger == NULL)
            return; /* unknown memory counts as read-only */
        list->items = bigger;
        list->capacity = capacity;
    }
    list->items[list->count++] = (vpy_range){start, end, flag};
}

static int by_address(const void *a, const void *b)
{
    uintptr_t x = ((const vpy_range *)a)->start,
              y = ((const vpy_range *)b)->start;

    return x < y ? -1 : x > y;
}

static const vpy_range *definitions_find(vpy_ranges *list, uintptr_t address)
{
    size_t low = 0, high = list->count;

    if (list->last < high && address >= list->items[list->last].start &&
        address < list->items[list->last].end)
        return &list->items[list->last];
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (address >= list->items[middle].end)
            low = middle + 1;
        else
            high = middle;
    }
    if (low == list->count || address < list->items[low].start)
        return NULL;
    list->last = low;
    return &list->items[low];
}

static void read_mapped(void)
{
    FILE *file = fopen("/proc/self/maps", "re");
    char line[512];
    bool at_start = true;

    state->mapped.count = state->mapped.last = 0;
    while (file != NULL && fgets(line, sizeof line, file) != NULL) {
        unsigned long start, end;
        char access[5];
        size_t length = 0;
        if (at_start && sscanf(line, "%lx-%lx %4s", &start, &end, access) == 3)
            definitions_add(&state->mapped, start, end, access[1] == 'w');
        while (line[length])
            length++;
        at_start = length && line[length - 1] == '\n';
    }
    if (file != NULL)
        fclose(file);
}

/* Reads the counts of all libraries, which each object of the loader's list
 * has, and stops at the first. */
static int read_loads(struct dl_phdr_info *info, size_t size, void *ctx)
{
    (void)size;
    *(struct vpy_library_loads *)ctx =
        (struct vpy_library_loads){info->dlpi_adds, info->dlpi_subs};
    return 1;
}

static int add_image(struct dl_phdr_info *info, size_t size, void *ctx)
{
    (void)size, (void)ctx;
    for (size_t i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *segment = &info->dlpi_phdr[i];
        uintptr_t start = info->dlpi_addr + segment->p_vaddr;
        if (segment->p_type == PT_LOAD)
            definitions_add(&state->images, start, start + segment->p_memsz,
                            true);
    }
    return 0;
}

static void read_images(void)
{
    state->images.count = state->images.last = 0;
    dl_iterate_phdr(read_loads, &state->loads_known);
    dl_iterate_phdr(add_image, NULL);
    qsort(state->images.items, state->images.count, sizeof *state->images.items,
          by_address);
}

vpy_table_memory vpy_table_memory_of(const void *table)
{
    uintptr_t address = (uintptr_t)table;
    const vpy_range *place = definitions_find(&state->mapped, address);

    if (place == NULL) {
        read_mapped();
        read_images();
        place = definitions_find(&state->mapped, address);
    }
    return (vpy_table_memory){
        .in_image = definitions_find(&state->images, address) != NULL,
        .writable = place != NULL && place->flag,
    };
}

void vpy_table_memory_forget(void)
{
    state->mapped.count = state->images.count = 0;
}

void vpy_table_memory_check(void)
{
    struct vpy_library_loads now = {0, 0};

    dl_iterate_phdr(read_loads, &now);
    if (now.added != state->loads_known.added ||
        now.removed != state->loads_known.removed)
        vpy_table_memory_forget();
}
