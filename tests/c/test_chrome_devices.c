/* Activities of devices in the Chrome exporter, word for word: the names of
 * categories and arguments are those that clients of torch.profiler know. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <vestige/device.h>

#include "export/output/json.h"
#include "export_built.h"

/* Fields of an activity's record. */
typedef struct activity {
    uint32_t kind, device, stream;
    vst_id id;
    uint64_t correlation, start, duration, bytes;
    const char *attributes;
} activity;

static void add(builder *b, const activity *a)
{
    uint64_t payload[32] = {0}, flags = VST_ACTIVITY_HOST_TIME;
    uint32_t words = VST_ACTIVITY_WORDS;

    payload[1] = a->id | UINT64_C(1) << 32;
    payload[2] = a->correlation;
    payload[3] = a->start;
    payload[4] = a->duration;
    if (vst_activity_is_on_thread(a->kind)) {
        flags |= VST_ACTIVITY_HAS_THREAD; /* a thread that did not report */
        payload[words++] = BUILDER_PID;
    }
    if (a->bytes != 0) {
        flags |= VST_ACTIVITY_HAS_BYTES;
        payload[words++] = a->bytes;
    }
    if (a->attributes != NULL) {
        flags |= VST_ACTIVITY_HAS_ATTRIBUTES;
        payload[words] = strlen(a->attributes);
        memcpy(&payload[words + 1], a->attributes, strlen(a->attributes));
        words += 1 + (uint32_t)(strlen(a->attributes) + 7) / 8;
    }
    payload[0] = a->kind | flags << 8 | (uint64_t)a->device << 16 |
                 (uint64_t)a->stream << 32;
    builder_escape(b, VST_ESCAPE_DEVICE, 0, payload, words);
}

static void add_device(builder *b, uint32_t number, uint32_t ordinal,
                       const char *platform, const char *attributes)
{
    uint64_t text = 0;

    memcpy(&text, platform, strlen(platform));
    builder_entry(b,
                  &(vst_file_entry){.kind = VST_ENTRY_DEVICE,
                                    .id = number,
                                    .x = ordinal | UINT64_C(1) << 32,
                                    .z = text},
                  "A \"device\"", attributes);
}

enum { ANNOTATION = 1, OPERATOR, LAUNCH, COPY_CALL, KERNEL, COPY, SET, WAIT };

static void begin(builder *b)
{
    static const char *const names[] = {
        [ANNOTATION] = "step",
        [OPERATOR] = "aten::mm",
        [LAUNCH] = "cudaLaunchKernel",
        [COPY_CALL] = "cudaMemcpyAsync",
        [KERNEL] = "void gemm<\"x\">",
        [COPY] = "Memcpy HtoD (Pageable -> Device)",
        [SET] = "Memset (Device)",
        [WAIT] = "Stream Wait Event"};

    builder_init(b);
    builder_header(b)->version = VST_FILE_VERSION;
    builder_fix_header(b);
    builder_definitions(b, 1);
    builder_window(b, 0, 1000, 9000);
    builder_thread(b, 1, 4242, "MainThread");
    for (vst_id id = ANNOTATION; id <= WAIT; id++)
        builder_define(b,
                       id == ANNOTATION ? VST_DEF_ANNOTATION
                       : id == OPERATOR ? (unsigned)VST_DEF_OPERATOR
                                        : (unsigned)VST_DEF_ACTIVITY,
                       id, names[id], "", 0);
    add_device(b, 1, 0, "cuda", "\"numSms\": 108");
    add_device(b, 2, 1, "other", "no JSON");
    builder_entry(b,
                  &(vst_file_entry){.kind = VST_ENTRY_DEVICE,
                                    .id = 1,
                                    .line = VST_DEVICE_ENTRY_STREAM,
                                    .x = 9},
                  "copies", "");
}

/* Two launches in an operator in an annotation, and one launch outside of both.
 * They are reported out of order. */
static void build(builder *b)
{
    begin(b);
    builder_records(b, 0, 1, 1000, 1);
    builder_enter(b, ANNOTATION, 100);
    builder_enter(b, OPERATOR, 100);
    builder_exit(b, OPERATOR, 800);
    builder_exit(b, ANNOTATION, 100);
    add(b, &(activity){VST_ACTIVITY_SYNC, 1, 7, WAIT, 9, 4000, 10, 0, NULL});
    add(b, &(activity){VST_ACTIVITY_SET, 2, 3, SET, 10, 5000, 100, 50, NULL});
    add(b, &(activity){VST_ACTIVITY_KERNEL, 1, 7, KERNEL, 5, 3000, 500, 0,
                       "\"grid\": [1, 2, 3]"});
    add(b,
        &(activity){VST_ACTIVITY_COPY, 1, 9, COPY, 6, 2500, 400, 4000, NULL});
    add(b, &(activity){VST_ACTIVITY_KERNEL, 1, 7, KERNEL, 5, 2400, 100, 0,
                       "not JSON"});
    add(b, &(activity){VST_ACTIVITY_RUNTIME, 1, 0, COPY_CALL, 6, 1400, 20, 0,
                       "\"cbid\": 41"});
    add(b,
        &(activity){VST_ACTIVITY_RUNTIME, 1, 0, LAUNCH, 5, 1300, 20, 0, NULL});
    add(b,
        &(activity){VST_ACTIVITY_DRIVER, 1, 0, LAUNCH, 8, 2300, 20, 0, NULL});
    add(b, &(activity){VST_ACTIVITY_OVERHEAD, 1, 0, 77, 0, 2350, 5, 0, NULL});
}

static char *export_file(builder *b)
{
    char *text = export_built(b, "t.json", NULL, VST_WINDOW_ALL);

    CHECK(vst__json_is_value(text, strlen(text)));
    builder_free(b);
    return text;
}

static void devices_are_processes_and_streams_their_threads(void)
{
    builder b;
    char *text;

    build(&b);
    text = export_file(&b);
    expect_line(text, "\"deviceProperties\": [\n"
                      "{\"id\": 0, \"name\": \"A \\\"device\\\"\", "
                      "\"numSms\": 108},\n"
                      "{\"id\": 1, \"name\": \"A \\\"device\\\"\", "
                      "\"attributes\": \"no JSON\"}],\n");
    expect_line(text, "\"process_labels\", \"ts\": 3813830000001.000, "
                      "\"pid\": 0, \"tid\": 0, \"args\": "
                      "{\"labels\": \"GPU 0\"}},\n");
    expect_line(text, "\"pid\": 1, \"tid\": 0, \"args\": "
                      "{\"labels\": \"other 1\"}},\n");
    expect_line(text, "\"process_sort_index\", \"ts\": 3813830000001.000, "
                      "\"pid\": 1, \"tid\": 0, \"args\": "
                      "{\"sort_index\": 5000001}}");
    expect_line(text, "\"pid\": 0, \"tid\": 7, \"args\": "
                      "{\"name\": \"stream 7\"}},\n");
    expect_line(text, "\"pid\": 0, \"tid\": 9, \"args\": "
                      "{\"name\": \"copies\"}},\n");
    free(text);
}

static void activities_have_torchs_categories_and_arguments(void)
{
    builder b;
    char *text;

    build(&b);
    text = export_file(&b);
    expect_line(text,
                ",\n{\"ph\": \"X\", \"cat\": \"cuda_runtime\", \"name\": "
                "\"cudaMemcpyAsync\", \"pid\": 4242, \"tid\": 4242, \"ts\": "
                "3813830000001.400, \"dur\": 0.020, \"args\": {\"External "
                "id\": 2, \"correlation\": 6, \"cbid\": 41}},\n");
    expect_line(text,
                ",\n{\"ph\": \"X\", \"cat\": \"kernel\", \"name\": \"void "
                "gemm<\\\"x\\\">\", \"pid\": 0, \"tid\": 7, \"ts\": "
                "3813830000003.000, \"dur\": 0.500, \"args\": {\"External "
                "id\": 2, \"device\": 0, \"context\": 1, \"stream\": 7, "
                "\"correlation\": 5, \"grid\": [1, 2, 3]}},\n");
    expect_line(text, "\"correlation\": 5, \"args\": \"not JSON\"}},\n");
    expect_line(text,
                "\"cat\": \"gpu_memcpy\", \"name\": \"Memcpy HtoD (Pageable "
                "-> Device)\", \"pid\": 0, \"tid\": 9, \"ts\": "
                "3813830000002.500, \"dur\": 0.400, \"args\": {\"External "
                "id\": 2, \"device\": 0, \"context\": 1, \"stream\": 9, "
                "\"correlation\": 6, \"bytes\": 4000, \"memory bandwidth "
                "(GB/s)\": 10}},\n");
    expect_line(text, "\"cat\": \"gpu_memset\", \"name\": \"Memset (Device)\", "
                      "\"pid\": 1, \"tid\": 3,");
    expect_line(text, "\"cat\": \"cuda_sync\", \"name\": \"Stream Wait "
                      "Event\", \"pid\": 0, \"tid\": 7, \"ts\": "
                      "3813830000004.000, \"dur\": 0.010, \"args\": "
                      "{\"device\": 0, \"context\": 1, \"stream\": 7, "
                      "\"cuda_sync_kind\": \"Stream Wait Event\", "
                      "\"correlation\": 9}}");
    expect_line(text, "\"cat\": \"cuda_driver\"");
    expect_line(text,
                "\"cat\": \"overhead\", \"name\": \"unknown function 77\", "
                "\"pid\": -1, \"tid\": 0,");
    free(text);
}

static size_t count(const char *text, const char *part)
{
    size_t found = 0;

    while ((text = strstr(text, part)) != NULL) {
        found++;
        text += strlen(part);
    }
    return found;
}

static void arrows_lead_from_calls_to_what_they_launched(void)
{
    builder b;
    char *text;

    build(&b);
    text = export_file(&b);
    expect_line(text, ",\n{\"ph\": \"s\", \"cat\": \"ac2g\", \"name\": "
                      "\"ac2g\", \"id\": 5, \"pid\": 4242, \"tid\": 4242, "
                      "\"ts\": 3813830000001.300},\n");
    expect_line(text, ",\n{\"ph\": \"f\", \"bp\": \"e\", \"cat\": \"ac2g\", "
                      "\"name\": \"ac2g\", \"id\": 5, \"pid\": 0, \"tid\": 7, "
                      "\"ts\": 3813830000002.400},\n");
    CHECK_INT(count(text, "\"ph\": \"s\", \"cat\": \"ac2g\""), 2);
    CHECK_INT(count(text, "\"bp\": \"e\", \"cat\": \"ac2g\""), 3);
    /* The span covers the step's kernels on the stream, from the first to the
     * last. */
    expect_line(text, "\"cat\": \"gpu_user_annotation\", \"name\": \"step\", "
                      "\"pid\": 0, \"tid\": 7, \"ts\": 3813830000002.400, "
                      "\"dur\": 1.100, \"args\": {\"External id\": 1}}");
    CHECK_INT(count(text, "\"gpu_user_annotation\""), 2);
    free(text);
}

static void of_two_traces_devices_and_arrows_are_told_apart(void)
{
    const vst_export_options options = {.window = VST_WINDOW_ALL};
    vst_trace *traces[2];
    char *text;
    builder b;

    build(&b);
    CHECK_INT(builder_open(&b, &traces[0], NULL), VST_OK);
    CHECK_INT(builder_open(&b, &traces[1], NULL), VST_OK);
    builder_free(&b);
    CHECK_INT(
        vst_traces_export(traces, 2, in_folder("two.json"), &options, NULL),
        VST_OK);
    vst_trace_close(traces[0]);
    vst_trace_close(traces[1]);
    text = contents(in_folder("two.json"));
    CHECK(vst__json_is_value(text, strlen(text)));
    expect_line(text, "\"pid\": 0, \"tid\": 7, \"ts\"");
    expect_line(text, "\"pid\": 2147483647, \"tid\": 7, \"ts\"");
    expect_line(text, "\"id\": 5, \"pid\": 0,");
    expect_line(text, "\"id\": 17592186044421, \"pid\": 2147483647,");
    unlink(in_folder("two.json"));
    free(text);
}

int main(void)
{
    if (mkdtemp(folder) == NULL)
        return 1;
    TEST(devices_are_processes_and_streams_their_threads);
    TEST(activities_have_torchs_categories_and_arguments);
    TEST(arrows_lead_from_calls_to_what_they_launched);
    TEST(of_two_traces_devices_and_arrows_are_told_apart);
    rmdir(folder);
    return checks_end();
}
