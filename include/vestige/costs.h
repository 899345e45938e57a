/* What recording costs, as the recorder measured it in the process that it
 * recorded. A file keeps it as metadata, so that any reader can tell what a
 * call would have taken without the recorder (vst_span's compensated_ns).
 *
 * The value of VST_COSTS_METADATA is JSON. A string says why the costs are not
 * known. Else it is an array of whole numbers: VST_COSTS_LAYOUT, then groups of
 * four.
 *
 *   kind     a vst_definition_kind
 *   cost     what recording one call of this kind adds to the time of the
 *            thread, in picoseconds
 *   inside   of that, what lies between the times of the call's enter and its
 *            exit; less than 0 if the interpreter calls the function before the
 *            enter's time is taken, or comes back from it after the exit's
 *   error    the cost may be more or less by this
 *
 * Kind VST_COSTS_TASK is a task that is introduced (tasks.h), which happens
 * inside of its call; inside is 0, and without a group it costs nothing.
 *
 * Kind VST_COSTS_END is what a Python function does after its exit's time was
 * taken: its variables are freed then. It takes between nothing and error
 * picoseconds, but no more than cost millionths of the span's duration. Half of
 * that belongs to the span, with an error of as much; inside is 0.
 *
 * Kind VST_COSTS_PASSING is there if calls that a budget leaves out cost, too:
 * by how much, budget.h says. cost is the millionths of that which are counted,
 * error those by which it may be more or less; inside is 0.
 *
 * Kind 0 is the time that the language's own code takes while it is being
 * recorded, calls apart: cost is the recorder's share of it in millionths,
 * inside is 0, error is that of the share. A kind that has no group costs what
 * a VST_DEF_PYTHON costs, with an error of the same size. */
#ifndef VESTIGE_COSTS_H
#define VESTIGE_COSTS_H

#define VST_COSTS_METADATA "vestige.costs"

enum {
    VST_COSTS_LAYOUT = 1,
    VST_COSTS_GROUP = 4,
    /* No vst_definition_kind has these numbers. */
    VST_COSTS_TASK = 100,
    VST_COSTS_END = 101,
    VST_COSTS_PASSING = 102
};

#endif
