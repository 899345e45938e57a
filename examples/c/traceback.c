/* Takes tracebacks of native code, keeps them, and names them at the end. An
 * allocator that notes where its blocks were allocated works like this.
 *
 *     cc -g traceback.c $(pkg-config --cflags --libs vestige) -o traceback
 *
 * The program prints the stack of each allocation, as JSON. */
#include <stdio.h>
#include <stdlib.h>

#include <vestige/vestige.h>

enum { BLOCKS = 4 };

/* Equal stacks share one traceback, so keeping a stack costs a pointer. */
static vst_traceback *allocated_at[BLOCKS];

static void *allocate(int block)
{
    allocated_at[block] = vst_traceback_capture(VST_TRACEBACK_NATIVE, 0);
    return malloc(100);
}

static void *make_list(int first)
{
    void *blocks[] = {allocate(first), allocate(first + 1)};

    free(blocks[1]);
    return blocks[0];
}

int main(void)
{
    vst_symbols *symbols;
    vst_error error;
    size_t length;
    char *json;

    if (!vst_traceback_has_native())
        printf("libunwind is missing: all tracebacks are empty\n");
    free(make_list(0));
    free(make_list(2));
    if (vst_traceback_symbolize(allocated_at, BLOCKS, 0, &symbols, &error) !=
        VST_OK) {
        fprintf(stderr, "%s\n", vst_status_string(error.status));
        return 1;
    }
    if (vst_symbols_json(symbols, &json, &length) == VST_OK) {
        puts(json);
        free(json);
    }
    vst_symbols_free(symbols);
    for (int i = 0; i < BLOCKS; i++)
        vst_traceback_release(
            allocated_at[i]); /* may be called with any lock held */
    vst_traceback_free_dead();
    return 0;
}
