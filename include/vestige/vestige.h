/* All of vestige's public interface. Separate from it is the contract of
 * adapters of frameworks, which api.h begins. */
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
