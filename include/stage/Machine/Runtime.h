//===- Runtime.h - what software makes of a program ------------*- C++ -*-===//
#ifndef STAGE_MACHINE_RUNTIME_H
#define STAGE_MACHINE_RUNTIME_H

#include "stage/Machine/Ticks.h"
#include "stage/Symbolic/Rational.h"
#include <string>
#include <vector>

namespace stage {

struct Runtime {
  std::string name;
  std::vector<std::string> changes;
  Ticks launch = 0;
  Rational taxOfCollectives{0, 1}, taxOfSends{0, 1}, taxOfCopies{0, 1}, taxOfCommunication{0, 1};
  Rational attentionKernel{1, 1};

  std::string describe() const;
};

} // namespace stage

#endif // STAGE_MACHINE_RUNTIME_H
