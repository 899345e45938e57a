/* Records at which lines a thread's open calls are (VST_ESCAPE_LINES): with the
 * first record after each interval, which takes the slow path because its time
 * is compared with buffer->due anyway. So a call that lasts as long as the
 * interval has its lines inside of it or right before its end, and the record
 * path has no check for lines. */
#include "record/recording.h"

/* A delta of the next record must fit a word, see vst_buffer.due. */
static void lines_set_due(vst__writer *writer, vst_ticks now,
                          vst_ticks interval)
{
    vst_ticks most = writer->hot.last + UINT32_MAX;

    writer->hot.due = interval < most - now ? now + interval : most;
}

/* If short calls are left out, an escape behind the ENTER of a short call would
 * keep the call: then only ends of calls that stay are good moments. */
static bool lines_may_look(const vst__writer *writer, vst_kind kind)
{
    return kind != VST_ENTER || writer->hot.shortest == 0;
}

/* Copies how the writer's recording finds lines. Returns false if there is no
 * recording or it has no lines. Takes the lock because the recording of a
 * free-running thread may end at any time. */
static bool lines_wanted(const vst__writer *writer, vst_lines *lines,
                         vst_ticks *interval)
{
    const vst_recording *recording;

    vst__recorder_take();
    recording = writer->recording;
    lines->stack = NULL;
    if (recording != NULL) {
        *lines = recording->lines;
        *interval = recording->lines_interval;
    }
    vst__recorder_give();
    return lines->stack != NULL;
}

void vst__writer_look(vst__writer *writer, vst_kind kind, vst_ticks *now)
{
    vst_lines lines;
    vst_ticks interval;
    uint64_t number;

    if (!lines_wanted(writer, &lines, &interval)) {
        lines_set_due(writer, *now, UINT32_MAX);
        return;
    }
    if (writer->chunk.words == NULL) /* the escape would count as lost */
        return;
    if (!lines_may_look(writer, kind)) {
        lines_set_due(writer, *now, writer->hot.shortest);
        return;
    }
    lines_set_due(writer, *now, interval);
    number = lines.stack(lines.ctx);
    if (number == 0 || writer->hot.epoch != vst_record_epoch())
        return;
    if (kind == VST_ENTER)
        number |= VST_LINES_OF_ENTER;
    vst__record_behind(VST_ESCAPE_LINES, &number, 1);
    if (*now < writer->hot.last) /* the escape began another chunk */
        *now = writer->hot.last;
}

void vst__recording_set_lines(vst_recording *recording, const vst_lines *lines)
{
    vst__recorder_take();
    recording->lines = *lines;
    recording->lines_interval = (vst_ticks)((double)lines->interval_ns * 1e-9 *
                                            vst_clock_ticks_per_second());
    vst__recorder_give();
}
