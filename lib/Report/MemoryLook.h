//===- MemoryLook.h - how classes of memory look in pictures ---*- C++ -*-===//
#ifndef STAGE_LIB_REPORT_MEMORYLOOK_H
#define STAGE_LIB_REPORT_MEMORYLOOK_H

#include "stage/Memory/Memory.h"

namespace stage {

/// From the bottom to the top: what stays, then what changes.
struct MemoryLook {
  MemoryClass kind;
  const char *fill, *text;
};
inline constexpr MemoryLook memoryLooks[numMemoryClasses] = {
    {MemoryClass::Parameters, "#4a6fa5", "parameters"},
    {MemoryClass::Gradients, "#dd8a3e", "gradients"},
    {MemoryClass::Optimizer, "#7d9f5b", "states of the optimizer"},
    {MemoryClass::ModelBuffers, "#5da8a6", "buffers of the model"},
    {MemoryClass::Residents, "#8d8d8d", "residents of the runtime"},
    {MemoryClass::Caches, "#9c7a54", "caches"},
    {MemoryClass::Activations, "#e0c23f", "activations kept for backward"},
    {MemoryClass::Buffers, "#8f6fb0", "buffers of communication"},
    {MemoryClass::Temporaries, "#c9564f", "temporaries"},
};

} // namespace stage

#endif // STAGE_LIB_REPORT_MEMORYLOOK_H
