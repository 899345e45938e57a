/* Records a device that runs a pipeline of copies and kernels on three streams.
 * Writes a trace that Perfetto opens and, if a second path is given, the
 * recording itself.
 *
 * cc device.c worker_device.c $(pkg-config --cflags --libs vestige) -o device
 * ./device device.json.gz device.vst */
#include <stdio.h>
#include <stdlib.h>

#include "worker_device.h"

enum { STREAMS = 3, ROUNDS = 20, SIZE = 1 << 18 };

static unsigned char host[SIZE], memory[SIZE];

static void sum(void *argument)
{
    uint64_t *result = argument;

    for (size_t i = 0; i < SIZE; i++)
        *result += memory[i];
}

/* Copies on one stream, and runs kernels on two others when the copy is
 * done. */
static uint64_t work(void)
{
    static uint64_t results[2];
    worker_event copied = {0}, summed = {0};

    for (int round = 0; round < ROUNDS; round++) {
        worker_event_wait(0, &summed);
        worker_copy(0, memory, host, SIZE);
        worker_event_record(0, &copied);
        worker_event_wait(1, &copied);
        worker_launch(1, "sum_even", sum, &results[0]);
        worker_event_wait(2, &copied);
        worker_launch(2, "sum_odd", sum, &results[1]);
        worker_synchronize();
    }
    return results[0] + results[1];
}

static vst_status record(const char *path, const char *recording)
{
    const vst_session_options options = {
        .devices = true, .path = recording, .overwrite = true};
    const vst_export_options whole = {.window = VST_WINDOW_LAST};
    vst_session *session;
    vst_trace *trace;
    vst_status status = vst_session_create(&options, &session, NULL);

    if (status != VST_OK)
        return status;
    status = vst_session_start(session, NULL);
    if (status == VST_OK) {
        printf("the sum is %llu\n", (unsigned long long)work());
        vst_session_stop(session);
        status = vst_session_open_trace(session, &trace, NULL);
    }
    if (status == VST_OK) {
        status = vst_trace_export(trace, path, &whole, NULL);
        vst_trace_close(trace);
    }
    vst_session_destroy(session);
    return status;
}

int main(int argc, char **argv)
{
    const char *path = argc > 1 ? argv[1] : "device.json.gz";
    vst_status status;

    for (size_t i = 0; i < SIZE; i++)
        host[i] = (unsigned char)i;
    if (worker_device_open(STREAMS) != 0)
        return 1;
    status = record(path, argc > 2 ? argv[2] : NULL);
    worker_device_close();
    if (status != VST_OK)
        fprintf(stderr, "%s: %s\n", path, vst_status_string(status));
    return status != VST_OK;
}
