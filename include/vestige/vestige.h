/* Includes all of vestige's public interface. The contract of frameworks'
 * adapters is separate and begins with api.h. */
#ifndef VESTIGE_VESTIGE_H
#define VESTIGE_VESTIGE_H

#include "clock.h"
#include "device.h"
#include "memory.h"
#include "record.h"
#include "session.h"
#include "span.h"
#include "status.h"
#include "trace.h"
#include "traceback.h"
#include "tracer.h"
#include "wire.h"

#endif
