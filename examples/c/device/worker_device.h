/* A device made of threads, and the runtime to use it: an example of a
 * collector (<vestige/device.h>), which tests of devices also use. Each stream
 * is a worker thread with a queue. Launches, copies and sets return
 * immediately. The jobs of a stream run in order, streams run in parallel, and
 * with an event a stream waits for another stream.
 *
 * The device has its own clock, which runs at another rate than ours and a
 * little slower than it claims. Like the libraries of real devices, it collects
 * activities in buffers, and delivers a buffer when it is full, newest first.
 * Any thread may launch. */
#ifndef WORKER_DEVICE_H
#define WORKER_DEVICE_H

#include <stddef.h>
#include <stdint.h>

#include <vestige/vestige.h>

enum { WORKER_STREAMS_MAX = 16 };

/* A point in a stream's queue; all zero before its first use. */
typedef struct worker_event {
    unsigned recorded; /* how often it was put into a queue */
    unsigned reached;  /* how often the stream has reached it */
} worker_event;

/* Starts the workers and registers the collector. Returns 0 on success. */
int worker_device_open(unsigned streams);
/* Ends the workers when all jobs are done. Call while no recording is in
 * progress. */
void worker_device_close(void);

/* The runtime. The name of a kernel must exist as long as the device. */
void worker_launch(unsigned stream, const char *name,
                   void (*kernel)(void *argument), void *argument);
void worker_copy(unsigned stream, void *to, const void *from, size_t bytes);
void worker_set(unsigned stream, void *at, int value, size_t bytes);
/* worker_event_record puts the event into the stream's queue. worker_event_wait
 * makes the stream wait until the event was reached. */
void worker_event_record(unsigned stream, worker_event *event);
void worker_event_wait(unsigned stream, worker_event *event);
/* Waits until all jobs of all streams are done. */
void worker_synchronize(void);

/* Converts a time of our clock to the device's clock. */
uint64_t worker_clock_at(vst_ticks ours);

#endif
