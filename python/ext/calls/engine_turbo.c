/* The turbo engine, the engine that is closest to the interpreter. It sees
 * Python frames through sys.monitoring's events for functions, or through an
 * evaluation hook (turbo_frames.h). It sees C functions through thunks, which
 * stand in place of their addresses (thunks/).
 *
 * It depends on more internals of the interpreter than other engines. So it is
 * used only on versions on which it was tested, only if the internals are as
 * expected (base/inside.c), and only after it passed a test on a few calls
 * (turbo_test.c). Call everything with the GIL held. */
#include "calls/engine.h"

#include "base/inside.h"
#include "base/json.h"
#include "base/names.h"
#include "base/short_text.h"
#include "calls/turbo_frames.h"
#include "calls/turbo_test.h"
#include "thunks/thunks.h"

#include <string.h>

/* ---- whether it is usable ----------------------------------------------- */

#ifdef Py_DEBUG
enum { IS_DEBUG_BUILD = 1 };
#else
enum { IS_DEBUG_BUILD = 0 };
#endif

/* Returns whether Python is a debug build. IS_DEBUG_BUILD is not enough,
 * because a debug build also loads extensions of an ordinary build. */
static bool is_debug_build(void)
{
    return IS_DEBUG_BUILD || vpy_system_object(VPY_NAME_REFCOUNT) != NULL;
}

const char *vpy_thunks_trouble(void)
{
    /* A thunk and the definition that it replaces are two words, which only the
     * GIL changes together while threads call them (thunks/thunks.h). */
    if (VPY_FREE_THREADED)
        return "this Python has no GIL, which it relies on";
    if (is_debug_build())
        return "this is a debug build of Python";
    if (!VPY_IS_PROVEN)
        return "it is not proven on this version of Python";
    if (vpy_part_trouble(VPY_PART_TURBO) != NULL)
        return vpy_part_trouble(VPY_PART_TURBO);
    return vpy_turbo_test();
}

static const char *turbo_trouble(const vpy_options *options)
{
    if (!vpy_frames_see_raises && options->raises)
        return "a raise: trigger needs a trace function";
    return vpy_thunks_trouble();
}

/* ---- start and stop ----------------------------------------------------- */

static void turbo_prepare(const vpy_options *options)
{
    if (options->c_functions && !vpy_thunks_prepare(VPY_COVERS_ALL))
        vpy_calls.tracer.message[0] =
            0; /* turbo_start() will report the failure again */
}

static void give_up(void)
{
    vpy_frames_give_up();
    vpy_thunks_give_up();
}

static bool turbo_start(vpy_tracer *tracer)
{
    if (!vpy_frames_start(tracer)) {
        vpy_thunks_give_up();
        return false;
    }
    if (tracer->options.c_functions && !vpy_thunks_start(VPY_COVERS_ALL)) {
        vpy_frames_stop(tracer);
        return false;
    }
    return true;
}

/* Writes counts of thunks as metadata, for `vestige info`. */
static void note_counts(vpy_tracer *tracer)
{
    const vpy_thunk_counts *counts = vpy_thunks_counts();
    const struct {
        const char *name;
        size_t count;
    } members[] = {
        {"{\"covered\": ", counts->covered},
        {", \"callables\": ", counts->callables},
        {", \"overflow\": ", counts->overflow},
        {", \"read_only\": ", counts->read_only},
        {", \"excluded\": ", counts->excluded},
        {", \"foreign\": ", counts->foreign},
        {", \"freed\": ", counts->freed},
        {", \"pauses\": ", vpy_frames_pauses()},
    };
    char json[512];
    vst__short_text text = vst__short_text_in(json, sizeof json);

    for (size_t i = 0; i < sizeof members / sizeof *members; i++) {
        vst__put_word(&text, members[i].name);
        vst__put_number(&text, (int64_t)members[i].count);
    }
    vst__put_word(&text, "}");
    vst_recording_set_metadata(tracer->recording, "vestige.turbo", json);
}

static void note_names(vpy_tracer *tracer)
{
    const vpy_thunk_counts *counts = vpy_thunks_counts();
    vpy_json json;

    json.bytes[0] = '{';
    json.length = 1;
    vpy_json_key(&json, "read_only", 9);
    vpy_json_string(&json, counts->read_only_names,
                    strlen(counts->read_only_names), VPY_UNCOVERED_MAX);
    vpy_json_key(&json, "excluded", 8);
    vpy_json_string(&json, counts->excluded_names,
                    strlen(counts->excluded_names), VPY_UNCOVERED_MAX);
    vpy_json_end(&json);
    json.bytes[json.length] = 0;
    vst_recording_set_metadata(tracer->recording, "vestige.not_covered",
                               json.bytes);
}

static void turbo_stop(vpy_tracer *tracer)
{
    if (tracer->options.c_functions)
        vpy_thunks_stop();
    vpy_frames_stop(tracer);
    if (tracer->is_parents)
        return;
    note_counts(tracer);
    note_names(tracer);
}

static size_t turbo_hooks_in_place(void)
{
    return vpy_frames_in_place() + vpy_thunks_in_place();
}

const vpy_engine vpy_engine_turbo = {
    .name = "turbo",
    .trouble = turbo_trouble,
    .prepare = turbo_prepare,
    .give_up = give_up,
    .start = turbo_start,
    .stop = turbo_stop,
    .check_thread = vpy_frames_check,
    .hooks_in_place = turbo_hooks_in_place,
};
