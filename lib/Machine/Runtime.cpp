//===- Runtime.cpp - what software adds to the times of a machine ---------===//
#include "stage/Machine/Runtime.h"
#include "llvm/ADT/StringExtras.h"

using namespace stage;

std::string Runtime::describe() const {
  if (name.empty())
    return "ideal";
  return name + (changes.empty() ? "" : " with " + llvm::join(changes, ", "));
}
