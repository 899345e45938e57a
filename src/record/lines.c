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

bool vst__writer_look(vst__writer *writer, vst_kind kind, vst_ticks *now)
{
    const vst_recording *recording = writer->recording;
    uint64_t number;

    if (recording == NULL || recording->lines.stack == NULL) {
        lines_set_due(writer, *now, UINT32_MAX);
        return true;
    }
    if (writer->chunk.words == NULL) /* the escape would count as lost */
        return true;
    if (!lines_may_look(writer, kind)) {
        lines_set_due(writer, *now, writer->hot.shortest);
        return true;
    }
    lines_set_due(writer, *now, recording->lines_interval);
    number = recording->lines.stack(recording->lines.ctx);
    if (writer->recording != recording)
        return false;
    if (number != 0 && kind == VST_ENTER)
        number |= VST_LINES_OF_ENTER;
    if (number != 0)
        vst__record_behind(VST_ESCAPE_LINES, &number, 1);
    if (*now < writer->hot.last) /* the escape began another chunk */
        *now = writer->hot.last;
    return true;
}

void vst__recording_set_lines(vst_recording *recording, const vst_lines *lines)
{
    vst__recorder_take();
    recording->lines = *lines;
    recording->lines_interval = (vst_ticks)((double)lines->interval_ns * 1e-9 *
                                            vst_clock_ticks_per_second());
    vst__recorder_give();
}
