/* How functions of the adapter that others find by name are declared. */
#ifndef VESTIGE_TORCH_EXPORTED_H
#define VESTIGE_TORCH_EXPORTED_H

#define VST_EXPORTED extern "C" __attribute__((visibility("default")))

#endif
