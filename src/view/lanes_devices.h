/* The facts of items of the kind "devices", in their order. */
#ifndef VST_VIEW_LANES_DEVICES_H
#define VST_VIEW_LANES_DEVICES_H

#include "view/lanes.h"

enum {
    VST_DEVICE_KIND,   /* vst_activity_kind */
    VST_DEVICE_DEVICE, /* for a call: any device of its collector */
    VST_DEVICE_CONTEXT,
    VST_DEVICE_CORRELATION,
    VST_DEVICE_EXTERNAL,
    VST_DEVICE_BYTES,
    VST_DEVICE_OP, /* id of the operator around the call; 0: none */
    VST_DEVICE_ANNOTATION,
    VST_DEVICE_LAUNCH, /* the call that launched it */
    VST_DEVICE_ARGS,   /* JSON members */
    /* The facts from here on are not sent to pages; 0: none. */
    VST_DEVICE_OP_SERIAL,
    VST_DEVICE_ANNOTATION_SERIAL
};

/* In the last row of a lane, activities may overlap. */
enum { VST_DEVICE_ROWS_MAX = 32 };

#endif
