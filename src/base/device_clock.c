/* Fits the clock of a device to the host's: see device_clock.h. */
#include "base/device_clock.h"

/* Returns how many host ticks one tick of the device takes, between two pairs.
 */
static double slope_of(const vst__clock_pair *a, const vst__clock_pair *b)
{
    return (double)(b->ours - a->ours) / (double)(b->theirs - a->theirs);
}

/* Returns how far `middle` lies from the line through the two other pairs. */
static double device_clock_distance(const vst__clock_pair *a,
                                    const vst__clock_pair *middle,
                                    const vst__clock_pair *b)
{
    double on_line = (double)(middle->theirs - a->theirs) * slope_of(a, b);
    double found = (double)(middle->ours - a->ours);

    return on_line > found ? on_line - found : found - on_line;
}

_Bool vst__clock_fit_add(vst__clock_fit *fit, const vst__clock_pair *pair)
{
    const vst__clock_pair *last = &fit->last[0];
    double error = (double)pair->width;

    if (fit->count != 0 &&
        (pair->theirs <= last->theirs || pair->ours <= last->ours))
        return 0;
    if (error > fit->error)
        fit->error = error;
    if (fit->count > 1) {
        error = (double)last->width +
                device_clock_distance(&fit->last[1], last, pair);
        if (error > fit->error)
            fit->error = error;
    }
    fit->last[1] = fit->last[0];
    fit->last[0] = *pair;
    fit->count++;
    return 1;
}

/* Adds with saturation, because a damaged file may hold any time. */
static vst_ticks device_clock_add(vst_ticks ours, double ticks)
{
    double sum = (double)ours + ticks;

    if (!(sum > 0))
        return 0;
    if (sum >= 9.2e18)
        return INT64_MAX;
    return ticks < 0 ? ours - (vst_ticks)(-ticks + 0.5)
                     : ours + (vst_ticks)(ticks + 0.5);
}

static vst_ticks device_clock_from(const vst__clock_pair *pair, double slope,
                                   uint64_t theirs)
{
    return theirs >= pair->theirs
               ? device_clock_add(pair->ours,
                                  (double)(theirs - pair->theirs) * slope)
               : device_clock_add(pair->ours,
                                  -(double)(pair->theirs - theirs) * slope);
}

vst_ticks vst__clock_pairs_convert(const vst__clock_pair *pairs, size_t count,
                                   double slope, uint64_t theirs)
{
    const vst__clock_pair *last = pairs + count - 1;
    size_t low = 0, high = count - 1;

    if (count > 1)
        slope = slope_of(pairs, last);
    if (theirs <= pairs->theirs)
        return device_clock_from(pairs, slope, theirs);
    if (theirs >= last->theirs)
        return device_clock_from(last, slope, theirs);
    while (high - low > 1) {
        size_t middle = low + (high - low) / 2;
        if (pairs[middle].theirs <= theirs)
            low = middle;
        else
            high = middle;
    }
    return device_clock_from(&pairs[low], slope_of(&pairs[low], &pairs[high]),
                             theirs);
}
