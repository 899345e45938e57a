/* A device made of threads, and the runtime to use it: an example of a
 * collector
 * (<vestige/device.h>), and what tests of devices run on. Each stream is a
 * worker with a queue. Launches, copies and sets return at once; what was given
 * to one stream happens in this order, streams run beside each other, and
 * events let one wait for another.
 *
 * The device has a clock of its own, which runs at another rate than ours and
 * is not quite as fast as it says. Like the libraries of real devices, it keeps
 * what it did in buffers and hands them over when they are full, newest first.
 * Any thread may launch. */
#ifndef WORKER_DEVICE_H
#define WORKER_DEVICE_H

#include <stddef.h>
#include <stdint.h>

#include <vestige/vestige.h>

enum { WORKER_STREAMS_MAX = 16 };

/* Something that a stream comes to; all zero before its first use. */
typedef struct worker_event {
    unsigned recorded; /* how often it was given to a stream */
    unsigned reached;  /* and how often the stream came to it */
} worker_event;

/* Starts the workers, and registers the collector. 0: it went well. */
int worker_device_open(unsigned streams);
/* When all is done, ends them. No recording is in progress. */
void worker_device_close(void);

/* The runtime. A kernel has a name that stays as long as the device. */
void worker_launch(unsigned stream, const char *name,
                   void (*kernel)(void *argument), void *argument);
void worker_copy(unsigned stream, void *to, const void *from, size_t bytes);
void worker_set(unsigned stream, void *at, int value, size_t bytes);
/* The stream comes to the event; the stream goes on when another came to it. */
void worker_event_record(unsigned stream, worker_event *event);
void worker_event_wait(unsigned stream, worker_event *event);
/* Waits until all streams have done what they were given. */
void worker_synchronize(void);

/* The device's clock at a time of ours. */
uint64_t worker_clock_at(vst_ticks ours);

#endif
