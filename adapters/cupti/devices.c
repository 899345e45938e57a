/* Keeps devices and contexts, by CUDA's numbers. The properties of a device
 * come from the driver if the driver is in use when the recording starts,
 * otherwise from the record that CUPTI makes when the driver starts. Nothing
 * here starts the driver, because a program may want to fork first. Any thread
 * enters; the collector's lock guards the tables. */
#include <stdio.h>
#include <string.h>

#include "collector.h"
#include "library.h"

/* CUdevice_attribute */
enum {
    THREADS_A_BLOCK = 1,
    SHARED_A_BLOCK = 8,
    WARP_SIZE = 10,
    REGISTERS_A_BLOCK = 12,
    MULTIPROCESSORS = 16,
    THREADS_A_MULTIPROCESSOR = 39,
    MAJOR = 75,
    MINOR = 76,
    SHARED_A_MULTIPROCESSOR = 81,
    REGISTERS_A_MULTIPROCESSOR = 82,
    SHARED_OPTIN = 97,
    MAX_BLOCKS = 106,
    SHARED_RESERVED = 111
};

enum { RESERVED_FROM = 8, RESERVED = 1024 }; /* compute capability, bytes */

/* Declares the device, or adds its properties. Call with the lock held. */
static void devices_declare(cupti_collector *self, uint32_t device)
{
    const cupti_properties *properties = &self->properties[device];
    char text[CUPTI_TEXT], name[32];
    size_t length = cupti_describe_device(properties, text);
    const vst_device declared = {
        .platform = "cuda",
        .ordinal = device,
        .name = properties->are_known ? properties->name : name,
        .attributes = length != 0 ? text : NULL,
    };

    snprintf(name, sizeof name, "CUDA device %u", device);
    vst_device_declare(self->recording, &declared, &self->numbers[device]);
}

static uint32_t devices_clamp(uint32_t device)
{
    return device < CUPTI_DEVICES_MAX ? device : CUPTI_DEVICES_MAX - 1;
}

uint32_t cupti_device_number(cupti_collector *self, uint32_t device)
{
    uint32_t number;

    device = devices_clamp(device);
    pthread_mutex_lock(&self->lock);
    if (self->numbers[device] == 0)
        devices_declare(self, device);
    number = self->numbers[device];
    pthread_mutex_unlock(&self->lock);
    return number;
}

uint32_t cupti_any_device(cupti_collector *self)
{
    uint32_t number = 0;

    pthread_mutex_lock(&self->lock);
    for (size_t i = 0; i < CUPTI_DEVICES_MAX && number == 0; i++)
        number = self->numbers[i];
    pthread_mutex_unlock(&self->lock);
    return number != 0 ? number : cupti_device_number(self, 0);
}

/* ---- properties ---------------------------------------------------------- */

static bool are_known(const cupti_collector *self, uint32_t device)
{
    return __atomic_load_n(&self->properties[device].are_known,
                           /* pairs with the release in set_properties */
                           __ATOMIC_ACQUIRE);
}

/* Sets the properties once; from then on they are read without the lock. */
static void set_properties(cupti_collector *self, uint32_t device,
                           const cupti_properties *properties)
{
    pthread_mutex_lock(&self->lock);
    if (!are_known(self, device)) {
        self->properties[device] = *properties;
        __atomic_store_n(&self->properties[device].are_known, true,
                         __ATOMIC_RELEASE);
        devices_declare(self, device);
    }
    pthread_mutex_unlock(&self->lock);
}

const cupti_properties *cupti_device_properties(const cupti_collector *self,
                                                uint32_t device)
{
    static const cupti_properties unknown;

    device = devices_clamp(device);
    return are_known(self, device) ? &self->properties[device] : &unknown;
}

void cupti_device_note(cupti_collector *self, const cupti_device *record)
{
    cupti_properties properties = {
        .memory = record->memory,
        .major = record->major,
        .minor = record->minor,
        .multiprocessors = record->multiprocessors,
        .warp_size = record->warp_size,
        .threads_a_block = record->threads_a_block,
        .threads_a_multiprocessor = record->max_warps * record->warp_size,
        .max_blocks = record->max_blocks,
        .registers_a_block = record->registers_a_block,
        .registers_a_multiprocessor = record->registers_a_multiprocessor,
        .shared_a_block = record->shared_a_block,
        .shared_a_multiprocessor = record->shared_a_multiprocessor,
        .shared_optin = record->shared_a_block,
        .shared_reserved = record->major >= RESERVED_FROM ? RESERVED : 0,
    };

    if (record->id >= CUPTI_DEVICES_MAX)
        return;
    snprintf(properties.name, sizeof properties.name, "%s",
             record->name != NULL ? record->name : "CUDA device");
    set_properties(self, record->id, &properties);
}

static uint32_t devices_attribute(int which, int device)
{
    int value = 0;

    return cupti.cuDeviceGetAttribute(&value, which, device) == 0 && value > 0
               ? (uint32_t)value
               : 0;
}

static void devices_ask(cupti_collector *self, int device)
{
    size_t memory = 0;
    cupti_properties properties = {
        .major = devices_attribute(MAJOR, device),
        .minor = devices_attribute(MINOR, device),
        .multiprocessors = devices_attribute(MULTIPROCESSORS, device),
        .warp_size = devices_attribute(WARP_SIZE, device),
        .threads_a_block = devices_attribute(THREADS_A_BLOCK, device),
        .threads_a_multiprocessor =
            devices_attribute(THREADS_A_MULTIPROCESSOR, device),
        .max_blocks = devices_attribute(MAX_BLOCKS, device),
        .registers_a_block = devices_attribute(REGISTERS_A_BLOCK, device),
        .registers_a_multiprocessor =
            devices_attribute(REGISTERS_A_MULTIPROCESSOR, device),
        .shared_a_block = devices_attribute(SHARED_A_BLOCK, device),
        .shared_a_multiprocessor =
            devices_attribute(SHARED_A_MULTIPROCESSOR, device),
        .shared_optin = devices_attribute(SHARED_OPTIN, device),
        .shared_reserved = devices_attribute(SHARED_RESERVED, device),
    };

    if (cupti.cuDeviceGetName(properties.name, sizeof properties.name - 1,
                              device) != 0)
        return;
    cupti.cuDeviceTotalMem_v2(&memory, device);
    properties.memory = memory;
    set_properties(self, (uint32_t)device, &properties);
}

void cupti_devices_ask(cupti_collector *self)
{
    int count = 0;

    if (cupti.cuDeviceGetCount(&count) != 0)
        return; /* the program has not started the driver */
    for (int i = 0; i < count && i < CUPTI_DEVICES_MAX; i++)
        if (!are_known(self, (uint32_t)i))
            devices_ask(self, i);
}

uint32_t cupti_streamless(cupti_collector *self, uint32_t device)
{
    const vst_device_stream stream = {.number = CUPTI_NONE,
                                      .name = "no stream"};
    uint32_t number = cupti_device_number(self, device);
    bool is_new;

    device = devices_clamp(device);
    pthread_mutex_lock(&self->lock);
    is_new = !self->has_streamless[device];
    self->has_streamless[device] = true;
    pthread_mutex_unlock(&self->lock);
    if (is_new)
        vst_device_declare_stream(self->recording, number, &stream);
    return number;
}

/* ---- contexts ------------------------------------------------------------ */

/* Keeps the newest contexts that there is room for. */
void cupti_context_note(cupti_collector *self, uint32_t context,
                        uint32_t device)
{
    size_t place = 0;

    pthread_mutex_lock(&self->lock);
    while (place < self->context_count && place < CUPTI_CONTEXTS &&
           self->contexts[place][0] != context)
        place++;
    if (place == self->context_count || place == CUPTI_CONTEXTS)
        place = self->context_count++ % CUPTI_CONTEXTS;
    self->contexts[place][0] = context;
    self->contexts[place][1] = device;
    pthread_mutex_unlock(&self->lock);
}

uint32_t cupti_context_device(cupti_collector *self, uint32_t context)
{
    uint32_t device = 0;

    pthread_mutex_lock(&self->lock);
    for (size_t i = 0; i < self->context_count && i < CUPTI_CONTEXTS; i++)
        if (self->contexts[i][0] == context)
            device = self->contexts[i][1];
    pthread_mutex_unlock(&self->lock);
    return device;
}
