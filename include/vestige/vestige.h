/* All of vestige's public interface. */
#ifndef VESTIGE_VESTIGE_H
#define VESTIGE_VESTIGE_H

#include "api.h"
#include "clock.h"
#include "device.h"
#include "graph.h"
#include "memory.h"
#include "operator.h"
#include "record.h"
#include "session.h"
#include "span.h"
#include "status.h"
#include "storage.h"
#include "trace.h"
#include "traceback.h"
#include "tracer.h"
#include "wire.h"

#endif
